"""Allocation files against Hadoop's own loader: settings and fair shares of random, odd, rendered and edited files."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.base.documents import parse_yaml
from harness.base.errors import InputError
from harness.clusters.jars import find
from harness.yarn.fair.dom import spliced
from harness.yarn.fair.edit import Change, edit_allocations
from harness.yarn.fair.parse import parse_allocations
from harness.yarn.fair.render import render_allocations
from harness.yarn.fair.tree import read_tree
from harness.yarn.validation import check_document
from tests.oracle.allocation_files import random_file
from tests.oracle.allocation_mutations import mutated
from tests.oracle.hadoop_allocations import ask, differences, explain, our_answer, random_cases
from tests.oracle.versions import jars
from tests.yarn.fair.odd_files import FILES
from tests.yarn.fair.trees import random_tree

pytestmark = pytest.mark.java

#: As in test_capacity_loading.py.
MUTATIONS = int(os.environ.get("YARNFAIR_ORACLE_FILES") or 300)
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)


#: The project's own release of Hadoop, and another one.
RELEASES = (None, "3.4.2")


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Asks Hadoop's classes about a list of cases; another release of them where it is named."""
    folder: Path = tmp_path_factory.mktemp("allocation-dump")

    def asked(cases: list[dict[str, Any]], release: str | None = None) -> list[dict[str, Any]]:
        lib = find() if release is None else jars(release)
        return ask(cases, lib, folder / (release or "own"), timeout_s=1200)

    return asked


def compare(cases: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    wrong = []
    for case, theirs in zip(cases, answers, strict=True):
        if found := differences(case, theirs, our_answer(case)):
            wrong.append(explain(case, found))
    assert not wrong, f"{len(wrong)} of {len(cases)} files differ; the first:\n{wrong[0]}"


def test_random_files_load_alike_and_give_equal_shares(hadoop: Any) -> None:
    cases = random_cases(101, 400, broken=0.0)
    answers = hadoop(cases)
    loaded = [answer for answer in answers if answer["loaded"]]
    queues = sum(len(answer["queues"]) for answer in loaded)
    drf = sum(1 for answer in loaded for queue in answer["queues"].values() if queue["policy"] == "drf")
    inactive = sum(
        1 for answer in loaded for queue in answer["queues"].values() if queue["steady"][0] and not queue["fair"][0]
    )
    # The comparison has to have something to compare.
    assert len(loaded) >= 300
    assert queues >= 5000
    assert min(drf, inactive) >= 500
    compare(cases, answers)


def test_broken_files_are_refused_by_both(hadoop: Any) -> None:
    cases = random_cases(102, 200, broken=0.03, depth=2)
    answers = hadoop(cases)
    assert 40 <= sum(not answer["loaded"] for answer in answers) <= 180
    compare(cases, answers)


@pytest.mark.parametrize("release", RELEASES)
def test_mutations_of_files_are_refused_by_both_or_by_none(hadoop: Any, release: str | None) -> None:
    """`validate` says of a file that the RM refuses it exactly where Hadoop's loader throws."""
    different, refused = [], 0
    total = MUTATIONS if release is None else max(MUTATIONS // 3, 100)
    for first in range(SEED, SEED + total, 500):
        cases = []
        for seed in range(first, min(first + 500, SEED + total)):
            rng = random.Random(seed)
            xml = random_file(rng, broken=rng.choice([0.0, 0.0, 0.01, 0.03]), depth=rng.choice([1, 2]))
            cases.append({"xml": mutated(rng, xml), "memory_mb": 100_000, "vcores": 100})
        for case, answer in zip(cases, hadoop(cases, release), strict=True):
            refused += not answer["loaded"]
            verdict = check_document(case["xml"].encode(), source="file")
            if verdict.refused == answer["loaded"]:
                different.append(f"Hadoop: {answer.get('error')}, ours: {verdict.findings}\n{case['xml']}")
    assert not different, f"{len(different)} of {total} files differ; the first:\n{different[0]}"
    assert total / 5 <= refused <= total * 4 / 5, "a differential test needs files of both kinds"


def test_suggestions_yield_files_that_hadoop_takes(hadoop: Any) -> None:
    """Every suggestion that is a change of the file, applied: Hadoop refuses nothing that it did not refuse before."""
    before, after = [], []
    for seed in range(SEED, SEED + 250):
        rng = random.Random(seed)
        document = mutated(rng, random_file(rng, broken=0.01, depth=2)).encode()
        for finding in check_document(document, source="file").findings:
            if finding.fix is None:
                continue
            edited = spliced(document, finding.fix.splices)
            again = check_document(edited, source="file").findings
            assert (finding.line, finding.what) not in [(one.line, one.what) for one in again]
            for cases, xml in ((before, document), (after, edited)):
                cases.append({"xml": xml.decode(), "memory_mb": 100_000, "vcores": 100})
    assert len(after) >= 30
    loaded = [[answer["loaded"] for answer in hadoop(cases)] for cases in (before, after)]
    worse = [case["xml"] for case, old, new in zip(after, *loaded, strict=True) if old and not new]
    assert not worse, worse[0]


def test_where_hadoop_hangs_we_say_so(hadoop: Any) -> None:
    # Each hang costs the Java side seconds until it is stopped: few cases.
    cases = random_cases(103, 2, broken=0.0, depth=1, nan=0.6)
    cases.append(
        {
            "xml": '<allocations><queue name="a"><weight>NaN</weight></queue><queue name="b"/></allocations>',
            "memory_mb": 4096,
            "vcores": 4,
        }
    )
    cases.append(
        {
            "xml": '<allocations><queue name="a"><weight>NaN</weight></queue><queue name="b">'
            "<maxResources>100 mb, 1 vcores</maxResources></queue></allocations>",
            "memory_mb": 4096,
            "vcores": 4,
        }
    )
    answers = hadoop(cases)
    assert [bool(answer.get("hangs")) for answer in answers[-2:]] == [False, True]
    compare(cases, answers)


def test_odd_files(hadoop: Any) -> None:
    cases = [{"xml": xml, "memory_mb": 100_000, "vcores": 100} for xml in FILES.values()]
    compare(cases, hadoop(cases))


def test_what_is_rendered_is_loaded_with_equal_settings(hadoop: Any) -> None:
    rng = random.Random(7)
    cases, trees = [], []
    for _ in range(120):
        tree = random_tree(rng)
        document = parse_yaml(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False), "queues.yaml")
        file = read_tree(document.data, document.where)
        trees.append(file)
        cases.append({"xml": render_allocations(file), "memory_mb": 241_664, "vcores": 472})
    answers = hadoop(cases)
    assert all(answer["loaded"] for answer in answers), [answer.get("error") for answer in answers]
    compare(cases, answers)
    for file, answer in zip(trees, answers, strict=True):
        assert set(file.configured_leaves) | set(file.configured_parents) | {"root"} == set(answer["queues"])


def test_what_is_edited_is_loaded_with_the_new_values(hadoop: Any) -> None:
    rng = random.Random(8)
    cases = []
    for case in random_cases(104, 60, broken=0.0, depth=1):
        document = case["xml"].encode()
        try:
            file = parse_allocations(document)
        except InputError:
            continue
        paths = [path for path in (*file.configured_leaves, *file.configured_parents) if path != "root"]
        changes = {path: Change(weight=rng.uniform(0.01, 100)) for path in rng.sample(paths, min(3, len(paths)))}
        cases.append({**case, "xml": edit_allocations(document, changes).decode()})
    assert len(cases) >= 40
    compare(cases, hadoop(cases))
