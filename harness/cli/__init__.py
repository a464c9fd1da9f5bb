"""The ``yarnfair`` command. Imports a verb's module only when the verb is called, and turns errors into exit codes.

An error is printed as one line. For a short start-up time, nothing here imports numpy, pandas or numba.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
from typing import Any

import click

import harness
from harness.base.errors import YarnfairError, nearest, without_secrets
from harness.base.extensions import extensions
from harness.base.machine_code import announce_with
from harness.base.quick import collect_rarely
from harness.cli.interrupts import Interruption
from harness.cli.output import outlive_readers

#: Group of the help page -> verb -> ("module:attribute", short help). The module is imported when the verb is called.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "To begin with": {
        "demo": ("harness.cli.demo:demo", "One minute in the terminal: what a queue lent comes back."),
        "list": ("harness.cli.list:list_", "List experiments, policies, workloads, scenarios or jobs."),
        "run": ("harness.cli.run:run", "Run one experiment under each of its policies."),
        "report": ("harness.cli.report:report", "One self-contained HTML page from run directories."),
    },
    "A running cluster": {
        "enforce": ("harness.cli.enforce:enforce", "Enforce a policy on a running cluster, from outside."),
        "explain": ("harness.cli.explain:explain", "Why a queue gets what it gets, in plain words and figures."),
        "top": ("harness.cli.top:top", "The live view in the terminal."),
        "assess": ("harness.cli.assess:assess", "Would long-term fairness help this cluster? Yes, no or unsure."),
        "whatif": ("harness.cli.whatif:whatif", "A page where settings are dragged and the run is computed anew."),
        "plan": ("harness.cli.plan:plan", "What a change of the scheduler's configuration does to each queue."),
        "record": ("harness.cli.record:record", "A cluster's applications as a trace."),
        "usage": ("harness.cli.usage:usage", "What queues and users had, lent and borrowed."),
        "replay": ("harness.cli.replay:replay", "A recorded trace under other policies."),
        "shares": ("harness.cli.shares:shares", "The fair shares that the Fair Scheduler would compute."),
        "render": ("harness.cli.render:render", "An allocation file from a queue tree."),
        "convert": ("harness.cli.convert:convert", "An allocation file for the Capacity Scheduler."),
        "validate": ("harness.cli.validate:validate", "Check a scheduler's file: what the RM refuses or gets wrong."),
    },
    "Research": {
        "allocate": ("harness.cli.allocate:allocate", "A scenario on paper: who gets what, step by step."),
        "campaign": ("harness.cli.campaign:campaign", "A grid of experiments: plan, run, status."),
        "compare": ("harness.cli.compare:compare", "Groups of runs compared, with intervals and tests."),
        "plot": ("harness.cli.plot:plot", "A figure of the report for print, and its data as CSV."),
        "sql": ("harness.cli.sql:sql", "An SQL query over run directories."),
        "decide": ("harness.cli.decide:decide", "The engine's decisions for a decision script."),
        "sim": ("harness.cli.sim:sim", "A simulated cluster that answers as a ResourceManager: serve."),
    },
    "A pipeline": {
        "baseline": ("harness.cli.baseline:baseline", "Record bounds from runs."),
        "check": ("harness.cli.check:check", "Check runs against recorded bounds."),
        "trend": ("harness.cli.trend:trend", "Each metric over a nightly job's runs, and where it changed."),
        "bench": ("harness.cli.bench:bench", "The performance figures of this machine."),
    },
    "Real containers": {
        "cluster": (
            "harness.cli.cluster:cluster",
            "A YARN cluster: up, status, doctor, down, adopt, release, grow, shrink.",
        ),
        "data": ("harness.cli.data:data", "Data sets (kinds, generate, verify); traces of others (formats, convert)."),
        "job": ("harness.cli.job:job", "The papers' applications as programs: list, run."),
    },
}
for _extension in extensions():
    for _verb, _command in _extension.commands.items():
        GROUPS.setdefault(_command.group, {}).setdefault(_verb, (_command.place, _command.help))
COMMANDS = {verb: place for group in GROUPS.values() for verb, place in group.items()}


def with_debug(command: click.Command) -> click.Command:
    """Add the option ``--debug`` to a command, or to all commands of a group, and return it."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            with_debug(one)
    elif not any("--debug" in param.opts for param in command.params):
        command.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_begin_debug,
                help="Log to standard error what is asked of which daemon, and what it answers.",
            )
        )
    return command


