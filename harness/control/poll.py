"""The ResourceManager's own poll of its allocation file, and the minimum time between writes that follows from it.

AllocationFileLoaderService of Hadoop 3.4.2 polls every 10 s, and loads a file that is newer than its last load once it
has been unmodified for more than 5 s. A file that is always replaced before the poll that would load it is never
loaded.
"""

from __future__ import annotations

#: Poll period, seconds.
POLL_S = 10.0
#: The file must have been unmodified for longer than this, seconds.
STILL_S = 5.0
#: Allowance for the duration of a poll and a load, seconds.
SLACK_S = 1.0
#: A file not in force after this time will not be loaded, seconds. Includes an allowance for the RM's clock.
POLL_EFFECT_S = 25.0


def write_gap_s(poll_s: float = POLL_S) -> float:
    """Return the minimum time between writes with which a poll every `poll_s` loads each of them, seconds."""
    return STILL_S + poll_s + SLACK_S


POLL_WRITE_GAP_S = write_gap_s()
