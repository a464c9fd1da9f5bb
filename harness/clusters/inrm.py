"""Long-term policies inside a real ResourceManager: the jar for its class path, and the file that names the class.

The sources are yarn-policy/ltyarn-scheduling-policy (a Maven module). For a cluster that this project starts, they are
compiled with the JDK against that cluster's Hadoop jars, once for each state of the sources and each choice of
settings.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path

from harness.base.debug import Timer, log_program
from harness.base.errors import CallError, InputError, RunTimedOut
from harness.base.files import read_text, replace_file, write_text
from harness.clusters import jars
from harness.clusters.state import ClusterSpec
from harness.model.data import data_path
from harness.policies.base import parse_settings, read_decimal
from harness.policies.hltrf import Hltrf
from harness.yarn.rest import RestClient

_LOG = logging.getLogger(__name__)

#: Policy -> its Java class.
CLASSES = {
    "ltrf": "yarnfair.inrm.Ltrf",
    "naive-hltrf": "yarnfair.inrm.NaiveHltrf",
    "hltrf": "yarnfair.inrm.Hltrf",
}
SETTINGS = (
    *("resource", "discount", "round_s", "t_wait_s", "observe_ms"),
    *("pseudo", "quantum_s", "adaptive_quantum"),
)
#: A policy's setting in the experiment file -> its name in the jar.
_OWN_NAMES = {"t_wait": "t_wait_s", "round": "round_s"}
_POLICYS_NAMES = {jars_name: name for name, jars_name in _OWN_NAMES.items()}
_FILE = "yarnfair-inrm.properties"
#: The maximum time between two polls, in milliseconds (Settings.java).
_LONGEST_LOOK_MS = 3_600_000
_ELEMENT = "defaultQueueSchedulingPolicy"


def _checked(policy: str, settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings by the jar's names, read as in Settings.java.

    Raises CallError for a value that it would refuse.
    """
    if policy not in CLASSES:
        raise CallError(f"no policy {policy[:40]!r} for inside an RM", hint=f"one of {', '.join(CLASSES)}")
    return {name: _checked_value(name, value) for name, value in settings.items()}


def _checked_value(name: str, value: object) -> str:
    if name not in SETTINGS:
        raise CallError(f"the policy has no setting {name[:40]!r}", hint=f"one of {', '.join(SETTINGS)}")
    if name == "observe_ms":
        given = read_decimal(value)
        if given is None or not 0 <= given <= _LONGEST_LOOK_MS:
            raise CallError(f"{name} is {str(value)[:40]!r}", hint=f"give a number from 0 to {_LONGEST_LOOK_MS:,}")
        return _text(float(given))
    own = _POLICYS_NAMES.get(name, name)
    try:
        parsed = getattr(parse_settings(Hltrf, {own: value})[0], own)
    except CallError as error:
        hint = (error.hint or "").replace(f"{own}=", f"{name}=")
        raise CallError(f"{name} is {str(value)[:40]!r}", hint=hint) from None
    if parsed == "auto":
        raise CallError(f"{name} is auto: inside an RM task lengths are not known", hint="give a number, or inf")
    return str(parsed).lower() if isinstance(parsed, bool) else _text(parsed)


def _text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else str(value)


def jar(
    settings: Mapping[str, str], hadoop: str | None = None, *, progress: Callable[[str], None] = lambda _: None
) -> Path:
    """Return the jar with the policies and these settings; compile it if it is not cached.

    Raises InputError without a JDK.
    """
    source = data_path("yarn-policy", "ltyarn-scheduling-policy", "src", "main", "java")
    files = sorted(source.rglob("*.java"))
    text = "".join(f"{name}={value}\n" for name, value in sorted(settings.items()))
    digest = hashlib.blake2b(digest_size=6)
    for path in files:
        digest.update(path.read_bytes())
    digest.update(f"{jars.identity(hadoop)}\n{text}".encode())
    target = jars.cache_folder() / f"ltyarn-scheduling-policy-{digest.hexdigest()}.jar"
    if target.exists():
        return target
    compiler = shutil.which("javac")
    if compiler is None:
        raise InputError("no Java compiler (javac) on the PATH", hint="install a JDK, 17 or later")
    lib = jars.find(hadoop, progress=progress)
    progress("compiling the policies for inside the ResourceManager (once)")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="compiling-") as work:
        command = [compiler, "--release", "17", "-nowarn", "-Xlint:none", "-cp", f"{lib}/*", "-d", f"{work}/classes"]
        timer = Timer()
        try:
            done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise RunTimedOut("javac had not compiled the policies after 300 s") from None
        log_program(_LOG, command, done.returncode, timer, done.stderr)
        if done.returncode:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), "no reason given")
            raise InputError(f"javac did not compile the policies: {reason[:300]}", hint="use a JDK, 17 or later")
        classes = Path(work, "classes")

        def pack(draft: Path) -> None:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as packed:
                for path in sorted(classes.rglob("*.class")):
                    packed.write(path, path.relative_to(classes).as_posix())
                packed.writestr(_FILE, text)

        replace_file(target, pack)
    return target


