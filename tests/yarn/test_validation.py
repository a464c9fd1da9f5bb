"""The one entry point that checks a scheduler's configuration, whichever scheduler and wherever it is kept."""

from __future__ import annotations

from harness.yarn.validation import check_document, check_properties

PREFIX = "yarn.scheduler.capacity."


def as_file(values: dict[str, str]) -> bytes:
    inner = "\n".join(f"<property><name>{n}</name><value>{v}</value></property>" for n, v in values.items())
    return f"<configuration>\n{inner}\n</configuration>".encode()


def test_the_outermost_element_decides_which_scheduler_is_meant() -> None:
    assert check_document(b"<allocations><queue name='a'/></allocations>", source="a.xml").valid
    found = check_document(b"<allocations><queue name='a'><wieght>2</wieght></queue></allocations>", source="a.xml")
    assert "write <weight>" in [one.hint for one in found.errors]
    good = {f"{PREFIX}root.queues": "a", f"{PREFIX}root.a.capacity": "100"}
    assert check_document(as_file(good), source="c.xml").valid
    assert not check_document(as_file({**good, f"{PREFIX}root.a.capacity": "50"}), source="c.xml").valid


def test_properties_of_a_store_give_the_findings_of_the_same_properties_in_a_file() -> None:
    values = {f"{PREFIX}root.queues": "a,b", f"{PREFIX}root.a.capacity": "60", f"{PREFIX}root.b.capacity": "30"}
    of_store, of_file = (
        check_properties(values, source="the store"),
        check_document(as_file(values), source="c.xml"),
    )
    assert [one.what for one in of_store.errors] == [one.what for one in of_file.errors] != []
    assert check_properties({**values, f"{PREFIX}root.b.capacity": "40"}, source="the store").valid