def _begin_debug(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from harness.base.debug import to_standard_error

        to_standard_error()


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help page."""
        # Not list(COMMANDS): the module harness.cli.list, once imported, has that name here.
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return with_debug(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; for an unknown name, suggest the nearest ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand:
            for name in ("cluster", "sim", "campaign", "data", "job"):
                group = self.get_command(ctx, name)
                if isinstance(group, click.Group) and args[0] in group.commands:
                    raise click.UsageError(f"No such command {args[0]!r}. It is `yarnfair {name} {args[0]}`.") from None
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands to the help page, grouped by purpose."""
        width = max(len(verb) for verb in COMMANDS)
        with formatter.section("Commands"):
            for title, group in GROUPS.items():
                formatter.write_paragraph()
                formatter.write_text(title)
                with formatter.indentation():
                    formatter.write_dl([(f"{verb:<{width}}", short) for verb, (_, short) in group.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(harness.__version__, prog_name="yarnfair")
def cli() -> None:
    """Long-term and hierarchical fairness for an unmodified YARN cluster.

    Exit codes: 0 fine, 1 error, 2 usage, 3 regression found, 4 the run is not valid (jobs failed),
    5 timed out, 130 interrupted.
    """


#: The beginning of click's message on an invalid choice.
_NO_CHOICE = re.compile(r"'(.*?)' is not one of ")


def _print_error(line: str) -> None:
    print(f"yarnfair: {without_secrets(line)}", file=sys.stderr)


def _said(error: click.ClickException) -> str:
    """Return click's message as one line; for an invalid choice, a shorter message that suggests the nearest choice."""
    said = " ".join(error.format_message().split())
    param = error.param if isinstance(error, click.BadParameter) else None
    given = _NO_CHOICE.match(error.message)
    if param is None or not isinstance(param.type, click.Choice) or given is None:
        return said
    choices = [str(choice) for choice in param.type.choices]
    like = nearest(given[1], choices)
    where = f"{param.opts[0]}: " if isinstance(param, click.Option) else ""
    return f"{where}{given[1]!r} is not one of {', '.join(choices)}" + (f"; did you mean {like!r}?" if like else "")


def _open_closed_outputs() -> None:
    """Open the null device for a standard output or error that the caller has closed (``>&-``).

    Python sets these to None.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _print_whatever_is_called_so() -> None:
    """Print characters that standard output's encoding lacks as escapes, as Python does on standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit with its exit code; print a YarnfairError as one line on standard error."""
    _open_closed_outputs()
    _print_whatever_is_called_so()
    outlive_readers()
    collect_rarely()
    announce_with(_print_notice)
    interruption = Interruption()
    try:
        with interruption:
            result: Any = cli.main(args=argv, prog_name="yarnfair", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except YarnfairError as error:
        _print_error(error.line())
        code = error.exit_code
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.exceptions.Abort:
        _print_error("interrupted")
        code = 130
    except click.exceptions.NoArgsIsHelpError as help_:
        click.echo(help_.ctx.get_help())
        code = 0
    except click.ClickException as error:
        ctx: click.Context | None = getattr(error, "ctx", None)
        hint = f" (see '{ctx.command_path} --help')" if ctx is not None and ctx.parent is not None else ""
        _print_error(_said(error) + hint)
        code = 2 if isinstance(error, click.UsageError) else 1
    except KeyboardInterrupt:
        _print_error("interrupted")
        code = 130
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            # click took a broken pipe for its own output and printed nothing. The pipe is another one, because a
            # command outlives the readers of its output (`outlive_readers`).
            _print_error("the other end of a connection went away; run it again")
    except OSError as error:
        # This error concerns standard output: commands report errors of the files that they read and write.
        _print_error(f"{error.filename or 'the output'}: {error.strerror or error}; check disk and rights")
        _drop_output()
        code = 1
    except BaseException:
        # A library in which the interrupt was raised can turn it into an exception of its own.
        if not interruption.received:
            raise
        _print_error("interrupted")
        code = 130
    sys.exit(code)


def _print_notice(text: str) -> None:
    """Print a message that is not an error as one line on standard error."""
    click.echo(text, err=True)


def _drop_output() -> None:
    """Discard all further output to standard output, including what Python writes when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