def allocations_with(text: str, policy: str) -> str:
    """Return an allocation file that sets a policy's class for every queue without a policy of its own.

    Raises InputError for a file that already names a default, which must not be overruled.
    """
    if f"<{_ELEMENT}" in text or "<defaultQueueSchedulingMode" in text:
        raise InputError(f"the allocation file has {_ELEMENT} already", hint="take it out: the policy goes there")
    end = text.rfind("</allocations>")
    if end < 0:
        if not re.search(r"<allocations\s*/>\s*$", text):
            raise InputError("no allocation file (it does not end with </allocations>)", hint="give one that does")
        head = re.sub(r"<allocations\s*/>\s*$", "<allocations>", text)
        return f"{head}<{_ELEMENT}>{CLASSES[policy]}</{_ELEMENT}></allocations>\n"
    return f"{text[:end]}  <{_ELEMENT}>{CLASSES[policy]}</{_ELEMENT}>\n{text[end:]}"


def own_settings(policy: str, settings: Mapping[str, object]) -> dict[str, str]:
    """Return an experiment's settings of a policy in the jar's form; there, too, t_wait and round are in seconds.

    Missing settings get the policy's own defaults, regardless of the jar's. Raises CallError for a policy or setting
    that the jar does not have, and for a value that it does not accept.
    """
    defaults = {entry.name: entry.default for entry in fields(Hltrf.Settings)}
    known = {_POLICYS_NAMES.get(name, name) for name in SETTINGS} & set(defaults)
    given = {name: defaults[name] for name in sorted(known)} | dict(settings)
    return _checked(policy, {_OWN_NAMES.get(name, name): value for name, value in given.items() if value is not None})


def with_jar(
    spec: ClusterSpec, policy: str, settings: Mapping[str, object], *, progress: Callable[[str], None] = lambda _: None
) -> ClusterSpec:
    """Return a cluster like `spec` whose RM has the policies on its class path; the allocation file activates them.

    `settings` are as for `own_settings`. Raises CallError, InputError.
    """
    return replace(spec, jars=(*spec.jars, str(jar(own_settings(policy, settings), progress=progress))))


def confirm(rest: RestClient, policy: str, paths: Iterable[str], *, timeout_s: float = 5.0) -> None:
    """Wait until the RM shows `policy` for these queues, because a refresh succeeds whatever the file contains.

    Raises InputError if it does not.
    """
    wanted, end = list(paths), time.monotonic() + timeout_s
    while True:
        queues = rest.scheduler().queues
        other = next((path for path in wanted if path not in queues or queues[path].policy != policy), None)
        if other is None:
            return
        if time.monotonic() >= end:
            has = f"has {queues[other].policy}" if other in queues else "is not there"
            raise InputError(
                f"{policy} is not in force inside the ResourceManager: {other} {has}",
                where=rest.http.current,
                hint="put the jar of yarn-policy/ltyarn-scheduling-policy on its class path and start it again "
                "(docs/how-to/inside-the-rm.md); its log says what it could not read",
            )
        time.sleep(0.1)


def with_policy(
    spec: ClusterSpec,
    policy: str,
    settings: Mapping[str, str],
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterSpec:
    """Return a cluster like `spec` whose Fair Scheduler orders queues by a long-term policy.

    Raises CallError for an unknown policy or setting, InputError for files that cannot be built or read.
    """
    settings = _checked(policy, settings)
    source = Path(spec.allocations) if spec.allocations else data_path("docker", "scheduler", "fair-scheduler.xml")
    text = allocations_with(read_text(source, hint="give a readable file"), policy)
    built = jar(settings, spec.hadoop, progress=progress)
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    file = jars.cache_folder() / f"inrm-{digest}.xml"
    write_text(file, text)
    return replace(spec, allocations=str(file), jars=(*spec.jars, str(built)))
