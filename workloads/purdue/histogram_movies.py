"""HistogramMovies (PUMA) for Hadoop Streaming: how many movies have which average rating, in steps of a half.

Input: ``movie:user_rating,user_rating,...``. A movie's average goes into the nearest half, a quarter up.
map: ``bin <tab> 1``; combine and reduce add up. Plain Python on bytes, nothing but the standard library.
"""

import sys
from itertools import groupby


def map_lines(lines, write):
    for line in lines:
        _, colon, pairs = line.strip().partition(b":")
        if not colon or not pairs:
            continue
        ratings = [int(pair.rpartition(b"_")[2]) for pair in pairs.split(b",")]
        # floor(2 * average + 1/2) in whole numbers: no average is rounded before it is in its bin.
        halves = (4 * sum(ratings) + len(ratings)) // (2 * len(ratings))
        write(b"%d.%d\t1\n" % (halves // 2, 5 * (halves % 2)))


def reduce_lines(lines, write):
    for key, group in groupby((line.rstrip(b"\n").partition(b"\t") for line in lines), key=lambda row: row[0]):
        write(b"%s\t%d\n" % (key, sum(int(count) for _, _, count in group)))


if __name__ == "__main__":
    {"map": map_lines, "combine": reduce_lines, "reduce": reduce_lines}[sys.argv[1]](
        sys.stdin.buffer, sys.stdout.buffer.write
    )
