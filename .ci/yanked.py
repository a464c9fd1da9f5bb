"""Fails when a pinned version has been taken back (yanked) by its authors, by the package index's own word.

    .venv/bin/python .ci/yanked.py

Known vulnerabilities would be better; not every index tells them (docs/how-to/run-the-tests.md).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CALL = "install -q --dry-run --ignore-installed --no-deps --require-hashes -r requirements.txt --report"


def main() -> int:
    """The exit code."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = subprocess.run([sys.executable, "-m", "pip", *CALL.split(), str(report)], cwd=Path(__file__).parents[1])
        if done.returncode:
            return done.returncode
        found = json.loads(report.read_text())["install"]
    names = [f"{one['metadata']['name']} {one['metadata']['version']}" for one in found if one["is_yanked"]]
    for name in names:
        print(f"yanked: {name}: pin another version (make lock)", file=sys.stderr)
    print(f"{len(found)} pinned versions, {len(names)} of them yanked")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
