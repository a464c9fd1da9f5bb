"""A scheduler's file in other encodings, and values in other notations of XML: restored to the byte, or left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.control.capacity_actuator import CapacityActuator
from harness.control.file_actuator import FileActuator
from harness.control.giveback import give_back
from harness.ledger.store import LedgerStore
from harness.model.plan import Attributes
from harness.yarn.capacity.properties import PREFIX, as_written, parse_configuration
from harness.yarn.capacity.source import FileSource
from harness.yarn.files import LocalStore

FAIR = b"""<?xml version="1.0"?>
<allocations>
  <queue name="a"><weight>2.0</weight></queue>
  <queue name="b"/>
</allocations>
"""
NAME = b"<property><name>yarn.scheduler.capacity.root.%b</name><value>%b</value></property>\n"
CAPACITY = b'<?xml version="1.0"?>\n<configuration>\n%b</configuration>\n' % b"".join(
    NAME % one for one in ((b"queues", b"a,b"), (b"a.capacity", b"60"), (b"b.capacity", b"40.0"))
)
SHARES = {"root.a": 1.0, "root.b": 3.0}
ENCODINGS = {
    "utf-16": lambda data: data.replace(b"?>", b' encoding="UTF-16"?>').decode().encode("utf-16"),
    "utf-16-be": lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"),
    "utf-16-le without a mark": lambda data: data.decode().encode("utf-16-le"),
    "utf-8 with a mark": lambda data: b"\xef\xbb\xbf" + data,
    "latin-1": lambda data: data.replace(b"?>", b' encoding="ISO-8859-1"?><!-- \xe4 -->'),
    "windows": lambda data: data.replace(b"\n", b"\r\n"),
}


def notation(fair: bytes, capacity: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(b">2.0<", b">%b<" % fair).replace(b">60<", b">%b<" % capacity)


NOTATIONS = {
    "cdata": notation(b"<![CDATA[2.0]]>", b"<![CDATA[60]]>"),
    "partly cdata": notation(b"2<![CDATA[.0]]>", b"6<![CDATA[0]]>"),
    "references": notation(b"&#50;&#x2e;0", b"&#x36;0"),
    "a comment": notation(b"2.0<!-- was 3 -->", b"60<!-- was 50 -->"),
    "a comment within": notation(b"2<!-- -->.0", b"6<!-- -->0"),
    "windows line ends": notation(b"\r\n  2.0\r\n  ", b"\r\n  60\r\n  "),
}


def open_actuator(path: Path, store: LedgerStore) -> FileActuator | CapacityActuator:
    place = LocalStore(path)
    if path.name == "fair.xml":
        return FileActuator.restored(place, store.document)
    return CapacityActuator.restored(FileSource(place), store.document)


def control(path: Path, folder: Path) -> None:
    """One write of a controller that is killed after it."""
    with LedgerStore(folder / "ledger.db") as store:
        actuator = open_actuator(path, store)
        actuator.read()
        prepared = actuator.prepare(Attributes(SHARES))
        store.commit(documents=actuator.document())
        actuator.write(prepared)


def restore(path: Path, folder: Path) -> None:
    with LedgerStore(folder / "ledger.db") as store:
        give_back(open_actuator(path, store), store, None)


@pytest.mark.parametrize("data", [FAIR, CAPACITY], ids=["fair", "capacity"])
@pytest.mark.parametrize("how", [*ENCODINGS.values(), *NOTATIONS.values()], ids=[*ENCODINGS, *NOTATIONS])
def test_a_file_is_restored_as_it_was_written(data: bytes, how: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """UTF-16 was refused; of a capacity, CDATA, references, comments and carriage returns were lost in silence."""
    path = tmp_path / ("fair.xml" if data is FAIR else "capacity.xml")
    path.write_bytes(how(data))
    assert path.read_bytes() != data
    control(path, tmp_path)
    assert path.read_bytes() != how(data)
    restore(path, tmp_path)
    assert path.read_bytes() == how(data)


@pytest.mark.parametrize("data", [FAIR, CAPACITY], ids=["fair", "capacity"])
@pytest.mark.parametrize("how", ENCODINGS.values(), ids=ENCODINGS)
def test_a_file_that_changes_its_encoding_while_it_is_controlled_is_restored(
    data: bytes, how: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A release of a file that an editor had saved in UTF-16 failed, and left the controller's values for ever."""
    path = tmp_path / ("fair.xml" if data is FAIR else "capacity.xml")
    path.write_bytes(data)
    control(path, tmp_path)
    path.write_bytes(how(path.read_bytes()))
    restore(path, tmp_path)
    assert path.read_bytes() == how(data)


