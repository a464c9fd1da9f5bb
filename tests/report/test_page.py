"""The page as a file: whole, in a folder that it makes, the former page where it cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.base.errors import InputError
from harness.report import render_report


def test_the_page_makes_its_folder_and_leaves_nothing_beside_it(three_policies: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder" / "page.html"
    written = render_report(three_policies, out)
    assert (out.stat().st_size, out.stat().st_mode & 0o777) == (written.size, 0o644)
    assert list(out.parent.iterdir()) == [out]


def test_a_page_that_cannot_be_written_says_so_in_one_line(three_policies: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written") as raised:
        render_report(three_policies, tmp_path / "file" / "page.html")
    assert raised.value.hint == "choose another -o FILE"


def test_a_long_name_in_a_table_s_head_may_break(write_run: Callable[..., Path], tmp_path: Path) -> None:
    """The column of a variant with two settings was too wide for its table, so that its values were out of sight."""
    name = "ltrf@outside,period_s=60,horizon_s=80"
    queues = {f"root.{queue}": {"mean_completion_s": 100.0} for queue in ("A", "B")}
    runs = [
        write_run("fair", "fair", summary={"queues": queues}),
        write_run(name, "ltrf", mode="outside", summary={"queues": queues}),
    ]
    page = render_report(runs, tmp_path / "page.html").path.read_text()
    assert "Winners and losers" in page
    assert '<th scope="col" class="n">ltrf@<wbr>outside,<wbr>period_<wbr>s=<wbr>60,<wbr>horizon_<wbr>s=<wbr>80 ' in page
