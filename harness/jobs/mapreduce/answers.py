"""Checks an application's output against an answer that is computed without Hadoop from the same files.

The answers are computed in another way than by the applications' programs: in plain Python or in SQL (DuckDB, which may
spill to disk). Outputs are compared as multisets of lines; sorts are also compared in their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.base.errors import CallError, InputError
from harness.jobs.engines.attempts import Verdict

#: Arguments: the inputs' files, one list for each data set; the settings; the output's files in order.
Check = Callable[[Sequence[Sequence[Path]], Mapping[str, str], Sequence[Path]], "Verdict"]


def output_files(output: Path) -> list[Path]:
    """Return the files of the result in order. Raises InputError if no job has completed an output."""
    if not (output / "_SUCCESS").is_file():
        hint = "run the program again: it ended before its output was whole"
        raise InputError("no job has ended well there (no _SUCCESS)", where=str(output), hint=hint)
    return sorted(path for path in output.iterdir() if path.name.startswith("part-"))


def _lines(files: Iterable[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                yield line.rstrip(b"\n")


def _compare(expected: Counter[bytes], files: Sequence[Path]) -> Verdict:
    found = Counter(_lines(files))
    records = found.total()
    if found == expected:
        return Verdict(records)
    lacking, extra = expected - found, found - expected
    said = [
        f"{which.total()} line(s) {word}, as {next(iter(which))[:100]!r}"
        for which, word in ((lacking, "are missing"), (extra, "are too many"))
        if which
    ]
    return Verdict(records, "; ".join(said))


def _counts(counter: Mapping[Any, int]) -> Counter[bytes]:
    return Counter(b"%s\t%d" % (key, count) for key, count in counter.items())


def _word_count(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    counter: Counter[bytes] = Counter()
    for file in inputs[0]:
        counter.update(file.read_bytes().split())
    return _compare(_counts(counter), files)


def _grep(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    try:
        pattern = re.compile(settings["pattern"].encode())
    except re.error as error:
        raise CallError(f"pattern: {error}", where="--set", hint="give a regular expression") from None
    counter: Counter[bytes] = Counter()
    for line in _lines(inputs[0]):
        counter.update(match.group() for match in pattern.finditer(line))
    verdict = _compare(Counter(b"%d\t%s" % (count, key) for key, count in counter.items()), files)
    if verdict.wrong is not None:
        # Lines of the output need not begin with a number.
        return verdict
    counts = [int(line.partition(b"\t")[0]) for line in _lines(files)]
    if counts != sorted(counts, reverse=True):
        return Verdict(verdict.records, "not in order of the counts")
    return verdict


def _sort(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    # A line without a tab is a key with an empty value.
    verdict = _compare(Counter(line if b"\t" in line else line + b"\t" for line in _lines(inputs[0])), files)
    for file in files:
        keys = (line.partition(b"\t")[0] for line in _lines([file]))
        if verdict.wrong is None and any(a > b for a, b in pairwise(keys)):
            return Verdict(verdict.records, f"{file.name} is not in order")
    return verdict


def _tera_sort(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    def records(of: Iterable[Path]) -> Iterator[bytes]:
        for file in of:
            content = file.read_bytes()
            yield from (content[at : at + 100] for at in range(0, len(content), 100))

    found = list(records(files))
    if any(a[:10] > b[:10] for a, b in pairwise(found)):
        return Verdict(len(found), "not in order from the first part to the last")
    if Counter(found) != Counter(records(inputs[0])):
        return Verdict(len(found), "other records than in the input")
    return Verdict(len(found))


def _inverted_index(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    index: dict[bytes, list[tuple[int, bytes]]] = {}
    for file in inputs[0]:
        for word, count in Counter(file.read_bytes().split()).items():
            index.setdefault(word, []).append((-count, file.name.encode()))
    expected = (
        word + b"\t" + b",".join(b"%s:%d" % (name, -count) for count, name in sorted(places))
        for word, places in index.items()
    )
    return _compare(Counter(expected), files)


def _sequence_count(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    counter: Counter[bytes] = Counter()
    for file in inputs[0]:
        for line in _lines([file]):
            words = line.split()
            for at in range(len(words) - 2):
                counter[b"|".join([*words[at : at + 3], file.name.encode()])] += 1
    return _compare(_counts(counter), files)


# --- by SQL -----------------------------------------------------------------------------------------------------------


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _csv(files: Sequence[Path], columns: Mapping[str, str]) -> str:
    names = ", ".join(_literal(str(file)) for file in files)
    types = ", ".join(f"{_literal(name)}: {_literal(kind)}" for name, kind in columns.items())
    return f"read_csv([{names}], header=false, delim=',', quote='', escape='', columns={{{types}}})"


_RANKINGS = {"rank": "BIGINT", "url": "VARCHAR", "duration": "BIGINT"}
_VISITS = {
    "address": "VARCHAR",
    "url": "VARCHAR",
    "day": "VARCHAR",
    "revenue": "DOUBLE",
    "agent": "VARCHAR",
    "country": "VARCHAR",
    "language": "VARCHAR",
    "word": "VARCHAR",
    "seconds": "BIGINT",
}


def _rows(query: str) -> list[tuple[Any, ...]]:
    import duckdb

    # A single thread, so that rows are numbered in the order of the files.
    with duckdb.connect(config={"threads": 1}) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        return rows


def _money(ten_thousandths: int) -> str:
    return f"{ten_thousandths // 10000}.{ten_thousandths % 10000:04d}"


def _movies(files: Sequence[Path]) -> str:
    """Return one row a line: number, movie, pairs (list of user_rating)."""
    names = ", ".join(_literal(str(file)) for file in files)
    columns = "{'line': 'VARCHAR'}"
    read = f"read_csv([{names}], header=false, delim='\t', quote='', escape='', columns={columns})"
    return (
        "SELECT row_number() OVER () AS number, split_part(line, ':', 1) AS movie, "
        f"string_split(split_part(line, ':', 2), ',') AS pairs FROM {read}"
    )


def _ratings_of(table: str) -> str:
    return (
        "SELECT number, movie, split_part(pair, '_', 1) AS who, split_part(pair, '_', 2)::BIGINT AS rating "
        f"FROM (SELECT number, movie, unnest(pairs) AS pair FROM ({table}))"
    )


def _histogram_movies(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    per_movie = f"SELECT sum(rating) AS s, count(*) AS n FROM ({_ratings_of(_movies(inputs[0]))}) GROUP BY number"
    rows = _rows(f"SELECT (4 * s + n) // (2 * n) AS halves, count(*) FROM ({per_movie}) GROUP BY halves")
    return _compare(Counter(f"{halves / 2:.1f}\t{count}".encode() for halves, count in rows), files)


def _histogram_ratings(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    rows = _rows(f"SELECT rating, count(*) FROM ({_ratings_of(_movies(inputs[0]))}) GROUP BY rating")
    return _compare(Counter(f"{rating}\t{count}".encode() for rating, count in rows), files)


def _classification(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    from fractions import Fraction

    classes = int(settings["classes"])
    ratings = f"WITH r AS MATERIALIZED ({_ratings_of(_movies(inputs[0]))})"
    centres = [
        number for (number,) in _rows(f"{ratings} SELECT DISTINCT number FROM r ORDER BY number LIMIT {classes}")
    ]
    squares = dict(_rows(f"{ratings} SELECT number, sum(rating * rating) FROM r GROUP BY number"))
    dots = _rows(
        f"{ratings} SELECT m.number, c.number, sum(m.rating * c.rating) FROM r m JOIN r c ON m.who = c.who "
        f"WHERE c.number <= {centres[-1]} GROUP BY m.number, c.number"
    )
    best: dict[int, tuple[Fraction, int]] = {}
    for movie, centre, dot in dots:
        alike = (Fraction(int(dot) ** 2, int(squares[centre])), -centre)
        best[movie] = max(best.get(movie, alike), alike)
    names = _rows(f"SELECT number, movie FROM ({_movies(inputs[0])})")
    place = {number: at for at, number in enumerate(centres)}
    expected = Counter(
        f"{place[-best[number][1]] if number in best else 0}\t{movie}".encode() for number, movie in names
    )
    return _compare(expected, files)


def _self_join(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    table = _csv(inputs[0], {"a": "VARCHAR", "b": "VARCHAR", "c": "VARCHAR"})
    rows = _rows(
        f"WITH t AS (SELECT DISTINCT a, b, c FROM {table}) "
        "SELECT x.a, x.b, x.c, y.c FROM t x JOIN t y ON x.a = y.a AND x.b = y.b AND x.c < y.c"
    )
    return _compare(Counter(f"{a},{b}\t{c},{d}".encode() for a, b, c, d in rows), files)


def _selection(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    rows = _rows(f"SELECT url, rank FROM {_csv(inputs[0], _RANKINGS)} WHERE rank > {int(settings['rank'])}")
    return _compare(Counter(f"{url}\t{rank}".encode() for url, rank in rows), files)


def _facebook_grep(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    names = ", ".join(_literal(str(file)) for file in inputs[0])
    read = f"read_csv([{names}], header=false, delim='\t', quote='', escape='', columns={{'line': 'VARCHAR'}})"
    rows = _rows(f"SELECT line FROM {read} WHERE contains(line, {_literal(settings['pattern'])})")
    return _compare(Counter(f"{line}\t1".encode() for (line,) in rows), files)


def _aggregation(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    rows = _rows(
        f"SELECT address, sum(round(revenue * 10000)::BIGINT)::BIGINT FROM {_csv(inputs[0], _VISITS)} GROUP BY address"
    )
    return _compare(Counter(f"{address}\t{_money(total)}".encode() for address, total in rows), files)


def _join(inputs: Sequence[Sequence[Path]], settings: Mapping[str, str], files: Sequence[Path]) -> Verdict:
    first, last = _literal(settings["first_day"]), _literal(settings["last_day"])
    rows = _rows(
        "SELECT v.address, sum(r.rank)::BIGINT, count(*), sum(round(v.revenue * 10000)::BIGINT)::BIGINT "
        f"FROM {_csv(inputs[0], _RANKINGS)} r JOIN {_csv(inputs[1], _VISITS)} v ON r.url = v.url "
        f"WHERE v.day BETWEEN {first} AND {last} GROUP BY v.address"
    )
    expected = (f"{address}\t{ranks / count:.6f}\t{_money(total)}".encode() for address, ranks, count, total in rows)
    return _compare(Counter(expected), files)


CHECKS: Mapping[str, Check] = {
    "wordcount": _word_count,
    "grep": _grep,
    "terasort": _tera_sort,
    "sort": _sort,
    "invertedindex": _inverted_index,
    "histogrammovies": _histogram_movies,
    "histogramratings": _histogram_ratings,
    "selfjoin": _self_join,
    "sequencecount": _sequence_count,
    "classification": _classification,
    "selection": _selection,
    "fbgrep": _facebook_grep,
    "aggregation": _aggregation,
    "join": _join,
}
