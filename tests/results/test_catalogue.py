"""The catalogue of metrics: keys and their text, units and directions, and the page that shows them."""

from __future__ import annotations

import re
from pathlib import Path

from harness.results.catalogue import Key, flat, key_of, metric_of, metrics

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"
SUMMARY = {
    "makespan_s": 10.0,
    "last_loss_s": None,
    "finished": True,
    "softness": 0.25,
    "utilisation": {"memory": 0.5, "gpus": 1},
    "mean_between_ends_s": {"root.g": 2.0},
    "queues": {"root.a": {"jobs": 3, "mean_completion_s": 4.5, "why": "words", "nan": float("nan")}},
    "wall_s": 0.5,
}


def test_every_number_has_a_key_and_words_have_none() -> None:
    found = {key.text(): value for key, value in flat(SUMMARY).items()}
    assert found == {
        "makespan_s": 10,
        "utilisation.memory": 0.5,
        "utilisation.gpus": 1,
        "mean_completion_s[root.a]": 4.5,
        "jobs[root.a]": 3,
        "mean_between_ends_s.root.g": 2,
        "wall_s": 0.5,
        "softness": 0.25,
    }
    assert next(iter(found)) == "makespan_s", "the catalogue's order"
    assert list(found)[-1] == "softness", "what the catalogue lacks comes last"
    assert all(key_of(key.text()) == key for key in flat(SUMMARY))


def test_units_and_directions() -> None:
    assert (metric_of("makespan_s").unit, metric_of("makespan_s").better) == ("s", "lower")
    assert metric_of("sharing_loss").better == "higher", "it is never positive: nearer to 0 is better"
    assert metric_of("utilisation.gpus").title == "utilisation, gpus"
    assert Key("queues.jobs", "root.a").metric.count
    unknown = metric_of("queues.p99_wait_s")
    assert (unknown.unit, unknown.better, unknown.title) == ("s", "neither", "p99 wait")
    assert not metric_of("wall_s").deterministic
    assert metric_of("engine.fair.core_ratio").better == "higher"


def test_no_key_twice() -> None:
    keys = [metric.key for metric in metrics()]
    assert len(set(keys)) == len(keys)


def test_the_page_shows_the_catalogue() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \| (.+) \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert rows == [(m.key, m.title, m.unit or "—", m.better, str(m.matters or "—")) for m in metrics()]
