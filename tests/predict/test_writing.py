"""What an assessment writes: a configuration that the controller reads, whatever the given one says."""

from __future__ import annotations

from pathlib import Path

import yaml

from harness.control.config import EnforceConfig, read_config
from harness.control.settings import MAX_RATIO
from harness.predict.verdict import Played
from harness.predict.writing import config_text, write_config

GIVEN = {"policy": "ltrf", "allocation_file": "/x/fair-scheduler.xml", "ledger": "/x/ledger.db", "half_life": 3600}


def written(tmp_path: Path, settings: dict[str, object], present: dict[str, object] | None) -> EnforceConfig:
    given = None
    if present is not None:
        (tmp_path / "given.yaml").write_text(yaml.safe_dump(present))
        given = read_config(tmp_path / "given.yaml")
    text = config_text(Played("ltrf@outside", "ltrf", settings, []), given, {"rms": [{"rest": "http://rm:8088"}]})
    write_config(tmp_path / "enforce.yaml", text)
    return read_config(tmp_path / "enforce.yaml")


def test_without_a_configuration_it_begins_in_shadow_with_the_controllers_own_bound(tmp_path: Path) -> None:
    found = written(tmp_path, {}, None)
    assert (found.mode, found.max_ratio, found.rms[0].rest) == ("shadow", MAX_RATIO, "http://rm:8088")


def test_a_half_life_of_the_candidate_replaces_the_given_one(tmp_path: Path) -> None:
    found = written(tmp_path, {"half_life": 86400}, GIVEN)
    assert found.settings["half_life"] == 86400
    assert "half_life" not in found.model_fields_set
    assert written(tmp_path, {}, GIVEN).half_life == 3600


def test_a_given_bound_is_kept(tmp_path: Path) -> None:
    assert written(tmp_path, {}, {**GIVEN, "max_ratio": 5.0}).max_ratio == 5.0


def test_a_capacity_schedulers_configuration_names_its_file(tmp_path: Path) -> None:
    best = Played("ltrf@outside", "ltrf", {}, [])
    write_config(tmp_path / "file.yaml", config_text(best, None, {}, "capacity"))
    found = read_config(tmp_path / "file.yaml")
    assert (found.allocation_file, found.capacity_file) == (None, "/etc/hadoop/conf/capacity-scheduler.xml")
    write_config(tmp_path / "store.yaml", config_text(best, None, {"capacity_file": None}, "capacity"))
    found = read_config(tmp_path / "store.yaml")
    assert (found.allocation_file, found.capacity_file) == (None, None)
