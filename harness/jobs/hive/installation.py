"""The installation of Hive and Tez: their jars, resolved once by Maven, and the options with which Java is started.

Hive 4.0.1 is built for Java 8 and 11. On Java 17, packages of Java's own must be opened, in HiveServer2 as well as in
Tez' AMs and tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.clusters import jars
from harness.model.data import data_path

HIVE, TEZ = "4.0.1", "0.10.5"
_OPENED = (
    *(f"java.{name}" for name in ("lang", "lang.reflect", "util", "util.concurrent", "util.concurrent.atomic")),
    *(f"java.{name}" for name in ("util.regex", "net", "io", "nio", "text", "time")),
    "sun.nio.ch",
)
#: Options that come before all others on Java's command line.
JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)
SERVER = "org.apache.hive.service.server.HiveServer2"
SHELL = "sqlline.SqlLine"
DRIVER = "org.apache.hive.jdbc.HiveDriver"


def hive_jars(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return the jars of HiveServer2 and its JDBC shell (some 250 MB). Raises InputError, RunTimedOut."""
    needed = ("hive-service-", "hive-exec-", "hive-jdbc-", "hive-standalone-metastore-server-", "tez-dag-", "sqlline-")
    return jars.find_set(f"hive-{HIVE}", data_path("docker", "hive-pom.xml"), needed, progress=progress)


def tez_jars(progress: Callable[[str], None] = lambda _: None) -> Path:
    """Return the jars that Tez' AMs and tasks need in addition to Hadoop's. Raises InputError, RunTimedOut."""
    needed = ("tez-dag-", "tez-runtime-library-", "hadoop-shim-", "protobuf-java-")
    return jars.find_set(f"tez-{TEZ}", data_path("docker", "tez-pom.xml"), needed, progress=progress)
