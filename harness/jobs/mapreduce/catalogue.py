"""The catalogue of MapReduce applications: their data, and the Hadoop jobs of which each consists.

Purdue's benchmarks (PUMA: Ahmad et al., 2012; LTYARN's and the thesis' workload): WordCount, Grep, TeraSort and Sort
from Hadoop's examples, the others as Hadoop Streaming programs in workloads/purdue. Facebook's four applications (Table
3: the Hive benchmark of Pavlo et al., SIGMOD 2009, section 4) as streaming programs in workloads/facebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote_plus

from harness.base.errors import CallError
from harness.jobs.engines.base import Program

_EXAMPLES = "org.apache.hadoop.examples"
_IO = "org.apache.hadoop.io"
_LIB = "org.apache.hadoop.mapreduce.lib"
_STREAM = "org.apache.hadoop.streaming"
_SAME_MAPPER, _SAME_REDUCER = "org.apache.hadoop.mapreduce.Mapper", "org.apache.hadoop.mapreduce.Reducer"
_OUTPUT = "mapreduce.output.fileoutputformat.outputdir"


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one run of an application.

    ``settings``: the application's own settings, by name. ``python``: the interpreter on the nodes. ``files``: the
    streaming programs' folder. ``work``: a folder for files that the client adds (Classification's centres).
    """

    output: str
    reduces: int
    settings: Mapping[str, str]
    python: str
    files: Path
    work: Path


@dataclass(frozen=True, slots=True)
class HadoopJob:
    """One Hadoop job: the properties that its own client would set (classes, formats, commands, output)."""

    properties: Mapping[str, str]
    #: Files that are put into every task's folder.
    files: tuple[Path, ...] = ()


Jobs = Callable[[Call], Sequence[HadoopJob]]


@dataclass(frozen=True, slots=True)
class Application(Program):
    """A program that consists of Hadoop jobs. ``reduces``: False if it has only maps."""

    jobs: Jobs = field(kw_only=True)
    reduces: bool = True
    #: The number of Hadoop jobs of one run, which follow one another.
    steps: int = 1


def uri(path: str) -> str:
    """Return a path as a URI; a path without a file system is in a folder that all nodes see."""
    return path if "://" in path else f"file:{path}"


def _streaming(
    call: Call,
    program: Path,
    mapper: str = "map",
    reducer: str | None = "reduce",
    combiner: str | None = None,
    *,
    output: str | None = None,
    properties: Mapping[str, str] | None = None,
    files: Sequence[Path] = (),
) -> HadoopJob:
    """Return a Hadoop Streaming job as StreamJob configures it, with the API ``org.apache.hadoop.mapred``."""
    # -S -E: without site packages and environment variables of other people.
    run = f"{call.python} -S -E {program.name}"
    reads, writes = f"{_STREAM}.io.TextOutputReader", f"{_STREAM}.io.TextInputWriter"
    found = {
        "mapred.input.format.class": "org.apache.hadoop.mapred.TextInputFormat",
        "mapred.mapper.class": f"{_STREAM}.PipeMapper",
        "mapred.map.runner.class": f"{_STREAM}.PipeMapRunner",
        "stream.map.streamprocessor": quote_plus(f"{run} {mapper}"),
        "stream.map.input.writer.class": writes,
        "stream.map.output.reader.class": reads,
        "stream.reduce.input.writer.class": writes,
        "stream.reduce.output.reader.class": reads,
        "mapreduce.job.output.key.class": f"{_IO}.Text",
        "mapreduce.job.output.value.class": f"{_IO}.Text",
        "mapreduce.map.output.key.class": f"{_IO}.Text",
        "mapreduce.map.output.value.class": f"{_IO}.Text",
        "mapreduce.job.reduces": "0" if reducer is None else str(call.reduces),
        _OUTPUT: uri(output or call.output),
    }
    if combiner is not None:
        found["mapred.combiner.class"] = f"{_STREAM}.PipeCombiner"
        found["stream.combine.streamprocessor"] = quote_plus(f"{run} {combiner}")
    if reducer is not None:
        found["mapred.reducer.class"] = f"{_STREAM}.PipeReducer"
        found["stream.reduce.streamprocessor"] = quote_plus(f"{run} {reducer}")
    return HadoopJob({**found, **(properties or {})}, (program, *files))


def _program(name: str, combiner: str | None = None) -> Callable[[Call], list[HadoopJob]]:
    return lambda call: [_streaming(call, call.files / "purdue" / name, combiner=combiner)]


def _example(
    call: Call, mapper: str, reducer: str, key: str = "Text", value: str = "Text", **more: str
) -> dict[str, str]:
    """Return the properties of a job with the API ``org.apache.hadoop.mapreduce``.

    ``more``: further classes, NAME=CLASS for the property ``mapreduce.job.NAME.class`` (combine, inputformat ...).
    """
    return {
        "mapred.mapper.new-api": "true",
        "mapred.reducer.new-api": "true",
        "mapreduce.job.map.class": mapper,
        "mapreduce.job.reduce.class": reducer,
        "mapreduce.job.output.key.class": f"{_IO}.{key}",
        "mapreduce.job.output.value.class": f"{_IO}.{value}",
        "mapreduce.job.reduces": str(call.reduces),
        _OUTPUT: uri(call.output),
        **{f"mapreduce.job.{name}.class": kind for name, kind in more.items()},
    }


