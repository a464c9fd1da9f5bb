"""The content of a data set's parts: the bytes of part i, computed from the seed. No file I/O.

Every kind is cut into parts of about `PART_BYTES`; part i depends on (kind, seed, i) and nothing else, so that parts
can be made in any order, in parallel, and again after an interruption. Sources of the shapes: the Hive benchmark's
tables (rankings, uservisits; Pavlo et al., SIGMOD 2009, section 4), PUMA's Wikipedia text and movie ratings (Ahmad et
al., 2012), TeraGen's records (Hadoop), and Gaussian clusters and ratings for k-means and ALS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

PART_BYTES = 16 << 20
WORDS = 50_000
#: Exponent of word frequencies; about 1 in English text.
ZIPF = 1.05
PAGES = 2_000_000
MOVIES, USERS = 17_770, 480_189
CLUSTERS, DIMENSIONS = 10, 20
_DAYS = np.arange(np.datetime64("2010-01-01"), np.datetime64("2013-01-01"))
_COUNTRIES = np.array(["USA", "CHN", "IND", "DEU", "BRA", "GBR", "FRA", "RUS", "JPN", "SGP"])
_AGENTS = np.array(["Mozilla/5.0", "Opera/9.80", "Lynx/2.8", "Wget/1.12", "Safari/533"])
_LANGUAGES = np.array(["en-us", "zh-cn", "hi-in", "de-de", "pt-br", "en-gb", "fr-fr", "ru-ru", "ja-jp", "en-sg"])

Draw = Generator


def _generator(kind: str, seed: int, part: int) -> Draw:
    # Philox is defined bit for bit on every machine; the distributions above it are those of the pinned numpy.
    return Generator(Philox(key=[(seed << 8) ^ _CODES[kind], part]))


def vocabulary(seed: int) -> NDArray[np.str_]:
    """Return ``WORDS`` different words of 2 to 12 letters, equal for all parts of a seed.

    Frequent words are shorter.
    """
    draw = Generator(Philox(key=[(seed << 8) ^ 0xFF, 0]))
    letters = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))
    weights = 1.0 / np.arange(2, 28)
    weights /= weights.sum()
    found: dict[str, None] = {}
    while len(found) < WORDS:
        drawn = letters[np.searchsorted(np.cumsum(weights), draw.random((4 * WORDS, 12)) * (1 - 1e-12))]
        extra = draw.integers(0, 4, 4 * WORDS)
        for row, more in zip(drawn.tolist(), extra.tolist(), strict=True):
            if len(found) == WORDS:
                break
            found["".join(row[: min(2 + len(found) // 6000 + more, 12)])] = None
    return np.array(list(found))


def _text(draw: Draw, size: int, seed: int) -> bytes:
    """Return lines of 8 to 16 words with Zipf frequencies."""
    words = vocabulary_cached(seed)
    ranks = np.arange(1, WORDS + 1, dtype=np.float64) ** -ZIPF
    edges = np.cumsum(ranks / ranks.sum())
    lines: list[str] = []
    written = 0
    while written < size:
        chosen = words[np.minimum(np.searchsorted(edges, draw.random(200_000)), WORDS - 1)]
        at = 0
        for length in draw.integers(8, 17, size=len(chosen) // 16):
            line = " ".join(chosen[at : at + int(length)].tolist())
            at += int(length)
            lines.append(line)
            written += len(line) + 1
            if written >= size:
                break
    return ("\n".join(lines) + "\n").encode()


_VOCABULARIES: dict[int, NDArray[np.str_]] = {}


def vocabulary_cached(seed: int) -> NDArray[np.str_]:
    """Return `vocabulary`, computed once per process (it takes a second)."""
    if seed not in _VOCABULARIES:
        _VOCABULARIES.clear()
        _VOCABULARIES[seed] = vocabulary(seed)
    return _VOCABULARIES[seed]


def _rows(size: int, per_row: int, make: Callable[[int], str]) -> bytes:
    """Return lines of text up to a size: ``make(n)`` gives n lines."""
    return make(max(size // per_row, 1)).encode()


def _join(*columns: NDArray[np.generic]) -> str:
    """Return columns of equal length as lines of comma-separated values."""
    texts = [column.astype(str).tolist() for column in columns]
    return "\n".join(",".join(row) for row in zip(*texts, strict=True)) + "\n"


def _rankings(draw: Draw, size: int, seed: int) -> bytes:
    """Make pageRank, pageURL, avgDuration: exponential ranks, so that selections by rank can take any fraction."""

    def make(n: int) -> str:
        ranks = np.minimum(draw.exponential(30, n).astype(int) + 1, 10_000)
        pages = draw.integers(0, PAGES, n)
        return _join(ranks, np.char.add("url", pages.astype(str)), draw.integers(1, 100, n))

    return _rows(size, 16, make)


def _uservisits(draw: Draw, size: int, seed: int) -> bytes:
    """Make sourceIP, destURL (as in rankings), visitDate, adRevenue, agent, country, language, word, seconds."""
    words = vocabulary_cached(seed)

    def make(n: int) -> str:
        bytes_of = draw.integers(1, 255, (n, 4)).astype(str)
        address = bytes_of[:, 0]
        for column in range(1, 4):
            address = np.char.add(np.char.add(address, "."), bytes_of[:, column])
        # Popular pages get more visits: the square of a uniform number.
        pages = (draw.random(n) ** 2 * PAGES).astype(int)
        revenue = np.round(draw.random(n), 4)
        where = draw.integers(0, len(_COUNTRIES), n)
        return _join(
            address,
            np.char.add("url", pages.astype(str)),
            _DAYS[draw.integers(0, len(_DAYS), n)],
            revenue,
            _AGENTS[draw.integers(0, len(_AGENTS), n)],
            _COUNTRIES[where],
            _LANGUAGES[where],
            words[draw.integers(0, 5000, n)],
            draw.integers(1, 10, n),
        )

    return _rows(size, 70, make)


def _movies(draw: Draw, size: int, seed: int) -> bytes:
    """Make PUMA's format, one line per movie: ``movie:user_rating,user_rating,...``; ratings 1 to 5."""

    def make(n: int) -> str:
        lines = []
        for movie in draw.integers(1, MOVIES + 1, n):
            count = int(draw.integers(20, 120))
            users, stars = (
                draw.integers(1, USERS + 1, count),
                draw.choice(5, count, p=[0.05, 0.1, 0.28, 0.34, 0.23]) + 1,
            )
            pairs = zip(users.tolist(), stars.tolist(), strict=True)
            lines.append(f"{movie}:" + ",".join(f"{user}_{star}" for user, star in pairs))
        return "\n".join(lines) + "\n"

    return _rows(size, 610, make)


