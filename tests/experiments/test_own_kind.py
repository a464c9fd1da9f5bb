"""A kind of experiment is one folder and a line in a registry: run, campaign and report then know it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import main
from harness.results.kinds import KINDS

#: The whole of a kind: a queue at a counter, served at a steady pace.
COUNTER = """
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from harness.base.documents import Strict, YamlDocument, validated
from harness.experiments.kind import Computed, Ended, Kind, KindVariant, Loaded, by_variant, hash_of
from harness.experiments.selection import EVERYTHING, Selection, check_given, chosen, expand_seeds, merge_overrides


class CounterExperiment(Strict):
    kind: Literal["counter"]
    experiment: str
    people: int = 10
    policies: list[str] = ["patient", "hasty"]
    seed: int | list[int] = 1


class Shop(Loaded):
    @property
    def kind(self) -> Kind[Shop, KindVariant]:
        return KIND  # the processes of a campaign have no registry with this test's line in it


class Counter(Kind[Shop, KindVariant]):
    name = "counter"

    def load(self, document: YamlDocument) -> Shop:
        spec = validated(CounterExperiment, document)
        return Shop(spec, document, hash_of(spec.model_dump(exclude={"seed", "policies"})))

    def variants(self, experiment, asked: Selection = EVERYTHING) -> list[KindVariant]:
        check_given(asked.settings, ["pace_s"], "pace_s")
        names = chosen(experiment.spec.policies, asked.policies, str.__eq__, str)
        settings = merge_overrides({}, asked.settings, ["pace_s"])
        made = [KindVariant(name, name, self.name, dict(settings), 0) for name in names]
        return expand_seeds(made, asked.seeds, experiment.spec.seed)

    def compute(self, experiment, variant) -> Computed:
        pace_s = float(variant.settings.get("pace_s", {"patient": 4, "hasty": 2}[variant.policy]))
        draw = random.Random(variant.seed)
        took = [pace_s * draw.uniform(0.5, 1.5) for _ in range(experiment.spec.people)]
        return Computed({"makespan_s": round(sum(took), 3), "longest": {"one_s": round(max(took), 3)}})

    def beside(self, experiment, ended: Sequence[Ended]) -> None:
        patient = {run.variant.seed: run.summary for run in ended if run.variant.policy == "patient"}
        for run in ended:
            if run.variant.seed in patient:
                run.summary["speedup"] = patient[run.variant.seed]["makespan_s"] / run.summary["makespan_s"]

    def comparison(self, experiment, ended: Sequence[Ended]) -> list[str]:
        return [f"{name} {sum(s['makespan_s'] for s in found):.1f}" for name, found in by_variant(ended).items()]


KIND = Counter()
"""


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An experiment of a kind that this test has added: its folder, its line in the registry."""
    (tmp_path / "counter_kind").mkdir()
    (tmp_path / "counter_kind" / "__init__.py").write_text(COUNTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(KINDS, "counter", "counter_kind:KIND")
    path = tmp_path / "shop.yaml"
    path.write_text("kind: counter\nexperiment: shop\nseed: [1, 2]\n")
    yield path
    sys.modules.pop("counter_kind", None)


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0), capsys.readouterr().out


def test_run_gives_directories_speed_ups_and_a_page(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = counter.parent / "out"
    code, printed = call(capsys, "run", counter, "--out", out, "--jobs", "1", "--json")
    assert code == 0
    runs = {run["variant"]: run for run in json.loads(printed)["runs"]}
    assert list(runs) == ["patient,seed=1", "hasty,seed=1", "patient,seed=2", "hasty,seed=2"]
    assert runs["hasty,seed=1"]["summary"]["speedup"] == pytest.approx(2)
    info = json.loads((out / "hasty,seed=2" / "run.json").read_text())
    assert (info["exit"], info["experiment"]["people"]) == (0, 10)
    # A head of a table may break within a long name.
    assert "longest one_s" in (out / "report.html").read_text().replace("<wbr>", "")
    code, printed = call(capsys, "compare", out, "--json")
    assert code == 0
    assert {group["label"] for group in json.loads(printed)["contests"][0]["groups"]} >= {"patient", "hasty"}


def test_run_goes_on_where_it_was_left(counter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = counter.parent / "out"

    def began() -> dict[str, int]:
        return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/run.json")}

    assert call(capsys, "run", counter, "--out", out, "--jobs", "1", "--no-report")[0] == 0
    first = began()
    assert call(capsys, "run", counter, "--out", out, "--jobs", "1", "--no-report", "--resume")[0] == 0
    assert began() == first, "--resume keeps what has ended"
    (out / "hasty,seed=2" / "summary.json").unlink()
    assert call(capsys, "run", counter, "--out", out, "--jobs", "1", "--no-report", "--resume")[0] == 0
    assert {name for name, node in began().items() if node != first[name]} == {"hasty,seed=2"}
    again = began()
    assert call(capsys, "run", counter, "--out", out, "--jobs", "1", "--no-report")[0] == 0
    assert not set(began().items()) & set(again.items()), "what has ended runs again"


def test_a_campaign_takes_it_side_by_side(
    counter: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(counter.parent))
    path, out = counter.parent / "shops.yaml", counter.parent / "shops"
    path.write_text("campaign: shops\nexperiments: [shop.yaml]\nsettings: {pace_s: [3, 5]}\nskip: [{seed: 2}]\n")
    code, printed = call(capsys, "campaign", "run", path, "--out", out, "--jobs", "1", "--json")
    assert code == 0
    assert sorted(cell["name"] for cell in json.loads(printed)["cells"]) == sorted(
        f"shop {policy},pace_s={pace},seed=1" for policy in ("patient", "hasty") for pace in (3, 5)
    )
    code, printed = call(capsys, "campaign", "run", path, "--out", out, "--json")
    assert (json.loads(printed)["ran"], json.loads(printed)["kept"]) == (0, 4)
    code, printed = call(capsys, "report", out, "-o", counter.parent / "page.html", "--json")
    assert code == 0
    assert len(json.loads(printed)["runs"]) == 4
