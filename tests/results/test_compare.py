"""Groups of runs against each other: how they are grouped and paired, what is said of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.base.errors import CallError, InputError
from harness.cli.compare import _row
from harness.results.catalogue import Key
from harness.results.compare import Comparison, Contender, Row, Verdict, compare, verdict_sentences
from harness.results.runs import Group, groups
from tests.results.conftest import Write, call


def verdicts(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[tuple[str, str], dict[str, Any]]:
    code, out, _ = call(capsys, "compare", *arguments, "--json")
    assert code == 0
    (contest,) = json.loads(out)["contests"]
    return {(row["metric"], own["label"]): {**row, **own} for row in contest["metrics"] for own in row["contenders"]}


def pool(write: Write, name: str, factor: float, count: int = 10, spread: float = 0.02, **more: Any) -> None:
    """Runs whose makespan varies from seed to seed alike in every pool, times `factor`."""
    for seed in range(1, count + 1):
        rng = np.random.default_rng(seed)
        makespan = 1000.0 * (1 + spread * rng.normal())
        noise = 1 + 0.002 * np.random.default_rng(seed + len(name) * 1000).normal()
        write(f"{name}/{seed}", seed=seed, makespan_s=makespan * factor * noise, **more)


def test_a_worse_group_is_named_and_paired_by_seed(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(write, "old", 1.0)
    pool(write, "new", 1.03)
    found = verdicts(capsys, tmp_path / "old", tmp_path / "new")
    row = found["makespan_s", "new"]
    assert (row["verdict"], row["paired"], row["pairs"], row["better"], row["unit"]) == (
        "worse",
        True,
        10,
        "lower",
        "s",
    )
    assert row["relative"] == pytest.approx(0.03, abs=0.005)
    low, high = row["interval"]
    assert low < 30 < high
    assert row["p_adjusted"] <= 0.05
    assert found["mean_completion_s[root.a]", "new"]["verdict"] == "equal"


def test_without_common_seeds_groups_do_not_pair(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for k in range(8):
        write(f"a/{k}", seed=k, makespan_s=1000.0 + k)
        write(f"b/{k}", seed=100 + k, makespan_s=900.0 + k)
    row = verdicts(capsys, f"before={tmp_path}/a/*", f"after={tmp_path}/b/*")["makespan_s", "after"]
    assert (row["paired"], row["test"], row["verdict"]) == (False, "rank sums", "better")
    assert row["difference"] == -100


def test_more_than_one_contender_and_the_reference_can_be_chosen(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for variant, factor in (("fair", 1.0), ("ltrf", 0.9), ("hltrf", 0.95)):
        pool(write, variant, factor, variant=variant)
    found = verdicts(capsys, tmp_path)
    assert {label for _, label in found} == {"ltrf", "hltrf"}, "fair is what the others are held against"
    assert found["makespan_s", "ltrf"]["verdict"] == "better"
    found = verdicts(capsys, tmp_path, "--reference", "ltrf")
    assert found["makespan_s", "fair"]["verdict"] == "worse"
    assert call(capsys, "compare", tmp_path, "--reference", "nope")[0] == 2


def test_two_folders_with_several_policies_are_compared_policy_by_policy(write: Write, tmp_path: Path) -> None:
    for folder in ("old", "new"):
        for variant in ("fair", "ltrf"):
            for seed in (1, 2):
                write(f"{folder}/{variant},seed={seed}", variant=f"{variant},seed={seed}", seed=seed)
    chosen = groups([str(tmp_path / "old"), str(tmp_path / "new")])
    assert [contest.title for contest in chosen.contests] == ["fair", "ltrf"]
    assert [[group.label for group in contest.groups] for contest in chosen.contests] == [["old", "new"]] * 2
    assert all(len(group.runs) == 2 for contest in chosen.contests for group in contest.groups)


def test_different_experiments_of_one_name_are_no_repeats(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for digest, folder in (("aaaa", "old"), ("bbbb", "new")):
        for variant in ("fair", "ltrf"):
            for seed in (1, 2):
                write(f"all/{folder}/{variant}{seed}", variant=variant, seed=seed, digest=digest)
    chosen = groups([str(tmp_path / "all")])
    assert [contest.title for contest in chosen.contests] == ["made-up bbbb", "made-up aaaa"]
    assert all(len(group.runs) == 2 for contest in chosen.contests for group in contest.groups)
    assert chosen.remarks == []
    # Between folders that is what is asked for, perhaps; it is said.
    code, _, err = call(capsys, "compare", tmp_path / "all" / "old", tmp_path / "all" / "new")
    assert code == 0
    said = "made-up is 2 different experiments (aaaa: old, bbbb: new); what differs may come from that"
    assert err.splitlines() == [f"warning: fair: {said}", f"warning: ltrf: {said}"]
    one, two = tmp_path / "all" / "old" / "fair1", tmp_path / "all" / "new" / "fair2"
    (remark,) = groups([str(one), str(two)]).remarks
    assert "(aaaa: fair1, bbbb: fair2)" in remark


def test_single_runs_are_compared_but_not_tested(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = write("x/fair", variant="fair"), write("x/ltrf", makespan_s=900.0)
    row = verdicts(capsys, one, two)["makespan_s", "ltrf"]
    assert (row["verdict"], row["p"], row["interval"], row["difference"]) == ("not tested", None, None, -100)
    assert "not tested" in row["words"]


def test_it_begins_with_its_verdict_in_two_sentences(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(write, "old", 1.0)
    pool(write, "new", 1.03)
    pool(write, "old again", 1.0)
    code, out, _ = call(capsys, "compare", tmp_path / "old", tmp_path / "new", tmp_path / "old again")
    assert code == 0
    first, second = (" ".join(block.split("reference    ")[0].split()) for block in out.strip().split("\n\n"))
    assert re.fullmatch(
        r"new \(10 runs\) against old \(10 runs\) Against old, new is worse in 1 metric \(makespan \+[23]\.\d %\)\. "
        r"Of (\d+) metrics \d+ are equal in every run\.",
        first,
    ), first
    assert "Nothing is shown: old again differs from old in no metric by more than chance." in second
    (contest,) = json.loads(call(capsys, "compare", tmp_path / "old", tmp_path / "new", "--json")[1])["contests"]
    assert contest["verdicts"]["new"].startswith("Against old, new is worse in 1 metric (makespan +")


def test_a_verdict_says_what_is_missing_for_one(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = write("x/fair", variant="fair"), write("x/ltrf", makespan_s=900.0)
    out = " ".join(call(capsys, "compare", one, two)[1].split())
    assert "Nothing is shown: ltrf and fair have one run each." in out
    assert "1 is not tested: take more seeds (`--seed 1-12`)." in out
    pool(write, "old", 1.0, count=3)
    pool(write, "new", 1.5, count=3)
    html = tmp_path / "page.html"
    out = " ".join(call(capsys, "compare", tmp_path / "old", tmp_path / "new", "--html", html)[1].split())
    assert "1 differs in too few runs to tell: take more seeds" in out
    assert "take more seeds (<code>--seed 1-12</code>)" in html.read_text(), "no backticks of a terminal on a page"


def test_enough_runs_are_not_asked_for_again(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twelve pairs, two of which differ: no number of seeds that is like these would tell."""
    for seed in range(12):
        write(f"old/{seed}", seed=seed, makespan_s=1000.0)
        write(f"new/{seed}", seed=seed, makespan_s=1000.0 + (seed < 2))
    out = " ".join(call(capsys, "compare", tmp_path / "old", tmp_path / "new")[1].split())
    assert "its 95 % interval by bootstrap (4,000 resamples), a permutation test on ranks (" in out
    assert "1 differs in too few runs to tell" in out
    assert "take more seeds" not in out
    assert "in too few runs to tell it from chance" in out


