"""A recording over weeks: appends each application to a trace as it ends, and survives its own restarts.

It has three parts: `Follower` is the pure core, which turns polls of a ResourceManager into ended applications and
notes; `Recording` is the file, to which whole lines are appended, with ``FILE.running`` beside it for unfinished
applications; `follow` is the loop that connects a ResourceManager with both. The memory of a poll is bounded by what
the ResourceManager itself retains.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from harness.base.errors import InputError, YarnfairError
from harness.base.files import plain, read_json, write_json, writing
from harness.traces.histories import OF_SPARK, Histories
from harness.traces.node_following import ALL_STATES, NodeFollower, NodeRecorder
from harness.traces.nodes import NodeChangeLine, shown_by
from harness.traces.recorded import Header, JobLine, NoteLine, full_name, running_beside, with_used, write_line
from harness.traces.recording import (
    ESTIMATED,
    App,
    NoSuchJob,
    Seen,
    ended_just_now,
    idle_words,
    job_of,
    nodes_of,
    rm_header,
)
from harness.yarn.errors import BadAnswer, Refused, Unreachable
from harness.yarn.plausible import left_out_words, sift
from harness.yarn.rmclient import RmClient

#: An application that this many consecutive polls do not show is gone; a starting ResourceManager shows few for a
#: while.
MISSING_LOOKS = 3
#: How long a history server may take to know an ended application, seconds.
HISTORY_WAIT_S = 180.0
#: Request interval of queues and properties, seconds. Nodes are requested at every poll.
DESCRIBE_EVERY_S = 60.0
#: Number of ResourceManager starts for which the highest application number is remembered.
_MOST_STARTS = 16
_FINISHED = re.compile(rb'"finished_s": ([0-9.]+(?:[eE][+-]?[0-9]+)?)[,}]')
_JOB = re.compile(rb'\{"job": "(application_\d+_\d+)"')


@dataclass(slots=True)
class Polled:
    """The result of a poll.

    Parameters
    ----------
    ended
        Applications that have ended since the previous poll, including vanished ones that had run.
    vanished
        Number of applications that had run and are no longer shown, although no poll saw them end.
    unseen
        Number of applications of which it is unknown whether they ran: their ids were assigned but no poll has shown
        them, or they vanished after they had been seen only waiting.
    left_out
        Ended applications with unusable figures, each with the reason.
    idle
        Ended applications in which nothing ran.
    """

    ended: list[Seen] = field(default_factory=list)
    vanished: int = 0
    unseen: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    idle: list[Seen] = field(default_factory=list)


@dataclass(slots=True)
class Follower:
    """Finds the applications that have ended since the last poll. Pure: no clock, no file.

    ``highest``: start time of a ResourceManager (ms) -> the highest number that it gave to an application. ``written``:
    id -> number of consecutive polls without it, for applications that were written and may still be retained.
    """

    running: dict[str, Seen] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)

    def look(
        self, apps: Sequence[App], left_out: Mapping[str, str] | None = None, clock_s: float | None = None
    ) -> Polled:
        """Process one poll of everything that the ResourceManager retains.

        ``left_out``: applications with impossible figures -> the reason. A running one stays as last seen. ``clock_s``:
        the ResourceManager's clock; an application that ended within `COUNTED_AFTER_S` of it is left to a later poll,
        whose counters are complete.
        """
        left_out = left_out or {}
        found, shown = Polled(), {app.id for app in apps}
        found.unseen = self._count(apps)
        for app in apps:
            if app.id in self.written:
                continue
            if app.id in left_out:
                if app.final:
                    self.running.pop(app.id, None)
                    self.written[app.id] = 0
                    found.left_out[app.id] = left_out[app.id]
                continue
            now = Seen.of(app, self.running.pop(app.id, None))
            if not now.final or (now.ran and ended_just_now(now, clock_s)):
                self.running[app.id] = now
                continue
            self.written[app.id] = 0
            (found.ended if now.ran else found.idle).append(now)
        for gone in [self.running[known] for known in self.running if known not in shown]:
            if gone.missed + 1 < MISSING_LOOKS:
                self.running[gone.id] = replace(gone, missed=gone.missed + 1)
                continue
            del self.running[gone.id]
            self.written[gone.id] = MISSING_LOOKS
            if gone.final:
                found.ended.append(gone)
            elif gone.ran:
                found.ended.append(gone.vanished())
                found.vanished += 1
            else:
                found.unseen += 1  # it waited when last seen: it is unknown whether it ran
        missed = {known: 0 if known in shown else count + 1 for known, count in self.written.items()}
        self.written = {known: count for known, count in missed.items() if count <= 2 * MISSING_LOOKS}
        return found

    def _count(self, apps: Sequence[App]) -> int:
        """Return how many numbers were assigned since the last poll to applications that are not shown."""
        numbers: dict[int, list[int]] = {}
        for app in apps:
            _, started, number = app.id.split("_")
            numbers.setdefault(int(started), []).append(int(number))
        unseen, latest = 0, max(self.highest, default=None)
        for start, shown in sorted(numbers.items()):
            known = self.highest.get(start)
            if known is None and latest is not None and start > latest:
                known = 0  # it has started since the last poll
            top = max(shown)
            if known is not None and top > known:
                unseen += top - known - sum(number > known for number in shown)
            self.highest[start] = max(top, known or 0)
        self.highest = dict(sorted(self.highest.items())[-_MOST_STARTS:])
        return unseen

    def document(self) -> dict[str, Any]:
        """Return what `restored` needs, for the file ``FILE.running`` beside a recording."""
        return {
            "running": [asdict(app) for app in self.running.values()],
            "highest": {str(start): number for start, number in self.highest.items()},
        }

    @classmethod
    def restored(cls, document: Mapping[str, Any]) -> Self:
        """Restore it from `document`."""
        running = [_seen(one) for one in document["running"]]
        highest = {int(start): int(number) for start, number in document["highest"].items()}
        return cls({app.id: app for app in running}, highest)


def _end_of(line: bytes) -> float:
    """Return the end of the application of a line; 0 if it has none."""
    found = _FINISHED.search(line)
    return 0.0 if found is None else float(found[1])


def _seen(document: Mapping[str, Any]) -> Seen:
    return Seen(**{**document, "before": tuple(document["before"])})


class Recording:
    """The file of a recording. One process at a time; every append writes whole lines to disk."""

    def __init__(self, path: Path) -> None:
        self.path, self.state_path = path, running_beside(path)
        self.follower = Follower()
        self.nodes = NodeRecorder()
        self.ended_s = 0.0
        self.waiting: list[tuple[Seen, float]] = []
        self.zero_ms: int | None = None
        self.looked_s: float | None = None
        self.jobs = 0
        self.header: Header | None = None
        self.met = False
        with writing(path, "give another"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                # It is read again when the recording is resumed.
                raise InputError("not a regular file", where=str(path), hint="give a regular file, or use -o")
            self._take_up()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process use the file."""
        os.close(self._file)

    def _take_up(self) -> None:
        where = str(self.path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError("another process records into it", where=where, hint="end that, or give another") from None
        if self.state_path.exists():
            hint = "remove it: what has not ended is then recorded when it ends"
            state = read_json(self.state_path, hint)
            try:
                self.follower = Follower.restored(state)
                self.waiting = [(_seen(one), float(since)) for one, since in state["waiting"]]
                self.looked_s = float(state["looked_s"])
                self.nodes = NodeRecorder(NodeFollower.restored(state.get("nodes")))
            except (KeyError, TypeError, ValueError, AttributeError):
                raise InputError("not what a recording leaves", where=str(self.state_path), hint=hint) from None
        whole = 0
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # of a machine that crashed during the write
                whole += len(line)
                if line.startswith(b'{"job"'):
                    self.jobs += 1
                    self.ended_s = max(self.ended_s, _end_of(line))
                if line.startswith(b'{"node"'):
                    self._known_change(line)
                if line.startswith(b'{"trace"'):
                    self.header = self._known_header(line)
                    self.nodes = self.nodes.shown(self.header.nodes, self.ended_s)
        if whole and self.header is None:
            raise InputError("not a recording of `record --follow`", where=where, hint="give another file")
        os.ftruncate(self._file, whole)
        if self.header is not None:
            self.zero_ms = self.header.zero_ms

    def _known_change(self, line: bytes) -> None:
        try:
            found = NodeChangeLine.model_validate_json(line)
            if self.nodes.written is not None:
                at_s = max(found.at_s, self.nodes.written.at_s)
                self.nodes.written.change(found.model_copy(update={"at_s": at_s}))
        except ValueError as error:
            what = f"a line about a node that cannot be ({str(error).splitlines()[0]})"
            raise InputError(what, where=str(self.path), hint="remove that line, or give another file") from None

    def _known_header(self, line: bytes) -> Header:
        try:
            found = Header.model_validate_json(line)
        except ValueError:
            found = None
        if found is None or found.zero_ms is None:
            hint = "give another file: this one is whole, and does not go on"
            raise InputError("not a recording of `record --follow`", where=str(self.path), hint=hint)
        return found

    def meet(self, shown: Iterable[str]) -> None:
        """At the first poll: find which of the ResourceManager's applications are already in the file."""
        wanted = {*shown, *self.follower.running, *(seen.id for seen, _ in self.waiting)}
        written = set()
        with self.path.open("rb") as lines:
            for line in lines:
                if (found := _JOB.match(line)) and (known := found[1].decode()) in wanted:
                    written.add(known)
        self.waiting = [one for one in self.waiting if one[0].id not in written]
        for known in written:
            self.follower.running.pop(known, None)
        self.follower.written = dict.fromkeys((*written, *(seen.id for seen, _ in self.waiting)), 0)
        self.met = True

    def changed(self, header: Header, nodes: NodeRecorder) -> Header | None:
        """Return the present cluster if it differs from the file's first line and its lines about nodes."""
        new = header.model_copy(update={"zero_ms": self.zero_ms})
        if self.header is None:
            return new
        # What event logs showed about applications in the file stays valid, also after a restart.
        known = [words for words in self.header.assumed if words.startswith(OF_SPARK) and words not in new.assumed]
        beats = new.delays.am_heartbeat_ms or self.header.delays.am_heartbeat_ms
        new = new.model_copy(
            update={
                "queues": with_used({**self.header.queues, **new.queues}, ()),
                "assumed": [*new.assumed, *known],
                "delays": new.delays.model_copy(update={"am_heartbeat_ms": beats}),
            }
        )
        new = new.model_copy(update={"asynchronous": _asynchronous(self.header, new)})
        # Changes in lines about nodes need no further first line.
        told = nodes.written is not None and nodes.written.offered() == shown_by(new.nodes)
        alike = {"source": self.header.source, **({"nodes": self.header.nodes} if told else {})}
        return None if new.model_copy(update=alike) == self.header else new

    def append(self, lines: Sequence[str]) -> None:
        """Append whole lines; they are on disk when this returns. On OSError none of them is there."""
        if not lines:
            return
        size = os.fstat(self._file).st_size
        data = memoryview("".join(f"{line}\n" for line in lines).encode())
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)
            raise

    def save(self, looked_s: float) -> None:
        """Save the applications that have not ended, for readers of the trace and for the next start."""
        self.looked_s = looked_s
        assert self.zero_ms is not None
        apps = [*(seen for seen, _ in self.waiting), *self.follower.running.values()]
        jobs = []
        for app in apps:
            if app.ran:
                # An application that makes no job is reported when it ends.
                with contextlib.suppress(NoSuchJob):
                    jobs.append(job_of(app, None, self.zero_ms))
        document = {
            **self.follower.document(),
            "waiting": [(asdict(seen), since) for seen, since in self.waiting],
            "looked_s": looked_s,
            "nodes": self.nodes.follower.document(),
            "jobs": [job.model_dump(mode="json", exclude_none=True) for job in jobs],
        }
        write_json(self.state_path, plain(document))


