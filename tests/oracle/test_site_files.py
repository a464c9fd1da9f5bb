"""Whether a ResourceManager starts with a yarn-site.xml and its scheduler's file, and whether `validate` says the same.

The whole ResourceManager of Hadoop is initialised and its scheduler started, in two releases; nothing listens at a
port. ``YARNFAIR_ORACLE_FILES`` is the number of random pairs (200, in `make test-long` 20,000),
``YARNFAIR_ORACLE_SEED`` the first seed.
"""

from __future__ import annotations

import os

import pytest

from harness.yarn.capacity.loading.start import find_refusals
from harness.yarn.capacity.properties import parse_configuration
from harness.yarn.releases import ASSUMED
from harness.yarn.site import check_site
from harness.yarn.validation import check_document, read_site
from tests.oracle import loading
from tests.oracle.loading import Start
from tests.oracle.site_files import TAKEN_TYPES, random_start
from tests.yarn.site_refused import FINE, REFUSED, document, schedulers, site

pytestmark = pytest.mark.java

FILES = int(os.environ.get("YARNFAIR_ORACLE_FILES") or 200)
SEED = int(os.environ.get("YARNFAIR_ORACLE_SEED") or 1)
#: Release -> as `load` has it; None: the project's own.
RELEASES: dict[str | None, tuple[int, int]] = {None: (3, 5), "3.4.2": (3, 4)}
BATCH = 500


def ours(start: Start, release: tuple[int, int]) -> list[str]:
    """What our own check says that the ResourceManager refuses."""
    given = read_site(start.site, source="yarn-site.xml")
    if start.scheduler == "fair":
        return [one.what for one in check_document(start.document, source="file", site=given).findings if one.refused]
    # `check_document` has no release: it takes the one that is assumed.
    values = parse_configuration(start.document, source="file").values
    found = find_refusals({name: text for name, text in values.items() if text}, site=given, release=release)
    return [*(one.what for one in check_site(given, scheduler="capacity")), *(one.what for one in found)]


def test_every_refusal_of_the_list_is_hadoops_and_no_more() -> None:
    starts, expected = [], []
    rows = [(named, settings, True) for _, named, settings, _ in REFUSED] + [(*row, False) for row in FINE]
    for named, settings, refused in rows:
        for scheduler in schedulers(named):
            starts.append(
                Start(
                    site(settings),
                    document(scheduler),
                    scheduler,
                    types if (types := settings.get("yarn.resource-types", "")) in TAKEN_TYPES else "",
                )
            )
            expected.append(refused)
    answers = loading.start(starts)
    wrong = [
        (start, answer) for start, answer, hold in zip(starts, answers, expected, strict=True) if answer.refused != hold
    ]
    assert not wrong, wrong[0]


@pytest.mark.parametrize("release", RELEASES)
def test_random_sites_with_their_files_are_refused_by_both_or_by_none(release: str | None) -> None:
    different, refused = [], 0
    total = FILES if release is None else max(FILES // 3, 60)
    for first in range(SEED, SEED + total, BATCH):
        seeds = range(first, min(first + BATCH, SEED + total))
        starts = [random_start(seed) for seed in seeds]
        answers = loading.start(starts, release=release, timeout_s=1200)
        for seed, start, answer in zip(seeds, starts, answers, strict=True):
            found = ours(start, RELEASES[release])
            refused += answer.refused
            if RELEASES[release] == ASSUMED:
                given = read_site(start.site, source="yarn-site.xml")
                verdict = check_document(start.document, source="file", site=given)
                assert all(one.hint for one in verdict.findings)
                assert verdict.refused == bool(found), seed
            if bool(found) != answer.refused:
                shown = start.site.decode() + start.document.decode()
                different.append(f"seed {seed}, {start.scheduler}: Hadoop {answer}, ours {found}\n{shown}")
    assert not different, f"{len(different)} of {total} pairs differ; the first:\n{different[0]}"
    assert total / 5 <= refused <= total * 4 / 5, "a differential test needs files of both kinds"
