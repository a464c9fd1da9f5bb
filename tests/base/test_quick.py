"""Values that are made quickly are the class' own: equal, frozen, with the same hash."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

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


def test_a_file_that_a_users_module_leaves_open_is_written_to_its_end(tmp_path: Path) -> None:
    """The interpreter's last collection, which a command leaves out, takes place once a user's code has run."""
    log, own = tmp_path / "log", tmp_path / "own.py"
    own.write_text(f"LOG = open({str(log)!r}, 'w')\ndef Own():\n    return LOG\nLOG.write('all')\n")
    code = (
        "from pathlib import Path\n"
        "from harness.base.quick import collect_rarely\n"
        "from harness.policies.user_file import from_user_file\n"
        "collect_rarely()\n"
        f"from_user_file(Path({str(own)!r}), 'Own', what='policy', hint='')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert log.read_text() == "all"
