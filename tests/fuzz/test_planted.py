"""Off-by-one errors that are planted in kernels: the checked build names each as an index out of bounds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mutations import Copy, Mutation
from tests.planting import read

FILE = Path(__file__).parent / "planted.toml"


@dataclass(frozen=True, kw_only=True)
class Error(Mutation):
    """``quick``: planted in CI, too."""

    quick: bool = False


ERRORS = read(Error, FILE, "planted")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("planted"), YARNFAIR_CHECKED="1")


def test_there_are_enough_of_them() -> None:
    assert len(ERRORS) >= 15
    assert len({error.file for error in ERRORS}) >= 8
    assert sum(error.quick for error in ERRORS) >= 3


@pytest.mark.parametrize(
    "error",
    [pytest.param(error, id=error.name, marks=[] if error.quick else pytest.mark.long) for error in ERRORS],
)
def test_the_checked_build_finds_it(error: Error, copy: Copy) -> None:
    noticed, said = copy.notices(error)
    assert noticed, said
    assert "out of bounds" in copy.output, said
