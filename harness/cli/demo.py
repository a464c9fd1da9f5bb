"""``yarnfair demo``: one minute in a terminal, without Hadoop. Parsing, playing and printing only."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.outputs import write_output
from harness.cli.output import Number, OutputFile, echo_sentences, json_option, print_json

if TYPE_CHECKING:
    from harness.report.demo import Story

#: The two variants of experiments/demo.yaml.
_SIDES = ("fair", "ltrf@outside")


@click.command(short_help="One minute in the terminal: what a queue lent comes back.")
@click.option("--svg", type=OutputFile(), help="Write an animated picture there instead of playing.")
@click.option("--speed", type=Number(0.1, 100), default=1.0, show_default=True, help="How fast it plays.")
@json_option
def demo(svg: Path | None, speed: float, as_json: bool) -> None:
    """Show memoryless sharing beside control from outside, in 80 columns, on a simulated cluster.

    A queue lends its half, then bursts; what it lent is given back, and then each has its half again. Both sides are
    simulated anew (experiments/demo.yaml): the stock Fair Scheduler, and the same with weights written by yarnfair.
    Where standard output is no terminal, four moments are printed instead of the animation.
    """
    from harness.control.explain import explain
    from harness.control.view_run import from_run
    from harness.report.demo import as_svg, read, release

    with tempfile.TemporaryDirectory(prefix="yarnfair-demo-") as folder:
        _simulate(Path(folder), quiet=as_json)
        story = read(Path(folder) / _SIDES[0], Path(folder) / _SIDES[1])
        asked_s = (story.burst_s + (story.paid_s() or story.times[-1])) // 2
        asked = min(range(len(story.times)), key=lambda at: abs(story.times[at] - asked_s))
        given_back = release(Path(folder), story.controlled[asked])
        words = explain(from_run(Path(folder) / _SIDES[1], at_s=asked_s), "root.reports")
    if svg is not None:
        write_output(svg, as_svg(story))
    if as_json:
        print_json(
            {
                "burst_began_s": story.burst_s,
                "burst_ended_s": dict(zip(_SIDES, story.ended_s, strict=True)),
                "debt_paid_s": story.paid_s(),
                "explained_at_s": asked_s,
                "explain": words,
                "release": {
                    "administrator": given_back.administrator.decode(),
                    "steered": given_back.steered.decode(),
                    "released": given_back.released.decode(),
                },
            }
        )
    elif svg is None:
        _play(story, speed)
        alike = given_back.released == given_back.administrator
        same = "it is the administrator's again, byte for byte" if alike else "it is not the one that it was"
        echo_sentences(
            [
                f"Why? `yarnfair explain reports --run RUN --at {asked_s}` says: {words[1]}",
                f"Release: the weights of that moment were written into an allocation file; released, {same}.",
                "On a cluster: `yarnfair enforce --rm URL --config FILE --dry-run` shows the weights and writes "
                "nothing; `--release` gives the administrator's own weights back.",
            ]
        )


def _simulate(folder: Path, *, quiet: bool) -> None:
    from harness.cli.run import say_if_it_compiles
    from harness.experiments.resolve import load_experiment, variants_of
    from harness.experiments.run import run_experiment

    if not quiet:
        say_if_it_compiles()
    experiment = load_experiment("demo")
    run_experiment(experiment, variants_of(experiment), folder)


def _play(story: Story, speed: float) -> None:
    from harness.report.demo import HEIGHT, as_text, frames, key_frames

    drawn = frames(story)
    if not sys.stdout.isatty():
        for at in key_frames(story):
            for line in drawn[at]:
                click.echo(as_text(line, colour=False))
        return
    for at, frame in enumerate(drawn):
        if at:
            click.echo(f"\x1b[{HEIGHT}A", nl=False)
        for line in frame:
            click.echo(f"\x1b[2K{as_text(line, colour=True)}")
        sys.stdout.flush()
        time.sleep(0.8 / speed)
