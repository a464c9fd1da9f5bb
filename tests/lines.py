"""``python -m tests.lines [FOLDER]``: lines of code room by room, without blank lines, comments and docstrings."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(text: str) -> int:
    """How many lines of a Python file hold some of its code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str())) as docstring:
                    found.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(found)


def by_room(root: Path) -> Counter[str]:
    """Room (or file) below ``root`` -> lines of code."""
    found: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        found[path.relative_to(root).parts[0]] += lines_of_code(path.read_text())
    return found


if __name__ == "__main__":
    rooms = by_room(Path(sys.argv[1] if len(sys.argv) > 1 else "harness"))
    for room, lines in rooms.most_common():
        print(f"{lines:6} {room}")
    print(f"{rooms.total():6} in all")
