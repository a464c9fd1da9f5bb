"""A store over REST: all queues in one call, and another writer's change found. The real store: test_live_capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.base.errors import InputError
from harness.yarn.capacity.source import FileSource, StoreSource, open_source
from harness.yarn.errors import BadAnswer, NoActiveRm, Refused
from harness.yarn.files import FileChanged, LocalStore
from harness.yarn.http import Answer

A, B = "yarn.scheduler.capacity.root.a.capacity", "yarn.scheduler.capacity.root.b.capacity"


class Store:
    """What the RM's store does, with a meddler before and after each change."""

    def __init__(self) -> None:
        self.values = {"yarn.scheduler.capacity.root.queues": "a,b", A: "1w", B: "1w"}
        self.version = 1
        self.has_version = True
        self.shows_version: Callable[[int], Any] = lambda version: {"versionID": str(version)}
        self.puts: list[Any] = []
        self.before_put: Callable[[], None] = lambda: None
        self.says = "Configuration change successfully applied."
        #: The address of the RM that answers.
        self.current = "http://rm1"
        self.fails_over_at = ""

    def set(self, name: str, value: str | None) -> None:
        if value is None:
            self.values.pop(name, None)
        else:
            self.values[name] = value

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        repeatable: bool,
        words: bool = False,
        only: str | None = None,
    ) -> Answer:
        if self.fails_over_at and path.endswith(self.fails_over_at):
            self.current = "http://rm2"
        if only not in (None, self.current):
            raise NoActiveRm("standby", where=path)
        if path.endswith("/version"):
            if not self.has_version:
                raise Refused("HTTP 404", status=404)
            return Answer(path, 200, self.shows_version(self.version), {})
        if method == "GET":
            return Answer(path, 200, {"property": [{"name": k, "value": v} for k, v in self.values.items()]}, {})
        assert words
        assert not repeatable
        self.puts.append(body)
        self.before_put()
        for queue in body["update-queue"]:
            for entry in queue["params"]["entry"]:
                self.set(f"yarn.scheduler.capacity.{queue['queue-name']}.{entry['key']}", entry["value"])
        self.version += 1
        return Answer(path, 200, self.says, {})


def source(store: Store) -> StoreSource:
    return StoreSource(store)  # type: ignore[arg-type]


def test_nothing_is_read_or_changed_before_the_cluster_is_recognised() -> None:
    class Stranger(Exception):
        pass

    def another() -> None:
        raise Stranger

    store = Store()
    own = source(store)
    before = own.read()
    own.recognise = another
    with pytest.raises(Stranger):
        own.read()
    with pytest.raises(Stranger):
        own.write({A: "3w"}, before)
    assert store.puts == []


def test_what_another_rm_answers_after_a_failover_is_read_only_if_that_is_recognised_too() -> None:
    class Stranger(Exception):
        pass

    store = Store()
    own = source(store)

    def recognise() -> None:
        if store.current != "http://rm1":
            raise Stranger

    own.recognise = recognise
    assert own.read().mark == 1
    for path in ("/version", "/scheduler-conf"):
        store.current, store.fails_over_at = "http://rm1", path
        with pytest.raises(Stranger):
            own.read()


def test_a_change_is_sent_to_no_other_rm_than_the_one_that_was_recognised() -> None:
    store = Store()
    own = source(store)
    before, recognised = own.read(), []
    own.recognise = lambda: recognised.append(store.current)
    store.fails_over_at = "/version"
    with pytest.raises(NoActiveRm):
        own.write({A: "3w"}, before)
    assert (store.puts, recognised) == ([], ["http://rm1"])
    store.fails_over_at = ""
    assert own.write({A: "3w"}, before).values[A] == "3w"
    assert recognised[-1] == "http://rm2"


def test_all_queues_are_written_in_one_call_and_only_what_differs() -> None:
    store = Store()
    at = source(store).read()
    after = source(store).write({A: "2w", B: "1w"}, at)
    assert (after.values[A], after.mark) == ("2w", 2)
    assert store.puts == [
        {"update-queue": [{"queue-name": "root.a", "params": {"entry": [{"key": "capacity", "value": "2w"}]}}]}
    ]
    source(store).write({A: "2w"}, after)
    assert len(store.puts) == 1, "nothing to change is no call"


