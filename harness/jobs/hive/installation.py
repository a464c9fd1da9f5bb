"""Hive and Tez themselves: their jars, resolved once by Maven, and how Java has to be started for them.

Hive 4.0.1 is built for Java 8 and 11: on 17 it wants packages of Java's own opened, in HiveServer2 as well as in Tez'
masters and tasks.
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
#: Before everything else that Java is told.
JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)
SERVER = "org.apache.hive.service.server.HiveServer2"
SHELL = "sqlline.SqlLine"
DRIVER = "org.apache.hive.jdbc.HiveDriver"


def hive_jars(progress: Callable[[str], None] = lambda _: None) -> Path:
    """HiveServer2's, and those of its JDBC shell (some 250 MB). Raises InputError, RunTimedOut."""
    needed = ("hive-service-", "hive-exec-", "hive-jdbc-", "hive-standalone-metastore-server-", "tez-dag-", "sqlline-")
    return jars.find_set(f"hive-{HIVE}", data_path("docker", "hive-pom.xml"), needed, progress=progress)


def tez_jars(progress: Callable[[str], None] = lambda _: None) -> Path:
    """What Tez' masters and tasks need beside Hadoop's jars. Raises InputError, RunTimedOut."""
    needed = ("tez-dag-", "tez-runtime-library-", "hadoop-shim-", "protobuf-java-")
    return jars.find_set(f"tez-{TEZ}", data_path("docker", "tez-pom.xml"), needed, progress=progress)