def _asynchronous(before: Header, now: Header) -> bool | None:
    """Return whether containers were placed asynchronously in any part of a recording; None if that is not known.

    A ResourceManager reads the setting at its start alone, and each start has a source of its own.
    """
    if before.source == now.source:
        return before.asynchronous if now.asynchronous is None else now.asynchronous
    both = {before.asynchronous, now.asynchronous}
    return True if True in both else None if None in both else False


@dataclass(slots=True)
class Following:
    """One recording of one ResourceManager. `look` is one poll; times are seconds since 1970 (this machine's)."""

    client: RmClient
    recording: Recording
    histories: Histories | None = None
    entitlements: Mapping[str, float] | None = None
    every_s: float = 10.0
    says: Callable[[str], None] = lambda _: None
    _described_s: float = -math.inf

    def look(self, now_s: float) -> int:
        """Poll once; return how many applications were added. Raises request errors, and OSError of the disk."""
        rec = self.recording
        info, status = self.client.rest.info(), self.client.rest.scheduler()
        nodes = self.client.rest.nodes(ALL_STATES)
        apps = self.client.apps()
        left_out = sift(apps, status.capacity, info.clock_s).left_out
        if not rec.met:
            rec.meet(app.id for app in apps)
        if rec.zero_ms is None:
            rec.zero_ms = min((app.started_ms for app in apps), default=round(now_s * 1000))
        # Decided on a copy, so that what cannot be written is found again at the next poll.
        follower = Follower(dict(rec.follower.running), dict(rec.follower.highest), dict(rec.follower.written))
        found = follower.look(apps, left_out, info.clock_s)
        ended = [*rec.waiting, *((seen, now_s) for seen in found.ended)]
        jobs, waiting = self._ended(ended, now_s, found.left_out)
        used = {job.queue for job in jobs} | {full_name(seen.queue) for seen in follower.running.values() if seen.ran}
        recorder, changes = rec.nodes.poll(nodes, now_s - rec.zero_ms / 1000.0)
        offered = recorder.offered()
        lines: list[str] = []
        header = None
        new = rec.header is None or bool(used - rec.header.queues.keys())
        if new and not offered:
            nodes_of(())  # a first line has at least one node
        if offered and (new or now_s - self._described_s >= DESCRIBE_EVERY_S):
            # Once weights are known, a single failing call does not replace them by estimates.
            estimate = rec.header is None or ESTIMATED in (rec.header.source or "")
            tell = self.says if rec.header is None else lambda _: None
            cluster = rm_header(
                self.client,
                self.entitlements,
                used,
                histories=self.histories,
                estimate=estimate,
                nodes=offered,
                on_progress=tell,
            )
            header = rec.changed(cluster, recorder)
            self._described_s = now_s
        lines += map(write_line, changes)
        if header is not None:
            lines.append(write_line(header))
            recorder = recorder.shown(header.nodes, rec.ended_s)
        if (note := self._note(found, now_s)) is not None:
            lines.append(write_line(note))
            self.says(note.note)
        rec.append([*lines, *map(write_line, jobs)])
        rec.header = header or rec.header
        rec.follower, rec.waiting, rec.nodes = follower, waiting, recorder
        rec.ended_s = max([rec.ended_s, *(job.finished_s or 0.0 for job in jobs)])
        rec.jobs += len(jobs)
        rec.save(now_s)
        return len(jobs)

    def _ended(
        self, ended: Iterable[tuple[Seen, float]], now_s: float, left_out: dict[str, str]
    ) -> tuple[list[JobLine], list[tuple[Seen, float]]]:
        """Return lines of ended applications, and applications that a history server may still learn of.

        Applications that make no job are added to ``left_out``.
        """
        assert self.recording.zero_ms is not None
        jobs, waiting = [], []
        for seen, since in ended:
            known = self.histories is not None and self.histories.know(seen.type)
            late = not known or now_s - since >= HISTORY_WAIT_S
            try:
                job = job_of(seen, self.histories, self.recording.zero_ms, settled=late)
            except NoSuchJob as error:
                left_out[seen.id] = error.what
                continue
            except (Unreachable, Refused, BadAnswer) as error:
                if not late:
                    self.says(error.line())
                    waiting.append((seen, since))
                    continue
                job = job_of(seen, None, self.recording.zero_ms)
            if job.detail == "tasks" or late:
                jobs.append(job)
            else:
                waiting.append((seen, since))
        return jobs, waiting

    def _note(self, found: Polled, now_s: float) -> NoteLine | None:
        """Return a note on what cannot be known since the last poll; None: nothing is missing."""
        last = self.recording.looked_s
        away = last is not None and now_s - last > max(60.0, 5 * self.every_s)
        at_once = [left_out_words(found.left_out)] if found.left_out else []
        at_once += [idle_words(found.idle)] if found.idle else []
        if not at_once and (last is None or not (away or found.vanished or found.unseen)):
            return None
        last = now_s if last is None else last
        words = at_once
        words += [f"not looked for {now_s - last:.0f} s"] if away else []
        if found.unseen:
            words.append(
                f"{found.unseen} applications to which numbers were given were not seen, or only waiting: the "
                "ResourceManager has forgotten them, or they were never submitted"
            )
        if found.vanished:
            words.append(f"{found.vanished} applications are gone, and were not seen to end: recorded until last seen")
        zero_s = (self.recording.zero_ms or 0) / 1000.0
        return NoteLine(
            note="; ".join(words),
            from_s=max(round(last - zero_s, 1), 0.0),
            until_s=max(round(now_s - zero_s, 1), 0.0),
            unseen=found.unseen,
            vanished=found.vanished,
        )


def follow(
    following: Following,
    *,
    for_s: float | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Poll every ``every_s`` seconds until ``for_s`` have passed (None: for ever), and once more then.

    Failures are reported and retried. Raises InputError for what a retry does not fix.
    """
    begun, said = clock(), ""
    while True:
        now_s = clock()
        try:
            added = following.look(now_s)
            if said:
                following.says("recording again")
            said = ""
            if added:
                following.says(f"{added} application(s) ended, {following.recording.jobs} in all")
        except (YarnfairError, OSError) as error:
            line = error.line() if isinstance(error, YarnfairError) else f"{following.recording.path}: {error.strerror}"
            if line != said:
                following.says(f"{line}; trying again")
                said = line
        left_s = math.inf if for_s is None else begun + for_s - clock()
        if left_s <= 0:
            return
        sleep(min(following.every_s, left_s))
