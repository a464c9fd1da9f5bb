"""Fixed changes of the product: each still has its place, and the tests that it names notice it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.mutations import ROOMS, Copy, mutations
from tests.planting import ROOT


def test_each_has_its_place_and_changes_something() -> None:
    known = mutations()
    assert len({one.name for one in known}) == len(known)
    rooms = Counter(Path(one.file).parts[1] for one in known)
    assert rooms.keys() == set(ROOMS)
    assert rooms.total() >= 100
    for one in known:
        assert all((ROOT / name).is_file() for name in one.tests.split()), one.name
        text = one.before(ROOT)
        changed = ast.parse(text.replace(one.old, one.new))
        assert ast.dump(changed) != ast.dump(ast.parse(text)), f"{one.name} changes nothing"


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("mutated"))


@pytest.mark.long
@pytest.mark.parametrize("name", [one.name for one in mutations()])
def test_the_tests_notice(name: str, copy: Copy) -> None:
    (one,) = [one for one in mutations() if one.name == name]
    noticed, said = copy.notices(one)
    assert noticed, said