def test_a_wide_interval_stands_apart_from_the_median() -> None:
    own = Contender("b", 9, 0.999, -2e-5, 0.0, (-4.75e-5, -9.93e-6), 9, "t", 0.2, 0.2, "no difference shown", "", 0)
    line = _row(Row(Key("utilisation.memory", None), 9, 0.999, (own,)), own)[0]
    assert "0.999  -4.8e-05 to -9.9e-06  0.200" in line


def test_what_answers_most_is_named_first() -> None:
    def row(name: str, relative: float, verdict: Verdict, queue: str | None = None) -> Row:
        own = Contender("b", 9, 1.0, relative, relative, None, None, None, 0.01, 0.01, verdict, "", 1)
        return Row(Key(name, queue), 9, 1.0, (own,))

    rows = [row("queues.p95_completion_s", 1.0 + k, "worse", f"root.q{k}") for k in range(4)]
    rows += [row("makespan_s", 0.02, "worse"), row("sharing_loss", -0.5, "better")]
    found = Comparison("", [Group("a", ()), Group("b", ())], rows, "bh", 0.05)
    first, second = verdict_sentences(found, "b")
    assert first.startswith("Against a, b is better in 1 metric (sharing loss, mean -50.0 %) and worse in ")
    assert first.endswith(
        "worse in 5 metrics (makespan +2.0 %; 95th percentile of completion, q3 +400.0 %; "
        "95th percentile of completion, q2 +300.0 %; 2 more)."
    )
    assert second == "All 6 metrics differ by more than chance."


