"""Users' YAML files: which parser reads them does not matter; what a mistyped key is told to be."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from harness.base import documents
from harness.base.documents import Strict, keys_at, parse_yaml, validated
from harness.base.errors import InputError
from harness.model.data import data_path


class Limit(BaseModel):
    most: int = 0


class Queue(BaseModel):
    weight: int = 1
    limit: Limit | None = None
    children: dict[str, Queue] | None = None


class File(BaseModel):
    queues: dict[str, Queue]


def test_a_name_that_is_called_like_a_key_hides_no_keys() -> None:
    """A queue may be called limit: below it stand a queue's keys, not a limit's."""
    of_queue = ["weight", "limit", "children"]
    assert keys_at(File, ("queues", "limit", "wieght")) == of_queue
    assert keys_at(File, ("queues", "a", "children", "limit", "wieght")) == of_queue
    assert keys_at(File, ("queues", "limit", "limit", "mots")) == ["most"]
    assert keys_at(File, ("queue",)) == ["queues"]


class Numbers(Strict):
    real: float = 0.0
    whole: int = 0


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("real: 1e9", "write 1.0e+9"),
        ("real: 2.5e9", "write 2.5e+9"),
        ("real: -1E-3", "write -1.0e-3"),
        ("whole: 1e9", "write 1000000000"),
    ],
)
def test_a_number_that_yaml_takes_for_text_is_told_how_to_be_written(text: str, advice: str) -> None:
    with pytest.raises(InputError, match="is text in YAML, not a number") as caught:
        validated(Numbers, parse_yaml(text, "file.yaml"))
    assert caught.value.hint == advice
    assert caught.value.where == "file.yaml:1"
    number = advice.removeprefix("write ")
    assert validated(Numbers, parse_yaml(f"{text.partition(':')[0]}: {number}", "file.yaml"))


def test_other_texts_are_no_numbers() -> None:
    with pytest.raises(InputError, match="should be a valid number"):
        validated(Numbers, parse_yaml("real: much", "file.yaml"))


def test_a_document_is_the_same_whichever_parser_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """libyaml reads most documents: it gives the data, lines and errors that PyYAML's own parser gives."""
    texts = [path.read_text() for path in sorted(data_path("experiments").rglob("*.yaml"))]
    texts += [
        "a: {b: !30, c: 1}",
        "a: |# b",
        "a: >1+#0\n",
        "\n\ufeffa: 1",
        "{A: 10,\tB: 1}",
        "{a: 1? 2}",
        "a: [1, 2",
        "[::1]",
        "{a: :1}",
        "a: 'b'",
        "",
    ]
    texts += ["a: &x [1]\nb: *x", "a: é\r\nb: \u2028c", "a: 1_0\nb: 0x1f\nc: 1e3\nd: .inf\ne: ~", "a: >-\n  b\n\n  c\n"]

    def told(text: str) -> object:
        try:
            found = parse_yaml(text, "file.yaml")
        except InputError as error:
            return str(error)
        return found.data, dict(found.lines)

    quick = [told(text) for text in texts]
    monkeypatch.setattr(documents, "_QuickLoader", None)
    assert [told(text) for text in texts] == quick


@pytest.mark.parametrize("text", ["[" * 200_000, "- " * 200_000 + "a", "{a: " * 200_000])
def test_a_document_of_great_depth_is_refused_and_ends_no_process(text: str) -> None:
    with pytest.raises(InputError, match=r"nested too deeply|not valid YAML"):
        parse_yaml(text, "file.yaml")
