"""docs/tutorials: each page is done from its first line to its last, in a folder of its own, as its reader would.

What a page holds, in its order: a file (a fenced block after a paragraph that ends with its name, "Write `NAME`:") and
commands (``console`` blocks: lines with ``$``, each followed by what it prints). A command ends with 0, unless the next
one is ``echo $?``. A line ``...`` stands for any lines, ``...`` within a line for anything. In a block after the
comment ``<!-- numbers vary -->`` a number stands for any number. A command with ``&`` goes on while the page does.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
PAGES = sorted(path.name for path in TUTORIALS.glob("*.md"))
VARY = "<!-- numbers vary -->\n"
BLOCK = re.compile(
    r"(?P<vary><!-- numbers vary -->\n)?(?:`(?P<name>[\w./-]+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL
)
#: Ports that the pages name; a test takes free ones.
PORTS = ("18088", "18033", "18032")
NUMBER = re.compile(r"\d[\d.,]*")


class Step(NamedTuple):
    """A file to write, or a command and what it prints."""

    file: str
    command: str
    text: str
    vary: bool


def steps(page: str) -> list[Step]:
    found: list[Step] = []
    for block in BLOCK.finditer(page):
        if block["name"]:
            found.append(Step(block["name"], "", block["text"], False))
        elif block["kind"] == "console":
            assert block["text"].startswith("$ ")
            for part in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                found.append(Step("", command, shown.strip("\n"), block["vary"] is not None))
    return found


def free_ports(page: str) -> str:
    listening = []
    for port in PORTS:
        listening.append(socket.create_server(("127.0.0.1", 0)))
        page = page.replace(port, str(listening[-1].getsockname()[1]))
    for server in listening:
        server.close()
    return page


def script(found: list[Step], folder: Path) -> str:
    """One shell does all of it. Command N prints to N.out and ends with the code in N.code."""
    lines = ["true"]
    for at, step in enumerate(found):
        out = folder / f"{at}.out"
        if step.file:
            (folder / f"{at}.file").write_text(step.text)
            lines.append(f"cp {folder}/{at}.file {shlex.quote(step.file)}")
        elif step.command.endswith("&"):
            lines.append(f'{step.command.removesuffix("&")} > {out} 2>&1 & behind="$behind $!"')
            lines.append(f"for i in $(seq 600); do [ -s {out} ] && break; sleep 0.2; done")
        else:
            lines.append(f"{{ {step.command}\n}} > {out} 2>&1; code=$?; echo $code > {folder}/{at}.code; (exit $code)")
    return "\n".join([*lines, '[ -z "$behind" ] || { kill $behind; wait; }', "true"])


def pattern(shown: str, *, vary: bool) -> str:
    def line(text: str) -> str:
        if text == "...":
            return r"(?:.*\n)*?"
        parts = []
        for part in text.rstrip().split("..."):
            pieces = [" +".join(map(re.escape, x.split(" "))) if vary else re.escape(x) for x in NUMBER.split(part)]
            numbers = [r"\d[\d.,]*"] * len(pieces) if vary else [re.escape(x) for x in NUMBER.findall(part)]
            whole = pieces[0]
            for number, piece in zip(numbers, pieces[1:], strict=False):
                whole += number + piece
            parts.append(re.sub(r"(?:\\? \+)+", " +", whole) if vary else whole)
        return ".*".join(parts) + r" *\n"

    return "".join(line(text) for text in shown.split("\n"))


@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_works_from_its_first_line_to_its_last(name: str, tmp_path: Path) -> None:
    found = steps(free_ports((TUTORIALS / name).read_text(encoding="utf-8")))
    logs, work = tmp_path / "logs", tmp_path / "work"
    logs.mkdir()
    work.mkdir()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    subprocess.run(["bash", "-c", script(found, logs)], cwd=work, env=environment, check=True, timeout=1800)
    assert sum(bool(step.command) for step in found) >= 5
    for at, step in enumerate(found):
        if step.file:
            continue
        printed = (logs / f"{at}.out").read_text()
        code = 0 if step.command.endswith("&") else int((logs / f"{at}.code").read_text())
        after = found[at + 1].command if at + 1 < len(found) else ""
        assert code == 0 or after == "echo $?", f"$ {step.command}\nends with {code}:\n{printed}"
        if step.text:
            expected = pattern(step.text, vary=step.vary)
            assert re.fullmatch(expected, printed.rstrip("\n") + "\n"), f"$ {step.command}\nprints:\n{printed}"


def test_what_a_page_shows_is_compared() -> None:
    shown = "a 5 b\n...\nend 2 ..."
    assert re.fullmatch(pattern(shown, vary=False), "a 5 b\nx\ny\nend 2 z\n")
    assert not re.fullmatch(pattern(shown, vary=False), "a 6 b\nend 2 z\n")
    assert re.fullmatch(pattern(shown, vary=True), "a   17.5 b\nend 3 z\n")
    assert not re.fullmatch(pattern(shown, vary=True), "a 5 c\nend 3 z\n")


def test_a_file_and_its_commands_are_found_in_order() -> None:
    page = "Write `x.yaml`:\n\n```yaml\na: 1\n```\n\n" + VARY + "```console\n$ one\nprinted 1\n$ two\n```\n"
    assert steps(page) == [
        Step("x.yaml", "", "a: 1\n", False),
        Step("", "one", "printed 1", True),
        Step("", "two", "", True),
    ]