def _tera(draw: Draw, size: int, seed: int) -> bytes:
    """Make TeraGen's records: 10 random bytes of key, 88 of value, CR LF; 100 bytes each."""
    count = max(size // 100, 1)
    record = np.empty((count, 100), np.uint8)
    record[:, :10] = draw.integers(0, 256, (count, 10), dtype=np.uint8)
    record[:, 10:98] = draw.integers(65, 91, (count, 88), dtype=np.uint8)
    record[:, 98], record[:, 99] = 13, 10
    return record.tobytes()


def centres_of(seed: int) -> NDArray[np.float64]:
    """Return the centres of a seed's points, (CLUSTERS, DIMENSIONS)."""
    return Generator(Philox(key=[(seed << 8) ^ 0xFE, 0])).uniform(-100, 100, (CLUSTERS, DIMENSIONS))


def _points(draw: Draw, size: int, seed: int) -> bytes:
    """Make points around `CLUSTERS` centres in `DIMENSIONS` dimensions, separated by spaces, for k-means."""
    centres = centres_of(seed)

    def make(n: int) -> str:
        points = centres[draw.integers(0, CLUSTERS, n)] + draw.normal(0, 5, (n, DIMENSIONS))
        return "\n".join(" ".join(row) for row in np.char.mod("%.3f", points).tolist()) + "\n"

    return _rows(size, 152, make)


def _ratings(draw: Draw, size: int, seed: int) -> bytes:
    """Make user, item, rating from a hidden model of rank 5, which ALS can find."""
    hidden = Generator(Philox(key=[(seed << 8) ^ 0xFD, 0]))
    users, items = hidden.normal(0, 1, (5000, 5)), hidden.normal(0, 1, (2000, 5))

    def make(n: int) -> str:
        u, i = draw.integers(0, 5000, n), draw.integers(0, 2000, n)
        score = 3.0 + (users[u] * items[i]).sum(axis=1) / 2.0 + draw.normal(0, 0.2, n)
        return _join(u, i, np.round(np.clip(score, 1, 5), 2))

    return _rows(size, 14, make)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of data set: the names of its files and their purpose."""

    name: str
    suffix: str
    what: str
    make: Callable[[Draw, int, int], bytes]


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("rankings", "csv", "pages with a rank (Hive benchmark); Facebook's selection and join", _rankings),
        Kind("uservisits", "csv", "visits of pages (Hive benchmark); Facebook's aggregation and join", _uservisits),
        Kind("text", "txt", "text with a Zipf vocabulary; Purdue's WordCount, Grep, InvertedIndex", _text),
        Kind("movies", "txt", "movies with their ratings; Purdue's HistogramMovies, HistogramRatings", _movies),
        Kind("tera", "bin", "records of 100 bytes; TeraSort", _tera),
        Kind("points", "txt", "points around centres; k-means", _points),
        Kind("ratings", "csv", "user, item, rating; ALS", _ratings),
    )
}
_CODES = {name: code for code, name in enumerate(KINDS, start=1)}


def part_bytes(kind: str, seed: int, part: int, size: int) -> bytes:
    """Return the bytes of one part of about ``size`` bytes (whole lines or records)."""
    return KINDS[kind].make(_generator(kind, seed, part), size, seed)
