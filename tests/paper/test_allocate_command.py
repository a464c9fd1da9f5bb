"""``yarnfair allocate`` as a user calls it: the answer's shape, exit codes, and one line for whatever is wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.base.errors import InputError
from harness.cli import main
from harness.paper.steps import read_scenario

TABLE_1 = """\
capacity: 100
queues: {A: {weight: 1}, B: {}}
arrivals: [{A: 20, B: 100}, {A: 40, B: 60}, {A: 80, B: 50}, {A: 60, B: 50}]
steps: 4
"""


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["allocate", *argv])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(TABLE_1)
    return path


def test_json_is_one_document(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, str(scenario), "--policy", "ltrf", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "policy": "ltrf",
        "steps": [{"A": 20, "B": 80}, {"A": 40, "B": 60}, {"A": 80, "B": 20}, {"A": 60, "B": 40}],
        "totals": {"A": 200, "B": 200},
        "counted": {"A": 200, "B": 200},
    }


def test_the_table_fits_eighty_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wide.yaml"
    names = [f"a-rather-long-queue-name-{index}" for index in range(12)]
    path.write_text(
        f"capacity: 50\nqueues: {{{', '.join(n + ': {}' for n in names)}}}\narrivals: [{{{names[0]}: 120}}]\n"
    )
    code, out, _ = call(capsys, str(path), "--policy", "fair")
    assert code == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    assert all(name in out for name in names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("capacity: [", "is not YAML"),
        ("\t- x", "is not YAML"),
        ("- 1", "the scenario is not a mapping"),
        ("capacity: 1", "has no queues"),
        ("capacity: 1\nqueues: {A: }\narrivals: []\nextra: 1", ":4: unknown field 'extra'"),
        ("capacity: 0\nqueues: {A: }\narrivals: []", ":1: capacity is '0'"),
        ("capacity: 2.5\nqueues: {A: }\narrivals: []", ":1: capacity is '2.5'"),
        ("capacity: .nan\nqueues: {A: }\narrivals: []", ":1: capacity is '.nan'"),
        ("capacity: {vcores: 2}\nqueues: {A: }\narrivals: []", "a capacity of several resources"),
        ("capacity: 1\nqueues: {}\narrivals: []", ":2: no queues"),
        ("capacity: 1\nqueues: {A: {weight: -1}}\narrivals: []", ":2: the weight of 'A' is '-1'; weights are above 0"),
        ("capacity: 1\nqueues: {A: {weight: 0}}\narrivals: []", "weights are above 0"),
        ("capacity: 1\nqueues: {A: {weight: .inf}}\narrivals: []", "not a finite decimal number"),
        ("capacity: 1\nqueues: {A: {weight: 1e99999999999}}\narrivals: []", "not a finite decimal number"),
        (
            "capacity: 1\nqueues: {A: {weight: 1e61}}\narrivals: []",
            ":2: the weight of 'A' is '1e61'; give a number between",
        ),
        ("capacity: 1\nqueues: {A: {weight: 9e-61}}\narrivals: []", ":2: the weight of 'A' is '9e-61'; give a number"),
        (
            "capacity: {x: 1e61}\nqueues: {A: {task: {x: 1}}}",
            ":1: the capacity of 'x' is '1e61'; give a number between",
        ),
        ("capacity: {x: 1}\nqueues:\n  A: {task: {x: 1e-61}}", ":3: x of the task of 'A' is '1e-61'; give a number"),
        ("capacity: 1\nqueues: {A: {weight: heavy}}\narrivals: []", "'heavy', not a finite decimal number"),
        ("capacity: 1\nqueues: {A: {wieght: 1}}\narrivals: []", ":2: unknown field 'wieght' of queue 'A'"),
        ("capacity: 1\nqueues: {A: {}, A: {}}\narrivals: []", ":2: 'A' appears twice in queues"),
        ("capacity: 1\nqueues: {a.b: {}}\narrivals: []", "'a.b' is not a queue name"),
        ("capacity: 1\nqueues: {G: {children: {A: {}}}, A: {}}\narrivals: []", "two leaves are called 'A'"),
        ("capacity: 1\nqueues: {G: {children: {}}}\narrivals: []", "'G' has no children"),
        ("capacity: 1\nqueues: &q {G: {children: *q}}\narrivals: []", "contains itself"),
        ("capacity: 1\nqueues: {A: {}}\narrivals: {A: 1}", ":3: arrivals is not a list"),
        (
            "capacity: 1\nqueues: {A: {}}\narrivals:\n- {A: 1}\n- {B: 1}",
            ":5: arrivals for 'B', which is not a leaf queue",
        ),
        ("capacity: 1\nqueues: {A: {}}\narrivals: [{A: 1.5}]", ":3: arrivals of 'A' in step 1 is '1.5'"),
        ("capacity: 1\nqueues: {A: {}}\narrivals: [{A: -1}]", "give a whole number of at least 0"),
        ("capacity: 1\nqueues: {A: {}}\narrivals: [{A: true}]", "not a finite decimal number"),
        ("capacity: 1\nqueues: {A: {}}\narrivals: []\nsteps: 1e9", "asks for 1,000,000,000 steps"),
        ("capacity: 100000000\nqueues: {A: {}}\narrivals: [{A: 100000000}]", "comparisons"),
        ("x: &a [1,1,1,1,1,1,1,1,1,1]\ncapacity: 1", ":1: unknown field 'x'"),
        ("capacity: !!python/object/apply:os.system [ls]\nqueues: {A: }\narrivals: []", "not a finite decimal number"),
    ],
)
def test_bad_scenarios_get_one_line(
    scenario: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    scenario.write_text(text)
    code, out, err = call(capsys, str(scenario), "--policy", "ltrf", "--json")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith(f"yarnfair: {scenario}")
    assert message in err


def test_a_billion_laughs_end(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["capacity: 1", "queues: {A: {}}", "arrivals:", "- &s0 {A: 1}"]
    scenario.write_text("\n".join(lines) + "\n" + "- *s0\n" * 2000)
    assert call(capsys, str(scenario), "--policy", "ltrf")[0] == 0
    deep = "x: &x0 {a: {}}\n" + "".join(
        f"x{i}: &x{i} {{children: {{" + ", ".join(f"q{i}{j}: *x{i - 1}" for j in range(9)) + "}}\n" for i in range(1, 9)
    )
    scenario.write_text(f"capacity: 1\n{deep}queues: {{r: *x8}}\narrivals: []\n")
    code, _, err = call(capsys, str(scenario), "--policy", "ltrf")
    assert (code, err.count("\n")) == (1, 1)


def test_nesting_without_end(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text("queues: " + "[" * 100_000)
    code, _, err = call(capsys, str(scenario), "--policy", "ltrf")
    assert (code, err.count("\n")) == (1, 1)
    scenario.write_text("capacity: 1\nqueues: " + "{a: {children: " * 100 + "}}" * 100 + "\narrivals: []")
    assert "deeper" in call(capsys, str(scenario), "--policy", "ltrf")[2]


def test_a_scenario_that_never_drains(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text("capacity: 1\nqueues: {A: {}, B: {}}\narrivals: [{A: 1, B: 1}]")
    code, _, err = call(capsys, str(scenario), "--policy", "static")
    assert code == 1
    assert "static never serves the tasks of B; give steps: N" in err


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"capacity: \xff\xfe")
    for path, message in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file"), (binary, "not UTF-8")):
        code, out, err = call(capsys, str(path), "--policy", "ltrf")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert message in err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--policy", "nobody"],
        ["--policy", "ltrf", "--set", "t_wait=3"],
        ["--policy", "hltrf", "--set", "t_wait=soon"],
        ["--policy", "hltrf", "--set", "t_wait"],
        ["--policy", "hltrf", "--set", "t_wait=3", "--set", "t_wait=4"],
        ["--policy", "ltrf", "--wrong"],
    ],
)
def test_wrong_calls_are_usage_errors(scenario: Path, capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    code, out, err = call(capsys, str(scenario), *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_t_wait_may_be_infinite(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, str(scenario), "--policy", "hltrf", "--set", "t_wait=inf")[0] == 0


YAMLISH = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from([1e308, math.inf, math.nan, "A", "x", ""])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["A", "B", "weight", "children", "capacity", "x"]), inner, max_size=3),
    ),
    max_leaves=8,
)


def read_or_refused(text: str) -> None:
    """No other exception, and a refusal is one line that says where."""
    try:
        capacity, told = read_scenario(text, "x.yaml").capacity, "x.yaml"
    except InputError as error:
        capacity, told = 1, error.line()
    assert capacity >= 1
    assert told.startswith("x.yaml")
    assert "\n" not in told


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(YAMLISH, YAMLISH, YAMLISH, YAMLISH)
def test_any_document_is_read_or_refused(capacity: object, queues: object, arrivals: object, steps: object) -> None:
    document = {"capacity": capacity, "queues": queues, "arrivals": arrivals, "steps": steps}
    text = json.dumps(document).replace("NaN", ".nan").replace("Infinity", ".inf")
    read_or_refused(text)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refused(text)


@pytest.mark.parametrize("policy", ["ltrf", "naive-hltrf", "hltrf", "fair", "drf", "tetris"])
def test_weights_at_both_ends_of_their_range_in_a_deep_tree(
    scenario: Path, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    queues = "{x1: {}, y1: {}}"
    for depth in range(2, 8):  # the shares below are less than a float holds
        queues = f"{{x{depth}: {{weight: 1e60}}, y{depth}: {{weight: 1e-60, children: {queues}}}}}"
    scenario.write_text(f"capacity: 3\nqueues: {queues}\narrivals: [{{x1: 3, y1: 2, x7: 4}}, {{x1: 1}}]\n")
    code, out, err = call(capsys, str(scenario), "--policy", policy, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["totals"] | {"x1": 4, "y1": 2, "x7": 4} == json.loads(out)["totals"]


def test_resources_at_both_ends_of_their_range_make_figures(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario.write_text("capacity: {x: 1e60, y: 1e-60}\nqueues: {A: {task: {x: 1e-60}}, B: {task: {y: 1e60, x: 1}}}\n")
    for policy in ("static", "drf", "qknober"):
        for form in ((), ("--json",)):
            code, _, err = call(capsys, str(scenario), "--policy", policy, *form)
            assert (code, err) == (0, "")
