"""The ResourceManager's own poll of its allocation file, and how far apart writes have to be for it to find them.

AllocationFileLoaderService of Hadoop 3.4.2 looks every 10 s, and loads a file that is newer than its last load once it
has been still for more than 5 s. A file that is always replaced before the poll that would load it is never loaded.
"""

from __future__ import annotations

#: From one poll to the next, seconds.
POLL_S = 10.0
#: The file has to have been still for longer than this, seconds.
STILL_S = 5.0
#: What a poll and a load may take beyond that, seconds.
SLACK_S = 1.0
#: A file that is not in force after this, seconds, will not be: what the RM's clock may be off is in it.
POLL_EFFECT_S = 25.0


def write_gap_s(poll_s: float = POLL_S) -> float:
    """Writes at least this far apart, seconds, are all found by a poll every `poll_s`."""
    return STILL_S + poll_s + SLACK_S


POLL_WRITE_GAP_S = write_gap_s()
