"""Which applications there are, on which data, and the Hadoop jobs that each is made of.

Purdue's benchmarks (PUMA: Ahmad et al., 2012; LTYARN's and the thesis' workload): WordCount, Grep, TeraSort and Sort
from Hadoop's examples, the others as Hadoop Streaming programs in workloads/purdue. Facebook's four applications
(Table 3: the Hive benchmark of Pavlo et al., SIGMOD 2009, section 4) as streaming programs in workloads/facebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.base.errors import CallError
from harness.jobs.engines.base import Program

STREAMING = "org.apache.hadoop.streaming.HadoopStreaming"
_EXAMPLES = "org.apache.hadoop.examples"
_FORMATS = "org.apache.hadoop.mapreduce.lib"


@dataclass(frozen=True, slots=True)
class Call:
    """What one run of an application is given.

    ``inputs``: paths as Hadoop takes them (globs allowed). ``settings``: the application's own, by name.
    ``python``: the interpreter on the nodes. ``files``: the streaming programs' folder. ``work``: a folder for what the
    client adds (Classification's centres).
    """

    inputs: tuple[str, ...]
    output: str
    reduces: int
    settings: Mapping[str, str]
    python: str
    files: Path
    work: Path


@dataclass(frozen=True, slots=True)
class HadoopJob:
    """One client to start: its main class, properties (``-D``), and the arguments after them."""

    main: str
    arguments: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Files that go to every task's folder.
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Application(Program):
    """A program of Hadoop jobs. ``reduces``: False for one of maps alone."""

    jobs: Callable[[Call], Sequence[HadoopJob]] = field(kw_only=True)
    reduces: bool = True
    #: How many Hadoop jobs one run of it is, each after the other.
    steps: int = 1


def _streaming(
    call: Call,
    program: Path,
    mapper: str = "map",
    reducer: str | None = "reduce",
    combiner: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    output: str | None = None,
    properties: Mapping[str, str] | None = None,
    files: Sequence[Path] = (),
    partitioner: str | None = None,
) -> HadoopJob:
    # -S -E: no site packages, no environment of somebody else's.
    run = f"{call.python} -S -E {program.name}"
    arguments = [word for path in inputs or call.inputs for word in ("-input", path)]
    arguments += ["-output", output or call.output, "-mapper", f"{run} {mapper}"]
    if combiner is not None:
        arguments += ["-combiner", f"{run} {combiner}"]
    if reducer is not None:
        arguments += ["-reducer", f"{run} {reducer}"]
    if partitioner is not None:
        arguments += ["-partitioner", partitioner]
    reduces = {"mapreduce.job.reduces": "0" if reducer is None else str(call.reduces)}
    return HadoopJob(STREAMING, tuple(arguments), {**reduces, **(properties or {})}, (program, *files))


def _program(name: str, combiner: str | None = None) -> Callable[[Call], list[HadoopJob]]:
    return lambda call: [_streaming(call, call.files / "purdue" / name, combiner=combiner)]


def _word_count(call: Call) -> list[HadoopJob]:
    return [
        HadoopJob(f"{_EXAMPLES}.WordCount", (*call.inputs, call.output), {"mapreduce.job.reduces": str(call.reduces)})
    ]


def _grep(call: Call) -> list[HadoopJob]:
    # Two jobs of one client: search, then sort by count.
    return [
        HadoopJob(
            f"{_EXAMPLES}.Grep",
            (*call.inputs, call.output, call.settings["pattern"]),
            {"mapreduce.job.reduces": str(call.reduces)},
        )
    ]


def _sort(call: Call) -> list[HadoopJob]:
    formats = {
        "-inFormat": f"{_FORMATS}.input.KeyValueTextInputFormat",
        "-outFormat": f"{_FORMATS}.output.TextOutputFormat",
        "-outKey": "org.apache.hadoop.io.Text",
        "-outValue": "org.apache.hadoop.io.Text",
    }
    words = [word for pair in formats.items() for word in pair]
    return [HadoopJob(f"{_EXAMPLES}.Sort", ("-r", str(call.reduces), *words, *call.inputs, call.output))]


def _tera_sort(call: Call) -> list[HadoopJob]:
    properties = {"mapreduce.job.reduces": str(call.reduces)}
    return [HadoopJob(f"{_EXAMPLES}.terasort.TeraSort", (*call.inputs, call.output), properties)]


def _classification(call: Call) -> list[HadoopJob]:
    program = call.files / "purdue" / "classification.py"
    return [_streaming(call, program, files=[call.work / "centres.txt"])]


def _selection(call: Call) -> list[HadoopJob]:
    program = call.files / "facebook" / "selection.py"
    return [_streaming(call, program, f"map {_whole(call.settings, 'rank')}", None)]


def _facebook_grep(call: Call) -> list[HadoopJob]:
    return [_streaming(call, call.files / "facebook" / "grep.py", f"map {_word(call.settings, 'pattern')}", None)]


def _aggregation(call: Call) -> list[HadoopJob]:
    return [_streaming(call, call.files / "facebook" / "aggregation.py", combiner="combine")]


def _join(call: Call) -> list[HadoopJob]:
    program = call.files / "facebook" / "join.py"
    days = f"{_word(call.settings, 'first_day')} {_word(call.settings, 'last_day')}"
    between = f"{call.output}.joined"
    by_url = {"stream.num.map.output.key.fields": "2", "mapreduce.partition.keypartitioner.options": "-k1,1"}
    return [
        _streaming(
            call,
            program,
            f"map {days}",
            output=between,
            properties=by_url,
            partitioner="org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
        ),
        _streaming(call, program, "map-again", "reduce-again", inputs=[between]),
    ]


def _whole(settings: Mapping[str, str], name: str) -> int:
    try:
        return int(settings[name])
    except ValueError:
        raise CallError(f"{name} is {settings[name][:40]!r}", where="--set", mend="give a whole number") from None


def _word(settings: Mapping[str, str], name: str) -> str:
    """A setting that stands in a streaming command, which is cut at blanks."""
    value = settings[name]
    if not value or not all(c.isalnum() or c in "-_.:/" for c in value) or not value.isascii():
        raise CallError(
            f"{name} is {value[:40]!r}", where="--set", mend="give letters, digits, and - _ . : / without blanks"
        )
    return value


APPLICATIONS: Mapping[str, Application] = {
    application.name: application
    for application in (
        Application("wordcount", "purdue", "how often each word stands in a text", ("text",), jobs=_word_count),
        Application(
            "grep",
            "purdue",
            "matches of a regular expression, counted",
            ("text",),
            {"pattern": "the[a-z]*"},
            jobs=_grep,
            steps=2,
        ),
        Application("terasort", "purdue", "records of 100 bytes in order over all reduces", ("tera",), jobs=_tera_sort),
        Application("sort", "purdue", "lines in order within each reduce", ("text",), jobs=_sort),
        Application(
            "invertedindex",
            "purdue",
            "the files in which a word stands",
            ("text",),
            jobs=_program("inverted_index.py", "combine"),
        ),
        Application(
            "histogrammovies",
            "purdue",
            "movies by average rating",
            ("movies",),
            jobs=_program("histogram_movies.py", "combine"),
        ),
        Application(
            "histogramratings",
            "purdue",
            "how often each rating was given",
            ("movies",),
            jobs=_program("histogram_ratings.py", "combine"),
        ),
        Application(
            "selfjoin",
            "purdue",
            "associations of k + 1 fields from those of k",
            ("ratings",),
            jobs=_program("self_join.py"),
        ),
        Application(
            "sequencecount",
            "purdue",
            "how often three words follow each other",
            ("text",),
            jobs=_program("sequence_count.py", "combine"),
        ),
        Application(
            "classification",
            "purdue",
            "each movie to the most alike of given ones",
            ("movies",),
            {"classes": "6"},
            jobs=_classification,
        ),
        Application(
            "selection",
            "facebook",
            "rankings selection: pages above a rank",
            ("rankings",),
            {"rank": "100"},
            jobs=_selection,
            reduces=False,
        ),
        Application(
            "fbgrep",
            "facebook",
            "grep: the visits that contain a string",
            ("uservisits",),
            {"pattern": "99.1"},
            jobs=_facebook_grep,
            reduces=False,
        ),
        Application(
            "aggregation", "facebook", "uservisits aggregation: revenue by address", ("uservisits",), jobs=_aggregation
        ),
        Application(
            "join",
            "facebook",
            "rankings-uservisits join: rank and revenue by address, of the visits of some days",
            ("rankings", "uservisits"),
            {"first_day": "2010-01-01", "last_day": "2010-03-31"},
            jobs=_join,
            steps=2,
        ),
    )
}