def _word_count(call: Call) -> list[HadoopJob]:
    mapper, reducer = f"{_EXAMPLES}.WordCount$TokenizerMapper", f"{_EXAMPLES}.WordCount$IntSumReducer"
    return [HadoopJob(_example(call, mapper, reducer, value="IntWritable", combine=reducer))]


def _grep(call: Call) -> list[HadoopJob]:
    """Return Grep's two jobs: search and count; then sort by count, the largest first, into one file."""
    mapper, reducer = f"{_LIB}.map.RegexMapper", f"{_LIB}.reduce.LongSumReducer"
    between = f"{_LIB}.output.SequenceFileOutputFormat"
    count = _example(call, mapper, reducer, value="LongWritable", combine=reducer, outputformat=between)
    more = {"mapreduce.mapper.regex": call.settings["pattern"], _OUTPUT: uri(f"{call.output}.counted")}
    counted = f"{_LIB}.input.SequenceFileInputFormat"
    sort = _example(call, f"{_LIB}.map.InverseMapper", _SAME_REDUCER, "LongWritable", inputformat=counted)
    falling = {"mapreduce.job.output.key.comparator.class": f"{_IO}.LongWritable$DecreasingComparator"}
    return [HadoopJob({**count, **more}), HadoopJob({**sort, **falling, "mapreduce.job.reduces": "1"})]


def _sort(call: Call) -> list[HadoopJob]:
    reads, writes = f"{_LIB}.input.KeyValueTextInputFormat", f"{_LIB}.output.TextOutputFormat"
    return [HadoopJob(_example(call, _SAME_MAPPER, _SAME_REDUCER, inputformat=reads, outputformat=writes))]


def _tera_sort(call: Call) -> list[HadoopJob]:
    own = f"{_EXAMPLES}.terasort.Tera"
    found = _example(
        call,
        _SAME_MAPPER,
        _SAME_REDUCER,
        inputformat=f"{own}InputFormat",
        outputformat=f"{own}OutputFormat",
        partitioner=f"{own}Sort$TotalOrderPartitioner",
    )
    return [HadoopJob(found)]


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
    by_url = {
        "stream.num.map.output.key.fields": "2",
        "mapreduce.partition.keypartitioner.options": "-k1,1",
        "mapred.partitioner.class": "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
    }
    return [
        _streaming(call, program, f"map {days}", output=between, properties=by_url),
        _streaming(call, program, "map-again", "reduce-again"),
    ]


def _whole(settings: Mapping[str, str], name: str) -> int:
    try:
        return int(settings[name])
    except ValueError:
        raise CallError(f"{name} is {settings[name][:40]!r}", where="--set", hint="give a whole number") from None


def _word(settings: Mapping[str, str], name: str) -> str:
    """Check a setting that is part of a streaming command, which is split at blanks."""
    value = settings[name]
    if not value or not all(c.isalnum() or c in "-_.:/" for c in value) or not value.isascii():
        raise CallError(
            f"{name} is {value[:40]!r}", where="--set", hint="give letters, digits, and - _ . : / without blanks"
        )
    return value


def _purdue(name: str, what: str, data: str, jobs: Jobs, *, steps: int = 1, **settings: str) -> Application:
    return Application(name, "purdue", what, (data,), settings, jobs=jobs, steps=steps)


def _facebook(
    name: str, what: str, data: tuple[str, ...], jobs: Jobs, *, steps: int = 1, reduces: bool = False, **settings: str
) -> Application:
    return Application(name, "facebook", what, data, settings, jobs=jobs, reduces=reduces, steps=steps)


APPLICATIONS: Mapping[str, Application] = {
    application.name: application
    for application in (
        _purdue("wordcount", "how often each word stands in a text", "text", _word_count),
        _purdue("grep", "matches of a regular expression, counted", "text", _grep, steps=2, pattern="the[a-z]*"),
        _purdue("terasort", "records of 100 bytes in order over all reduces", "tera", _tera_sort),
        _purdue("sort", "lines in order within each reduce", "text", _sort),
        _purdue("invertedindex", "the files in which a word stands", "text", _program("inverted_index.py", "combine")),
        _purdue("histogrammovies", "movies by average rating", "movies", _program("histogram_movies.py", "combine")),
        _purdue(
            "histogramratings", "how often each rating was given", "movies", _program("histogram_ratings.py", "combine")
        ),
        _purdue("selfjoin", "associations of k + 1 fields from those of k", "ratings", _program("self_join.py")),
        _purdue(
            "sequencecount", "how often three words follow each other", "text", _program("sequence_count.py", "combine")
        ),
        _purdue("classification", "each movie to the most alike of given ones", "movies", _classification, classes="6"),
        _facebook("selection", "rankings selection: pages above a rank", ("rankings",), _selection, rank="100"),
        _facebook("fbgrep", "grep: the visits that contain a string", ("uservisits",), _facebook_grep, pattern="99.1"),
        _facebook(
            "aggregation", "uservisits aggregation: revenue by address", ("uservisits",), _aggregation, reduces=True
        ),
        _facebook(
            "join",
            "rankings-uservisits join: rank and revenue by address, of the visits of some days",
            ("rankings", "uservisits"),
            _join,
            steps=2,
            reduces=True,
            first_day="2010-01-01",
            last_day="2010-03-31",
        ),
    )
}
