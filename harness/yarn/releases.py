"""The releases of Hadoop: what clusters of ours are made of, which Java runs them, and what differs between them.

The one table of versions: jars (`harness.clusters.jars`), images (docker/), the simulated ResourceManager
(`harness.sim.serve`) and docs/reference/hadoop-versions.md go by it. One list of artefacts (docker/pom.xml) serves all.
Facts: what Maven Central has, the class files of the jars, and what real ResourceManagers of each release answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from harness.base.errors import CallError


@dataclass(frozen=True, slots=True)
class HadoopRelease:
    """One release.

    Parameters
    ----------
    version
        Its number.
    programs
        The release of the examples and the distributed shell, which end at 3.4.2 on Maven Central.
    java
        The least version of Java that runs it.
    differences
        What a client or an administrator notices beside the release before it, for the docs.
    """

    version: str
    programs: str
    java: int
    differences: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """The properties of docker/pom.xml that choose this release."""
        return {"hadoop.version": self.version, "hadoop.programs.version": self.programs}

    @property
    def hadoop(self) -> tuple[int, int]:
        """Its first two numbers, by which behaviour differs."""
        first, second, *_ = self.version.split(".")
        return int(first), int(second)

    @property
    def asynchronous(self) -> bool:
        """Whether the Capacity Scheduler schedules asynchronously by default."""
        return asynchronous_by_default(self.hadoop)


#: Since this release the Capacity Scheduler schedules asynchronously by default (YARN-7327). The default is in the
#: code: neither the configuration nor ``/conf`` shows it.
ASYNCHRONOUS_SINCE = (3, 5)
#: Since this release (Jersey 2) JSON has the store's version as an integer in an object, and no empty maps.
JERSEY_2_SINCE = (3, 5)


def asynchronous_by_default(hadoop: tuple[int, int]) -> bool:
    """Return whether a release's Capacity Scheduler schedules asynchronously where nothing says otherwise."""
    return hadoop >= ASYNCHRONOUS_SINCE


#: The release of a cluster for which none is given; docker/pom.xml has the same one.
DEFAULT = "3.5.0"
RELEASES = MappingProxyType(
    {
        release.version: release
        for release in (
            HadoopRelease(
                "3.4.2",
                "3.4.2",
                8,
                "since 3.4: `user-limit-factor` -1 is no limit (before, every application is refused); the client RPC "
                "shows a Fair queue's weight",
            ),
            HadoopRelease("3.4.3", "3.4.2", 8, "none that matters here"),
            HadoopRelease(
                "3.5.0",
                "3.4.2",
                17,
                "`GET scheduler-conf/version` has an integer in an object (`configversion`); answers leave empty maps "
                "out; a refusal's message no longer begins with a Java class, and the scheduler's own have one; "
                "`/scheduler-ui` may edit the store (off by default)",
            ),
        )
    }
)
#: As which a file or a ResourceManager is judged whose release nothing tells: most clusters run one of this line.
ASSUMED = (3, 4)
#: The lines of releases in the table. A file whose release nothing tells has to be right for each of them.
LINES = tuple(sorted({release.hadoop for release in RELEASES.values()}))


def release_of(version: str | None, where: str = "--hadoop") -> HadoopRelease:
    """Return the release of that name, or the latest of a line (3.5); None: the default.

    Raises
    ------
    CallError
        It is not in the table; ``where`` says what asked for it.
    """
    wanted = version or DEFAULT
    found = RELEASES.get(wanted) or next(
        (release for name, release in reversed(list(RELEASES.items())) if name.rpartition(".")[0] == wanted), None
    )
    if found is None:
        raise CallError(f"no release {version} of Hadoop", where=where, hint=f"give one of {', '.join(RELEASES)}")
    return found
