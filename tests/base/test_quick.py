"""Values that are made quickly are the class' own: equal, frozen, with the same hash."""

from __future__ import annotations

import gc
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from harness.base.quick import fast_constructor, without_collector
from harness.model.resources import Resource


def test_what_is_made_is_an_instance_like_any_other() -> None:
    made, own = fast_constructor(Resource)(1024, 2), Resource(1024, 2)
    assert type(made) is Resource
    assert (made, hash(made), repr(made)) == (own, hash(own), repr(own))
    assert replace(made, vcores=3) == Resource(1024, 3)
    assert pickle.loads(pickle.dumps(made)) == own
    with pytest.raises(FrozenInstanceError):
        made.vcores = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        fast_constructor(Resource)(1024)


def test_the_collector_is_as_it_was_afterwards() -> None:
    @without_collector()
    def fails() -> None:
        assert not gc.isenabled()
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fails()
        assert gc.isenabled()
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
