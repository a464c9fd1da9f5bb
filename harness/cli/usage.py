"""``yarnfair usage``: a statement of what queues and users had, lent and borrowed. Parsing and printing only."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Literal

import click

from harness.cli.output import OutputFile, cluster_option, json_option, print_result, say


@click.command(short_help="What queues and users had, lent and borrowed.")
@click.argument("trace", type=click.Path(path_type=Path))
@cluster_option
@click.option(
    "--by", type=click.Choice(["queue", "queue,user"]), default="queue", show_default=True, help="Rows of the table."
)
@click.option("--every", type=click.Choice(["day", "week", "month"]), default="month", show_default=True)
@click.option("--csv", "csv_file", type=OutputFile(), metavar="FILE", help="Also write a table as CSV, MB-seconds.")
@click.option("--parquet", type=OutputFile(), metavar="FILE", help="Also write the same table as Parquet.")
@click.option("--html", "page", type=OutputFile(), metavar="FILE", help="Also write one HTML page.")
@click.option("--paid-back", is_flag=True, help="Simulate what long-term fairness would have paid back, too.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Simulations at once [cores].")
@json_option
def usage(
    *,
    trace: Path,
    cluster: Path | None,
    by: Literal["queue", "queue,user"],
    every: Literal["day", "week", "month"],
    csv_file: Path | None,
    parquet: Path | None,
    page: Path | None,
    paid_back: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Print a statement of TRACE (of `yarnfair record`, a run directory, or of others) by queue, user and period.

    The resources that YARN counted for an application are spread evenly over its life. At every moment, queues above
    their due part of the cluster borrow, and the others lend as much in total, in proportion to what they leave unused.
    A queue is owed what it has lent beyond what it has borrowed since the beginning.
    """
    from harness.base.outputs import write_output, write_output_by
    from harness.predict.foreign import played_trace
    from harness.predict.payback import payback
    from harness.predict.usage import COLUMNS, assumed_of, document_of, lines_of, rows_of, statement
    from harness.traces.accounting import account_lines, account_of

    with tempfile.TemporaryDirectory(prefix="yarnfair-") as folder:
        found = played_trace(trace, cluster, Path(folder) / "trace.jsonl")
        result = payback(found, Path(folder), every, processes=jobs) if paid_back else None
    periods = statement(found.header, found.jobs, every)
    if csv_file is not None:
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows_of(periods))
        write_output(csv_file, table.getvalue())
    if parquet is not None:
        import pandas as pd

        frame = pd.DataFrame(rows_of(periods), columns=list(COLUMNS))
        write_output_by(parquet, lambda path: frame.to_parquet(path, index=False))
    assumed = assumed_of(found.jobs)
    notes = [*account_lines(found.header, found.jobs, played=paid_back), *(f"assumed: {what}" for what in assumed)]
    if page is not None:
        from harness.predict.usage_page import write_page

        write_page(page, periods, every, trace.name, notes, result)
    if not as_json:
        for line in notes:
            say(f"{trace}: {line}")
    account = account_of(found.header, found.jobs, played=paid_back)
    if assumed:
        account["assumed"] = [*account.get("assumed", []), *assumed]
    document = {**account, "every": every, "periods": document_of(periods)}
    lines = lines_of(periods, users=by == "queue,user")
    if result is not None:
        document["paid_back"] = result.document()
        lines += result.lines()
    print_result(as_json, document, lines)
