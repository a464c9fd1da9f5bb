"""``python -m harness``: the same as the ``yarnfair`` command."""

from harness.cli import main

main()
