"""Whether Hadoop's CapacityScheduler takes a file, and whether `validate` says the same, in two releases of Hadoop.

``YARNFAIR_ORACLE_FILES`` is the number of random files (300, in `make test-long` 20,000),
``YARNFAIR_ORACLE_SEED`` the first seed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness.base.errors import InputError
from harness.yarn.capacity.convert import render_configuration
from harness.yarn.capacity.loading.reading import Refusal
from harness.yarn.capacity.loading.start import find_refusals
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.capacity.tree import capacity_tree_of, read_capacity_tree
from harness.yarn.releases import ASSUMED
from harness.yarn.validation import check_document
from tests.oracle import loading
from tests.oracle.capacity_files import random_file
from tests.yarn.capacity.refused import FINE, REFUSED, TREES, changed, configuration

pytestmark = pytest.mark.java

FILES = int(os.environ.get("YARNFAIR_ORACLE_FILES") or 300)
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)
#: Release -> as `load` has it; None: the project's own.
RELEASES: dict[str | None, tuple[int, int]] = {None: (3, 5), "3.4.2": (3, 4)}
CLUSTER = {"memory-mb": 1_048_576, "vcores": 1000}
BATCH = 500


def ours(document: bytes, release: tuple[int, int]) -> list[Refusal]:
    values = parse_configuration(document, source="file").values
    # An empty value is no value to Hadoop.
    return find_refusals(
        {name: text for name, text in values.items() if text}, site={}, release=release, cluster=CLUSTER
    )


@pytest.mark.parametrize("release", RELEASES)
def test_every_refusal_of_the_list_is_hadoops(release: str | None) -> None:
    documents = [configuration(changed(tree, changes)) for _, tree, changes, _ in REFUSED]
    answers = loading.load(documents, release=release)
    taken = [row[0] for row, answer in zip(REFUSED, answers, strict=True) if not answer.refused]
    # Where the releases differ, `load` knows it.
    expected = [
        row[0] for row, document in zip(REFUSED, documents, strict=True) if not ours(document, RELEASES[release])
    ]
    assert taken == expected
    assert len(taken) <= (0 if RELEASES[release] == ASSUMED else 1), f"Hadoop takes: {taken}"


@pytest.mark.parametrize("release", RELEASES)
def test_hadoop_takes_the_good_trees_and_the_odd_files(release: str | None) -> None:
    named = {**TREES, **{name: changed(tree, changes) for name, tree, changes in FINE}}
    answers = loading.load([configuration(settings) for settings in named.values()], release=release)
    refused = {name: answer for name, answer in zip(named, answers, strict=True) if answer.refused}
    assert not refused, refused


def batches(count: int) -> Iterator[list[int]]:
    for first in range(SEED, SEED + count, BATCH):
        yield list(range(first, min(first + BATCH, SEED + count)))


@pytest.mark.parametrize("release", RELEASES)
def test_random_files_are_refused_by_both_or_by_none(release: str | None) -> None:
    different, refused, total = [], 0, 0
    for seeds in batches(FILES if release is None else max(FILES // 3, 100)):
        documents = [random_file(seed) for seed in seeds]
        answers = loading.load(documents, release=release, timeout_s=1200)
        for seed, document, answer in zip(seeds, documents, answers, strict=True):
            found = ours(document, RELEASES[release])
            refused, total = refused + answer.refused, total + 1
            # The whole check takes what the comparison takes: whatever is in the file, it raises nothing.
            assert all(one.hint for one in check_document(document, source="file").findings)
            if bool(found) != answer.refused:
                different.append(f"seed {seed}: Hadoop {answer}, ours {found}\n{document.decode()}")
    assert not different, f"{len(different)} of {total} files differ; the first:\n{different[0]}"
    assert total / 5 <= refused <= total * 4 / 5, "a differential test needs files of both kinds"


def test_a_file_that_went_through_a_queue_tree_loads_as_before() -> None:
    """`render --from` and `render`: Hadoop says of the file that comes back what it says of the first one."""
    documents = [Path("docker/scheduler/capacity-scheduler.xml").read_bytes()]
    documents += [configuration(settings) for settings in TREES.values()]
    documents += [random_file(seed) for seed in range(SEED, SEED + 60)]
    before, after = [], []
    for document in documents:
        values = parse_configuration(document, source="file").values
        with contextlib.suppress(InputError):  # a queue twice, or a name with a dot: no tree has them
            text = yaml.safe_dump(capacity_tree_of(values, source="file"), sort_keys=False, allow_unicode=True)
            after.append(render_configuration(read_capacity_tree(yaml.safe_load(text), str)).encode())
            before.append(document)
    assert len(after) >= 60
    pairs = zip(loading.load(before), loading.load(after), after, strict=True)
    different = [(old, new, document) for old, new, document in pairs if old != new]
    assert not different, different[0]


def test_suggestions_yield_files_that_hadoop_takes() -> None:
    """Every suggestion that is a change of the file, applied: Hadoop refuses nothing that it did not refuse before."""
    before, after = [], []
    for seed in range(SEED, SEED + 400):
        document = random_file(seed)
        for finding in check_document(document, source="file").findings:
            if finding.fix is not None:
                before.append(document)
                edited = parse_configuration(document, source="file").edited(dict(finding.fix.properties))
                after.append(edited)
                again = check_document(edited, source="file").findings
                said = [(one.code, one.queue, one.what) for one in again]
                assert (finding.code, finding.queue, finding.what) not in said, (finding, document)
    assert len(after) >= 20
    worse = [
        (new, answer)
        for old, new, answer in zip(loading.load(before), after, loading.load(after), strict=True)
        if answer.refused and not old.refused
    ]
    assert not worse, worse[0]