def test_what_goes_beyond_the_axis_is_an_arrow_and_figures(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(write, "old", 1.0)
    pool(write, "new", 5.0)
    page = tmp_path / "page.html"
    assert call(capsys, "compare", tmp_path / "old", tmp_path / "new", "--html", page)[0] == 0
    text = page.read_text()
    found = re.search(r">\+(\d+)\.\d %</td>", text)
    assert found is not None
    assert 380 < int(found[1]) < 420
    # Worse is to the left whatever the metric's direction, and there is no dot inside the axis.
    assert 'd="M0 0L-8 6L0 12Z"' in text
    assert 'd="M0 0L8 6L0 12Z"' not in text
    pool(write, "near", 1.5)
    assert call(capsys, "compare", tmp_path / "old", tmp_path / "near", "--html", page)[0] == 0
    assert 'd="M0 0' not in page.read_text()


def test_a_page_begins_with_a_count_of_each_contender_and_folds_what_shows_nothing(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Better is drawn to the right, whether a metric is better high or low; metrics that are equal are folded."""
    for seed in range(1, 11):
        small = 0.001 * seed
        write(f"old/{seed}", seed=seed, makespan_s=1000.0 + small, sharing_benefit=0.5 + small)
        write(f"new/{seed}", seed=seed, makespan_s=900.0 + 2 * small, sharing_benefit=0.6 + 2 * small)
    page = tmp_path / "page.html"
    assert call(capsys, "compare", tmp_path / "old", tmp_path / "new", "--html", page)[0] == 0
    text = page.read_text().replace("<wbr>", "")
    counts, rest = text[text.index('<table class="counts">') :].split("</table>", 1)
    # The benefit is a fifth higher, the makespan a tenth lower: both are better, and nothing is worse.
    better, worse = re.findall(r'<td class="most"><span class="([\w-]*)">(\d+)</span>', counts)
    assert (better, worse) == (("good-text", "2"), ("", "0"))
    opened = rest[: rest.index("<details")]
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)%"', opened)]
    assert len(dots) == 2
    assert all(x > 55 for x in dots), "better is to the right"
    assert "mean completion" not in opened
    folded = rest[rest.index("<summary>Equal in every run") :]
    assert "mean completion" in folded
    # Ticks are round.
    assert {float(x) for x in re.findall(r'"left: [\d.]+%">(\d+)', opened)} <= {0, 5, 10, 15, 20, 25, 30}


def test_too_few_repeats_are_said_to_be_too_few(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(write, "old", 1.0, count=3)
    pool(write, "new", 1.5, count=3)
    assert verdicts(capsys, tmp_path / "old", tmp_path / "new")["makespan_s", "new"]["verdict"] == "too few repeats"


def test_noise_is_not_called_a_difference(write: Write, tmp_path: Path) -> None:
    """Groups that differ by chance only, in noisy metrics: one of 20 contests may say something (5 %), four not."""
    said = 0
    for trial in range(20):
        rng = np.random.default_rng(trial)
        for name in ("a", "b"):
            for seed in range(7):
                values = {f"extra_{k}": float(rng.normal(100, 5)) for k in range(3)}
                write(
                    f"{trial}/{name}/{seed}",
                    seed=seed + (50 if name == "b" else 0),
                    makespan_s=float(rng.normal(1000, 20)),
                    last_loss_s=float(rng.normal(300, 20)),
                    sharing_benefit=float(rng.normal(0.2, 0.02)),
                    **values,
                )
        chosen = groups([str(tmp_path / str(trial) / "a"), str(tmp_path / str(trial) / "b")])
        found = compare(chosen.contests[0])
        judged = [own for row in found.rows if row.judged for own in row.contenders]
        said += any(own.verdict in ("better", "worse") for own in judged)
    assert said <= 3


def test_runs_that_do_not_count_are_left_out_and_said(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(write, "old", 1.0, count=3)
    pool(write, "new", 1.0, count=3)
    write("new/9", seed=9, exit=None)
    write("new/10", seed=10, exit=4)
    code, out, err = call(capsys, "compare", tmp_path / "old", tmp_path / "new", "--json")
    assert code == 0
    assert [len(group["runs"]) for group in json.loads(out)["contests"][0]["groups"]] == [3, 3]
    assert err.count("left out") == 2


def test_the_text_is_80_columns_wide_and_the_page_complete(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool(write, "old & <older>", 1.0)
    pool(write, "new", 1.03)
    page = tmp_path / "deep" / "page.html"
    code, out, _ = call(capsys, "compare", tmp_path / "old & <older>", tmp_path / "new", "--html", page)
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith(("    ", "page")))
    assert "worse by +" in out
    text = page.read_text()
    assert "old &amp; &lt;older&gt;" in text
    assert "<script" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert text.count("<circle") > 5


def test_versions_that_are_only_a_word_are_shown_as_they_stand(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = write("fair", variant="fair"), write("ltrf")
    info = json.loads((one / "run.json").read_text())
    (one / "run.json").write_text(json.dumps({**info, "versions": "0.0.9-by-hand"}))
    assert call(capsys, "compare", one, two, "--html", tmp_path / "page.html")[0] == 0
    assert "0.0.9-by-hand" in (tmp_path / "page.html").read_text()


def test_wrong_calls(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write("a/1")
    assert call(capsys, "compare", one)[0] == 2
    assert call(capsys, "compare", tmp_path / "nothing", one)[0] == 1
    assert call(capsys, "compare")[0] == 2
    (tmp_path / "b").mkdir()
    code, _, err = call(capsys, "compare", one, tmp_path / "b")
    assert (code, err.count("\n")) == (1, 1)
    with pytest.raises(InputError, match="nothing matches"):
        groups([f"x={tmp_path}/no/*"])
    with pytest.raises(CallError):
        groups([str(one), str(one)])
