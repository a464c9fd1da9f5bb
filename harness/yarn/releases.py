"""The supported Hadoop releases: their artefacts, their Java versions, and the differences between them.

This is the only table of versions: jars (`harness.clusters.jars`), images (docker/), the simulated ResourceManager
(`harness.sim.serve`) and docs/reference/hadoop-versions.md use it. One list of artefacts (docker/pom.xml) serves all
releases.
Sources: Maven Central, the class files of the jars, and answers of real ResourceManagers of each release.
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
        The lowest Java version that runs it.
    differences
        Changes that a client or an administrator notices since the previous release, for the docs.
    """

    version: str
    programs: str
    java: int
    differences: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties of docker/pom.xml that select this release."""
        return {"hadoop.version": self.version, "hadoop.programs.version": self.programs}

    @property
    def hadoop(self) -> tuple[int, int]:
        """Return the first two version numbers, on which behaviour depends."""
        first, second, *_ = self.version.split(".")
        return int(first), int(second)

    @property
    def asynchronous(self) -> bool:
        """Return whether the Capacity Scheduler schedules asynchronously by default."""
        return asynchronous_by_default(self.hadoop)


#: Since this release the Capacity Scheduler schedules asynchronously by default (YARN-7327). The default is in Hadoop's
#: code, so neither the configuration nor ``/conf`` shows it.
ASYNCHRONOUS_SINCE = (3, 5)
#: Since this release (Jersey 2), the JSON answer with the store's version is an object with an integer, and JSON has no
#: empty maps.
JERSEY_2_SINCE = (3, 5)


def asynchronous_by_default(hadoop: tuple[int, int]) -> bool:
    """Return whether a release's Capacity Scheduler schedules asynchronously by default."""
    return hadoop >= ASYNCHRONOUS_SINCE


#: The release of a cluster if none is given; the same as in docker/pom.xml.
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
#: The release that is assumed for a file or a ResourceManager of unknown release; most clusters run this one.
ASSUMED = (3, 4)
#: The lines of releases in the table. A file of unknown release has to be valid for each of them.
LINES = tuple(sorted({release.hadoop for release in RELEASES.values()}))


def release_of(version: str | None, where: str = "--hadoop") -> HadoopRelease:
    """Return the release with a version, or the latest of a line such as 3.5 (None: the default release).

    Raises
    ------
    CallError
        The release is not in the table. ``where`` names the source of the version in the message.
    """
    wanted = version or DEFAULT
    found = RELEASES.get(wanted) or next(
        (release for name, release in reversed(list(RELEASES.items())) if name.rpartition(".")[0] == wanted), None
    )
    if found is None:
        raise CallError(f"no release {version} of Hadoop", where=where, hint=f"give one of {', '.join(RELEASES)}")
    return found
