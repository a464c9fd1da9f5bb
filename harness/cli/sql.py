"""``yarnfair sql``: a query over run directories."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.base.words import counted
from harness.cli.output import json_option, print_json


@click.command()
@click.argument("query")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--csv", "as_csv", is_flag=True, help="Print the answer as CSV.")
@json_option
def sql(query: str, runs: tuple[Path, ...], as_csv: bool, as_json: bool) -> None:
    """Answer an SQL query over runs (DuckDB's dialect).

    Tables: runs, queues, jobs, allocations, decisions. RUN is a run directory, a folder of them, or a
    campaign's folder.
    """
    from harness.results.tables import sql as answered

    answer = answered(query, list(runs))
    if as_json:
        # pandas' own JSON writer converts its types (timestamps, NaN), which the json module does not.
        rows = json.loads(answer.to_json(orient="records", date_format="iso"))
        print_json({"columns": list(answer.columns), "rows": rows})
    elif as_csv:
        click.echo(answer.to_csv(index=False), nl=False)
    else:
        click.echo(f"{answer.to_string(index=False)}\n({counted(len(answer), 'row')})")
