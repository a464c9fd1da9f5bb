"""Hadoop's configuration files: writes, reads and copies them.

harness.clusters.daemon_site chooses the properties; docker/conf has the image's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harness.base.errors import CallError
from harness.base.files import put_file, reading, write_bytes
from harness.model.data import templates

LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


def check_property(name: str, value: str) -> None:
    """Raise CallError for a property that Hadoop could not read back from a site file."""
    if not re.fullmatch(r"[A-Za-z0-9_.*-]{1,200}", name):
        raise CallError(f"{name[:60]!r} is not a property's name", hint="give --property NAME=VALUE")
    if re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", value):
        what = f"the value of {name} has characters that XML cannot hold"
        raise CallError(what, hint="leave control characters out")


def render(properties: Mapping[str, str]) -> str:
    """Return a site file with these properties."""
    for name, value in properties.items():
        check_property(name, value)
    return templates(keep_trailing_newline=True).get_template("hadoop-site.xml.j2").render(properties=properties)


def read(path: Path) -> dict[str, str]:
    """Return the properties of a site file that this module wrote, in its order."""
    from lxml import etree

    root = etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    return {item.findtext("name", "").strip(): item.findtext("value", "").strip() for item in root.iter("property")}


def copy(source: Path, target: Path) -> None:
    """Copy a file that the user named. Raises InputError if it cannot be read. The RM decides whether it is valid."""
    with reading(source):
        data = source.read_bytes()
    write(target, data)


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically, readable for all, because another user's container reads it."""
    write_bytes(path, content.encode() if isinstance(content, str) else content)


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically and flush it to disk; only its owner may read it. Raises OSError."""

    def write(draft: Path) -> None:
        draft.write_bytes(content)

    put_file(path, write, mode=0o600, sync=True)
