"""Values that are made quickly are the class' own: equal, frozen, with the same hash."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from harness.base.quick import quick
from harness.model.resources import Resource


def test_what_is_made_is_an_instance_like_any_other() -> None:
    made, own = quick(Resource)(1024, 2), Resource(1024, 2)
    assert type(made) is Resource
    assert (made, hash(made), repr(made)) == (own, hash(own), repr(own))
    assert replace(made, vcores=3) == Resource(1024, 3)
    assert pickle.loads(pickle.dumps(made)) == own
    with pytest.raises(FrozenInstanceError):
        made.vcores = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        quick(Resource)(1024)