def test_a_value_that_was_written_anew_meanwhile_is_restored_in_the_new_way(tmp_path: Path) -> None:
    """The comment of the value of before does not come back with another value."""
    path = tmp_path / "capacity.xml"
    path.write_bytes(NOTATIONS["a comment"](CAPACITY))
    control(path, tmp_path)
    with LedgerStore(tmp_path / "ledger.db") as store:
        for name in ("a", "b"):
            values = parse_configuration(path.read_bytes(), source="c").values
            capacity = values[f"{PREFIX}root.{name}.capacity"].encode()
            path.write_bytes(path.read_bytes().replace(b">%b<" % capacity, b">50<"))
        actuator = open_actuator(path, store)
        actuator.read()
        edited = path.read_bytes()
        actuator.write(actuator.prepare(Attributes(SHARES)))
        assert path.read_bytes() != edited
        give_back(actuator, store, None)
    assert path.read_bytes() == edited


def test_a_queue_that_was_taken_off_the_list_keeps_how_its_capacity_was_written(tmp_path: Path) -> None:
    path = tmp_path / "capacity.xml"
    path.write_bytes(NOTATIONS["a comment"](CAPACITY))
    control(path, tmp_path)
    for old, new in ((b">a,b<", b">b<"), (b">75<", b">100<")):
        path.write_bytes(path.read_bytes().replace(old, new))
    restore(path, tmp_path)
    assert b"60<!-- was 50 -->" in path.read_bytes()


def test_a_content_that_is_no_longer_readable_gives_way_to_the_value(tmp_path: Path) -> None:
    """A comment in Latin-1 inside a value would tear a file that has been converted to UTF-8 since."""
    path = tmp_path / "capacity.xml"
    latin = CAPACITY.replace(b"?>", b' encoding="ISO-8859-1"?>').replace(b">60<", b">60<!-- \xe4 --><")
    path.write_bytes(latin)
    control(path, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"ISO-8859-1", b"UTF-8").replace(b"\xe4", "ä".encode()))
    restore(path, tmp_path)
    assert path.read_bytes() == CAPACITY.replace(b"?>", b' encoding="UTF-8"?>')


def test_a_content_counts_only_for_its_value() -> None:
    assert getattr(as_written("60", "6<!-- -->0"), "content", None) == "6<!-- -->0"
    for content in ("61<!-- -->", "</value>", "<x>60</x>"):
        assert not hasattr(as_written("60", content), "content")


def test_no_text_is_written_into_an_empty_tag() -> None:
    """It was put before the first byte of the file, which no ResourceManager could read any more."""
    name = f"{PREFIX}root.a.priority"
    data = b"<configuration><property><name>%b</name><value/></property></configuration>" % name.encode()
    file = parse_configuration(data, source="c")
    with pytest.raises(InputError, match="empty value"):
        file.edited({name: "1"})
    assert file.edited({name: None}) == b"<configuration></configuration>"


def test_nothing_is_written_that_does_not_read_back(tmp_path: Path) -> None:
    """A duplicate that an edit would bring to light is found before the file is replaced, not after."""
    path = tmp_path / "capacity.xml"
    twice = NAME % (b"a.maximum-capacity", b"80") + NAME % (b"a.maximum-capacity", b"90")
    data = CAPACITY.replace(b"</configuration>", twice + b"</configuration>")
    path.write_bytes(data)
    source = FileSource(LocalStore(path))
    with pytest.raises(InputError, match="does not read back"):
        source.write({f"{PREFIX}root.a.maximum-capacity": None}, source.read())
    assert path.read_bytes() == data
