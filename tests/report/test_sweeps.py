"""Charts over a setting: only what belongs together is averaged, and it is said over what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.report import render_report
from harness.report.data import load_runs
from harness.report.figures import Group
from harness.report.svg import LineChart
from harness.report.sweeps import sweep_groups

Write = Callable[..., Path]
HORIZONS = (20.0, 80.0, 640.0)


def sweep(write: Write, loss: float, seeds: tuple[int, ...] = (1,), **more: Any) -> list[Path]:
    return [
        write(
            f"ltrf@outside,horizon_s={horizon_s:g},seed={seed}",
            "ltrf",
            "outside",
            settings={"horizon_s": horizon_s},
            seed=seed,
            summary={"sharing_loss_integral": loss * seed},
            **more,
        )
        for seed in seeds
        for horizon_s in HORIZONS
    ]


def losses(group: Group) -> list[float]:
    chart = group.charts[0]
    assert isinstance(chart, LineChart)
    (line,) = chart.lines
    return [float(y) for y in line.curve.y]


def groups(paths: list[Path]) -> list[Group]:
    return sweep_groups(load_runs(paths))


def test_a_mark_is_the_mean_over_the_seeds_of_one_experiment(write_run: Write) -> None:
    (group,) = groups(sweep(write_run, 10.0, (1, 2, 3)))
    assert group.title == "ltrf@outside over horizon (s)"
    assert group.text == "Each mark is one value of the setting. Means over 3 seeds a mark."
    assert losses(group) == [20.0] * 3


def test_a_policy_of_a_file_has_its_name_of_labels_and_a_single_curve_no_legend(write_run: Write) -> None:
    """The title said `fav.py:Fav@outside`, everything else `fav-Fav@outside`, and the legend `period_s 15`."""
    paths = [
        write_run(f"fav-Fav@outside,boost={boost:g}", "/home/me/fav.py:Fav", "outside",
                  settings={"boost": boost, "period_s": 15.0}, summary={"sharing_loss_integral": boost})
        for boost in (1.0, 2.0, 4.0)
    ]  # fmt: skip
    (group,) = groups(paths)
    assert (group.ident, group.title) == ("sweep-fav-Fav-outside-boost", "fav-Fav@outside over boost")
    assert group.text.startswith("Each mark is one value of the setting, with period_s 15.")
    assert not group.legend.names


@pytest.mark.parametrize(
    ("other", "ends"),
    [
        ({"backend": "local"}, (", sim", ", local")),
        ({"experiment": "another", "digest": "fedcba"}, (", another", ", ltyarn")),
        ({"digest": "fedcba9876543210"}, (", ltyarn 01234567", ", ltyarn fedcba98")),
    ],
)
def test_experiments_and_backends_are_not_averaged(
    other: dict[str, str], ends: tuple[str, str], write_run: Write, tmp_path: Path
) -> None:
    paths = [*sweep(write_run, 10.0), *sweep(write_run, 1000.0, **other)]
    one, two = groups(paths)
    assert (one.title, two.title) == tuple(f"ltrf@outside over horizon (s){end}" for end in ends)
    first, second = (1000.0, 10.0) if ends[0] == ", another" else (10.0, 1000.0)
    assert (losses(one), losses(two)) == ([first] * 3, [second] * 3)
    assert one.ident != two.ident
    assert "Means" not in one.text + two.text, "one seed, one run a mark"
    render_report(paths, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count('aria-labelledby="settings-sweep-') == len(one.charts) * 2


def test_seeds_are_counted_by_mark(write_run: Write) -> None:
    paths = sweep(write_run, 10.0, (1, 2))
    (group,) = groups(paths[:-1])
    assert group.text.endswith("Means over 1 to 2 seeds a mark.")


def test_a_setting_that_no_float_holds_is_no_place_on_an_axis(write_run: Write) -> None:
    paths = [*sweep(write_run, 10.0), write_run("odd", "ltrf", "outside", settings={"horizon_s": 10**400})]
    (group,) = groups(paths)
    assert losses(group) == [10.0] * 3
