"""The releases of Hadoop that clusters are made of: which programs go with each, and which Java it needs.

One list of artefacts (docker/pom.xml) serves them all. Facts: what Maven Central has, and the class files of the jars.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from harness.base.errors import CallError


@dataclass(frozen=True, slots=True)
class HadoopRelease:
    """One release.

    ``programs``: the release of the examples and the distributed shell, which end at 3.4.2 on Maven Central; ``java``:
    the least version of Java that runs it.
    """

    version: str
    programs: str
    java: int

    @property
    def properties(self) -> dict[str, str]:
        """The properties of docker/pom.xml that choose this release."""
        return {"hadoop.version": self.version, "hadoop.programs.version": self.programs}


#: What clusters are made of where nothing else is asked for: the release that docker/pom.xml names.
DEFAULT = "3.4.2"
RELEASES = MappingProxyType(
    {
        release.version: release
        for release in (
            HadoopRelease("3.4.2", "3.4.2", 8),
            HadoopRelease("3.4.3", "3.4.2", 8),
            HadoopRelease("3.5.0", "3.4.2", 17),
        )
    }
)


def release_of(version: str | None) -> HadoopRelease:
    """The release of that name; None: the default. Raises CallError for one that is not in the table."""
    found = RELEASES.get(version or DEFAULT)
    if found is None:
        raise CallError(f"no release {version} of Hadoop", where="--hadoop", hint=f"give one of {', '.join(RELEASES)}")
    return found
