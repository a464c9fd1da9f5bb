"""Reads applications' event logs from Spark's History Server, as a trace needs them.

``GET /api/v1/applications/ID/logs`` is a zip archive of the files of all attempts' logs, compressed as Spark wrote them
(``OneApplicationResource`` and ``FsHistoryProvider.writeEventLogs``, Spark 2.4 to 4.0).
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from harness.base.errors import InputError
from harness.traces.accounting import Totals
from harness.traces.formats.base import TimedJob
from harness.traces.formats.spark import SUBMITTED, SparkEventLog
from harness.yarn.answers import APPLICATION_ID
from harness.yarn.errors import BadAnswer, Refused
from harness.yarn.http import HttpClient, HttpOptions

_ROOT = "/api/v1/applications"
#: The maximum total size of the files of one archive, in bytes, and their maximum number.
_MOST_BYTES, _MOST_FILES = 64 << 30, 100_000
#: The time limit for one archive, seconds.
_DEADLINE_S = 600.0
_UNKNOWN = "the Spark History Server does not know it"
_WITHOUT_END = "its event log has no end yet"
_ATTEMPTS = "its master was started more than once"
_INCOMPLETE = "its event log is not whole"


class SparkHistory:
    """One Spark History Server.

    Attributes
    ----------
    left_out : dict of str to Totals
        Reason -> what the used logs had and the trace lacks.
    assumed : Counter of str
        What was assumed of applications whose log was used -> number of applications.
    by_sums : dict of str to str
        Applications whose tasks it could not tell -> reason. One that it tells later is removed.
    heartbeats_ms : Counter of int
        The interval of the AMs' heartbeats -> number of applications.
    """

    def __init__(self, base: str, options: HttpOptions | None = None) -> None:
        # An archive of logs may be large, and the server compresses it while it answers.
        options = replace(options or HttpOptions(), deadline_s=_DEADLINE_S)
        self.http = HttpClient([base], options, accept="*/*")
        self.left_out: dict[str, Totals] = {}
        self.assumed: Counter[str] = Counter()
        self.by_sums: dict[str, str] = {}
        self.heartbeats_ms: Counter[int] = Counter()

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def spark(self, application: str, *, settled: bool = True) -> TimedJob | None:
        """Return a YARN application with all its tasks from its event log; None if the server does not have it.

        Parameters
        ----------
        application : str
            Its id in YARN.
        settled : bool
            Whether to use a log without an end. A log has no end while it is written, and never gets one if its driver
            was killed.

        Raises
        ------
        Unreachable, Refused, BadAnswer
            The request fails, or its answer is no archive of logs.
        """
        if not APPLICATION_ID.fullmatch(application):
            return None
        with tempfile.TemporaryDirectory(prefix="yarnfair-spark-") as folder:
            made = self._read(application, Path(folder), settled=settled)
        if isinstance(made, str):
            self.by_sums[application] = made
            return None
        self.by_sums.pop(application, None)
        return made

    def _read(self, application: str, folder: Path, *, settled: bool) -> TimedJob | str:
        """Return the content of its log, or why it is not used."""
        archive, logs = folder / "logs.zip", folder / "logs"

        def keep(chunks: Iterator[bytes], _: str) -> None:
            with archive.open("wb") as stream:
                for chunk in chunks:
                    stream.write(chunk)

        try:
            answer = self.http.request("GET", f"{_ROOT}/{application}/logs", repeatable=True, reader=keep)
        except Refused as error:
            if error.status == 404:
                return _UNKNOWN
            raise
        _unpack(archive, logs, answer.url)
        reading = SparkEventLog().read(logs)
        # The trace would have another application for other attempts, although YARN counted both attempts together.
        if len(reading.jobs) > 1:
            return _ATTEMPTS
        if not reading.jobs:
            return next(iter(reading.account.left_out), _UNKNOWN).split("; first:")[0]
        if reading.unknown:
            return _INCOMPLETE
        made = reading.jobs[0]
        if made.line.finished_s is None and not settled:
            return _WITHOUT_END
        for reason, totals in reading.account.left_out.items():
            # The location of the first one is left out, because its file is temporary.
            name = reason.split("; first:")[0]
            self.left_out[name] = self.left_out.get(name, Totals()) + totals
        # Each sentence ends with a number of applications, which is always one here.
        self.assumed.update(words.rsplit(" (", 1)[0] for words in reading.assumed if words != SUBMITTED)
        if reading.delays.am_heartbeat_ms:
            self.heartbeats_ms[reading.delays.am_heartbeat_ms] += 1
        return made


def _unpack(archive: Path, folder: Path, where: str) -> None:
    """Unpack the files of an archive: logs, and in folders the parts of rolled logs.

    Raises BadAnswer for an invalid archive.
    """
    hint = "check that this is a Spark History Server"
    size = 0
    try:
        with zipfile.ZipFile(archive) as packed:
            entries = [one for one in packed.infolist() if not one.is_dir()]
            if len(entries) > _MOST_FILES:
                raise BadAnswer(f"an archive of more than {_MOST_FILES:,} files", where=where, hint=hint)
            for entry in entries:
                parts = PurePosixPath(entry.filename).parts
                if not 1 <= len(parts) <= 2 or any(part in ("/", "..") or "\0" in part for part in parts):
                    raise BadAnswer(f"an archive with the file {entry.filename[:100]!r}", where=where, hint=hint)
                size += entry.file_size
                if size > _MOST_BYTES:
                    raise BadAnswer(f"logs of more than {_MOST_BYTES >> 30} GiB", where=where, hint="record without it")
                target = folder.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                # The size in an entry's header limits how much of it is read.
                with packed.open(entry) as source, target.open("wb") as stream:
                    shutil.copyfileobj(source, stream, 1 << 20)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise BadAnswer(f"no zip archive of event logs ({str(error)[:80]})", where=where, hint=hint) from None
    except OSError as error:
        raise InputError(f"the event logs cannot be kept: {error.strerror}", where=tempfile.gettempdir()) from None
    folder.mkdir(exist_ok=True)