def test_a_change_since_the_look_is_found_before_anything_is_written() -> None:
    store = Store()
    at = source(store).read()
    store.set("yarn.scheduler.capacity.root.a.maximum-capacity", "50")
    store.version += 1
    with pytest.raises(FileChanged, match="since it was read"):
        source(store).write({A: "2w"}, at)
    assert store.puts == []


def test_a_change_at_the_same_moment_is_found_and_stays() -> None:
    store = Store()
    at = source(store).read()

    def meddle() -> None:
        store.set("yarn.scheduler.capacity.root.b.maximum-capacity", "50")
        store.version += 1

    store.before_put = meddle
    with pytest.raises(FileChanged, match="at the same moment"):
        source(store).write({A: "2w"}, at)
    assert store.values["yarn.scheduler.capacity.root.b.maximum-capacity"] == "50"
    assert store.values[A] == "2w"


def test_without_versions_what_it_has_is_compared() -> None:
    store = Store()
    store.has_version = False
    at = source(store).read()
    assert at.mark is None
    assert source(store).write({A: "3w"}, at).values[A] == "3w"
    with pytest.raises(FileChanged):
        source(store).write({A: "4w"}, at)


def test_the_wrapped_version_of_hadoop_3_5_counts_as_the_text_before_it() -> None:
    store = Store()
    store.shows_version = lambda version: {"configversion": {"versionID": version}}
    at = source(store).read()
    assert at.mark == 1
    assert source(store).write({A: "3w"}, at).mark == 2
    with pytest.raises(FileChanged, match="since it was read"):
        source(store).write({A: "4w"}, at)


@pytest.mark.parametrize("shown", [{"versionID": "1x"}, {"configversion": "1"}, {"versionID": "9" * 20}, {}, "1", True])
def test_a_version_that_is_no_number_is_a_bad_answer(shown: Any) -> None:
    store = Store()
    store.shows_version = lambda version: shown
    with pytest.raises(BadAnswer):
        source(store).read()


def test_an_answer_of_other_words_is_no_success() -> None:
    store = Store()
    store.says = "well"
    with pytest.raises(BadAnswer, match="not taken"):
        source(store).write({A: "2w"}, source(store).read())


def test_an_answer_without_queues_is_no_configuration() -> None:
    store = Store()
    store.values.clear()
    with pytest.raises(BadAnswer, match="no queue"):
        source(store).read()


@pytest.mark.parametrize(
    ("status", "hint"), [(403, "yarn.admin.acl"), (400, "yarn.scheduler.configuration.store.class")]
)
def test_a_store_that_refuses_says_what_mends_it(status: int, hint: str) -> None:
    class Refusing(Store):
        def request(self, *_: Any, **__: Any) -> Answer:
            raise Refused(f"HTTP {status}", status=status, where="http://rm:8088")

    client = SimpleNamespace(rest=SimpleNamespace(http=Refusing()))
    with pytest.raises(InputError, match="cannot be changed over REST") as refused:
        open_source(client, None)  # type: ignore[arg-type]
    assert refused.value.hint is not None
    assert hint in refused.value.hint


def test_a_file_is_replaced_only_if_it_is_still_the_one_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "capacity-scheduler.xml"
    text = f"<configuration><property><name>{A}</name><value>1w</value></property></configuration>"
    path.write_text(text)
    file = FileSource(LocalStore(path))
    at = file.read()
    assert file.shown(at, {A: "2w"}) == (text.encode(), text.replace("1w", "2w").encode())
    assert file.write({A: "2w"}, at).values[A] == "2w"
    assert path.read_text() == text.replace("1w", "2w")
    with pytest.raises(InputError):
        file.write({A: "3w"}, at)


def test_only_queues_properties_are_written() -> None:
    changes: Mapping[str, str | None] = {"yarn.scheduler.capacity.node-locality-delay": "1"}
    with pytest.raises(InputError, match="not a property of a queue"):
        source(Store()).write(changes, source(Store()).read())
