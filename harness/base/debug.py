"""Debug logging of requests to daemons and their answers, on standard error and in ``debug.log``.

Modules log to ``logging.getLogger(__name__)``. Nothing is written unless ``--debug`` is given or a run directory is
open. The formatter here bounds every line and removes secrets, whatever the destination, so no caller can forget it.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from harness.base.errors import printable, short, without_secrets

#: The root logger of this package.
ROOT = "harness"
#: The file in a run directory, and its name once it is full; older lines are dropped.
FILE, OLDER = "debug.log", "debug.log.1"
#: Maximum size of each of the two files, bytes.
MOST_BYTES = 4 << 20
#: Maximum length of a message, characters.
MOST_CHARACTERS = 2000

_NAMES = (
    r"authorization|cookie|passw(?:or)?d|passphrase|pwd|secret|token|delegation|signature|credential|api[-_]?key"
    r"|access[-_]?key|private[-_]?key"
)
_STRING = r"\"(?:[^\"\\]|\\.)*(?:\"|$)|'(?:[^'\\]|\\.)*(?:'|$)"
#: Patterns of secrets, in the order of replacement. A pattern begins with a fixed word or has a bounded beginning, so
#: that searching a long text takes linear time.
_SECRETS = (
    # Headers, up to the end of their line or of the quoted text that contains them.
    (re.compile(rf"(?i)((?:{_NAMES})[\w-]{{0,40}}\s*:\s*)[^\s\"'][^\n\"']*"), r"\1***"),
    # Values in JSON, and as printed by Python; a truncated value has no end.
    (re.compile(rf"(?is)((?:{_NAMES})[\w.-]{{0,80}}[\"']\s*:\s*)(?:{_STRING}|[^\s,}}\]]+)"), r"\1***"),
    # A property in JSON or XML: its name, then its value.
    (
        re.compile(rf"(?is)(\"name\"\s*:\s*\"[^\"]{{0,200}}(?:{_NAMES})[^\"]*\"\s*,\s*\"value\"\s*:\s*)(?:{_STRING})"),
        r"\1***",
    ),
    (re.compile(rf"(?is)(<name>[^<]{{0,200}}(?:{_NAMES})[^<]*</name>\s*<value>)[^<]*"), r"\1***"),
    # NAME=VALUE, also in addresses and on command lines.
    (re.compile(rf"(?i)((?:{_NAMES})[\w.-]{{0,80}}=)(?:{_STRING}|[^\s&;,\"']+)"), r"\1***"),
    (re.compile(rf"(?i)(--?[\w-]{{0,40}}(?:{_NAMES})[\w-]{{0,40}}\s+)(?:{_STRING}|[^\s\"']+)"), r"\1***"),
    (re.compile(r"(?is)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)"), "***"),
    (re.compile(r"(?i)\b(bearer|negotiate|basic)\s+[A-Za-z0-9+/=._~-]{8,}"), r"\1 ***"),
)
#: Maximum length of a text that is searched for secrets and shown.
_SEARCHED = 20_000


def redacted(text: str) -> str:
    """Return the text without passwords, tokens, keys, and the values of Authorization and Cookie headers."""
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return without_secrets(text)


def shown(data: bytes | str) -> str:
    """Format data for a message: its beginning and its end, without secrets.

    Secrets are removed before truncation, because half a password cannot be recognised.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if len(text) > _SEARCHED:
        # Start at a whole line: text before the first line end may be the rest of a secret.
        text = f"{text[: _SEARCHED // 2]}\n...\n{text[-_SEARCHED // 2 :].partition(chr(10))[2]}"
    return short(redacted(text), MOST_CHARACTERS // 2)


def log_program(log: logging.Logger, command: Sequence[str], code: int, took: Timer, told: bytes | str = "") -> None:
    """Log a program that has ended: its command line, exit code, time and what it printed, without secrets."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s: exit code %s in %s: %s", shown(shlex.join(command)), code, took, shown(told))


class _Formatter(logging.Formatter):
    """Formats a record as one line, ``2026-01-31T12:00:00.000Z debug harness.yarn.http: ...``, or as a JSON object."""

    def __init__(self, *, in_json: bool) -> None:
        super().__init__()
        self._in_json = in_json

    def format(self, record: logging.LogRecord) -> str:
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        # Secrets are removed before truncation, because half a password cannot be recognised.
        text = printable(" ".join(short(redacted(text), MOST_CHARACTERS).split()))
        level = record.levelname.lower()
        if self._in_json:
            return json.dumps({"time": stamp, "level": level, "event": "debug", "module": record.name, "text": text})
        return f"{stamp} {level} {record.name}: {text}"


class _DockerOnly(logging.Filter):
    """Only passes urllib3's requests to the Docker daemon, whose socket has no port. Callers log other requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        return isinstance(record.args, tuple) and len(record.args) > 2 and record.args[2] is None


#: Loggers whose records are written, and their filters.
_LOGGERS: tuple[tuple[str, logging.Filter | None], ...] = (
    (ROOT, None),
    ("urllib3.connectionpool", _DockerOnly()),
)


class _Attached:
    """A handler that receives all log records until `detach`."""

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler
        self._levels = []
        for name, wanted in _LOGGERS:
            logger = logging.getLogger(name)
            self._levels.append((logger, logger.level))
            logger.setLevel(logging.DEBUG)
            if wanted is not None and wanted not in logger.filters:
                logger.addFilter(wanted)
            logger.addHandler(handler)
        # A full disk or a closed terminal must neither end the logged program nor fill standard error.
        logging.raiseExceptions = False

    def detach(self) -> None:
        for logger, level in self._levels:
            logger.removeHandler(self._handler)
            logger.setLevel(level)
        self._handler.close()


def debug_to(stream: TextIO, *, in_json: bool = False) -> Callable[[], None]:
    """Write all log records to a stream from now on.

    Parameters
    ----------
    stream : the target, usually standard error.
    in_json : one JSON object per line, as in `enforce --log-format json`.

    Returns
    -------
    Callable
        A function that stops it.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter(in_json=in_json))
    return _Attached(handler).detach


def to_standard_error() -> None:
    """Write log records to standard error for ``--debug``, once per process."""
    if _to_standard_error() is None:
        debug_to(sys.stderr)


def lines_in_json() -> None:
    """Let ``--debug`` write one JSON object per line from now on."""
    handler = _to_standard_error()
    if handler is not None:
        handler.setFormatter(_Formatter(in_json=True))


def _to_standard_error() -> logging.Handler | None:
    for handler in logging.getLogger(ROOT).handlers:
        if getattr(handler, "stream", None) is sys.stderr:
            return handler
    return None


class DebugLog(logging.Handler):
    """``debug.log`` of a run directory; records from before the directory exists are kept until then."""

    #: Number of kept records; the latest are kept.
    MOST_KEPT = 2000

    def __init__(self) -> None:
        super().__init__()
        self._kept: deque[logging.LogRecord] = deque(maxlen=self.MOST_KEPT)
        self._file: RotatingFileHandler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or keep it."""
        if self._file is not None:
            self._file.handle(record)
        else:
            self._kept.append(record)

    def write_to(self, folder: Path) -> None:
        """Write into ``debug.log`` of a folder from now on. The file is not created if nothing is logged."""
        file = RotatingFileHandler(
            folder / FILE, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace", delay=True
        )
        file.setFormatter(_Formatter(in_json=False))
        while self._kept:
            file.handle(self._kept.popleft())
        self._file = file

    def close(self) -> None:
        """Stop writing."""
        if self._file is not None:
            self._file.close()
        super().close()


@contextmanager
def debug_log() -> Iterator[DebugLog]:
    """Write what is logged in this context into ``debug.log`` of the folder that `DebugLog.write_to` names."""
    handler = DebugLog()
    attached = _Attached(handler)
    try:
        yield handler
    finally:
        attached.detach()


class Timer:
    """Milliseconds since its creation, for messages."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __str__(self) -> str:
        return f"{1000 * (time.monotonic() - self._began):.0f} ms"
