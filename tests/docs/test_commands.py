"""What the documents show is what the commands print: the cheap ones of the how-tos and the reference are run again.

A line ``...`` in a document stands for any lines left out. Commands that simulate are not run here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import main

ROOT = Path(__file__).resolve().parents[2]
TWO_USERS = (ROOT / "docs" / "tutorials" / "researcher.md", 0)
#: page -> the files that its commands read: name -> (page, number of its YAML block there)
PAGES = {
    "how-to/try-a-policy-on-paper.md": {
        "tree.yaml": (ROOT / "docs" / "how-to" / "try-a-policy-on-paper.md", 0),
        "two-users.yaml": TWO_USERS,
    },
    "reference/decay.md": {},
    "reference/progress-share.md": {},
    "reference/worked-examples.md": {},
    "how-to/write-an-allocation-file.md": {
        "queues.yaml": (ROOT / "docs" / "how-to" / "write-an-allocation-file.md", 0),
    },
}
CHEAP = {"allocate", "order", "render", "validate", "shares"}


def yaml_block(page: Path, number: int) -> str:
    return re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.S)[number]


def shown(page: Path) -> list[tuple[list[str], str]]:
    """(arguments, output) of each command in an indented block; an output ends with the block or the next command."""
    found: list[tuple[list[str], list[str]]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ yarnfair "):
            found.append((line.removeprefix("    $ yarnfair ").split(), []))
            inside = True
        elif inside and (line.startswith("    ") or not line):
            found[-1][1].append(line[4:])
        else:
            inside = False
    return [(arguments, "\n".join(lines).strip("\n")) for arguments, lines in found]


def prepare(folder: Path, files: dict[str, tuple[Path, int]]) -> None:
    (folder / "workloads").symlink_to(ROOT / "workloads")
    for name, (page, number) in files.items():
        (folder / name).write_text(yaml_block(page, number))
    if "tree.yaml" in files:
        second = "  - {}\n" * 26 + "  - {A: 20, B: 60, C: 40, D: 80}\n"
        (folder / "two-waves.yaml").write_text((folder / "tree.yaml").read_text() + second)
    if "queues.yaml" in files:
        with pytest.raises(SystemExit):
            main(["render", str(folder / "queues.yaml"), "-o", str(folder / "fair-scheduler.xml")])
        good = (folder / "fair-scheduler.xml").read_text()
        (folder / "bad.xml").write_text(good.replace("<weight>3</weight>", "<wieght>3</wieght>"))


@pytest.mark.parametrize("name", PAGES)
def test_the_documents_show_what_the_commands_print(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path, PAGES[name])
    capsys.readouterr()
    cheap = [(arguments, output) for arguments, output in shown(ROOT / "docs" / name) if arguments[0] in CHEAP]
    assert len(cheap) >= 2
    for arguments, output in cheap:
        with pytest.raises(SystemExit):
            main(arguments)
        captured = capsys.readouterr()
        printed = (captured.out + captured.err).strip("\n")
        # Each line as a pattern of its own; "..." is any lines.
        pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in output.split("\n"))
        assert re.fullmatch(pattern, printed + "\n"), f"yarnfair {' '.join(arguments)} prints:\n{printed}"
