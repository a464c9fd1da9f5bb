"""What the documents show is what the commands print: the cheap ones of the how-tos and the reference are run again.

A line ``...`` in a document stands for any lines left out. Commands that simulate are not run here.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.cli import main

ROOT = Path(__file__).resolve().parents[2]
#: page -> the files that its commands read: name -> (page, number of its YAML block there)
PAGES = {
    "how-to/try-a-policy-on-paper.md": {
        "tree.yaml": (ROOT / "docs" / "how-to" / "try-a-policy-on-paper.md", 0),
    },
    "reference/decay.md": {},
    "reference/progress-share.md": {},
    "reference/worked-examples.md": {},
    "how-to/write-an-allocation-file.md": {
        "queues.yaml": (ROOT / "docs" / "how-to" / "write-an-allocation-file.md", 0),
    },
}
#: A line of the shell; not one of the product's commands.
SHELL = "$"
CHEAP = {"allocate", "order", "render", "validate", "shares", SHELL}


def yaml_block(page: Path, number: int) -> str:
    return re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.S)[number]


def shown(page: Path) -> list[tuple[list[str], str]]:
    """(arguments, output) of each command in an indented block; an output ends with the block or the next command."""
    found: list[tuple[list[str], list[str]]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            program, _, rest = line.removeprefix("    $ ").partition(" ")
            found.append((rest.split() if program == "yarnfair" else [SHELL, line.removeprefix("    $ ")], []))
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
        if arguments[0] == SHELL:  # makes a file that a later command reads
            subprocess.run(["bash", "-c", arguments[1]], check=True)
            continue
        with pytest.raises(SystemExit):
            main(arguments)
        captured = capsys.readouterr()
        printed = (captured.out + captured.err).strip("\n")
        # Each line as a pattern of its own; "..." is any lines.
        pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in output.split("\n"))
        assert re.fullmatch(pattern, printed + "\n"), f"yarnfair {' '.join(arguments)} prints:\n{printed}"
