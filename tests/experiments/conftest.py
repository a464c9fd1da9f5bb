"""Fixtures of the experiments' tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.experiments.campaigning import CAMPAIGN, EXPERIMENT


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes tiny.yaml (keys of it: ``experiment={...}``) and campaign.yaml; gives the latter's path."""

    def do(experiment: dict[str, Any] | None = None, **changes: Any) -> Path:
        (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({**EXPERIMENT, **(experiment or {})}))
        path = tmp_path / "campaign.yaml"
        path.write_text(yaml.safe_dump({**CAMPAIGN, **changes}))
        return path

    return do
