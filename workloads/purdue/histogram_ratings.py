"""HistogramRatings (PUMA) for Hadoop Streaming: how often each rating was given.

Input: ``movie:user_rating,user_rating,...``. map: ``rating <tab> 1``; combine and reduce add up.
Plain Python on bytes, nothing but the standard library.
"""

import sys
from itertools import groupby


def map_lines(lines, write):
    for line in lines:
        _, colon, pairs = line.strip().partition(b":")
        if colon and pairs:
            for pair in pairs.split(b","):
                write(pair.rpartition(b"_")[2] + b"\t1\n")


def reduce_lines(lines, write):
    for key, group in groupby((line.rstrip(b"\n").partition(b"\t") for line in lines), key=lambda row: row[0]):
        write(b"%s\t%d\n" % (key, sum(int(count) for _, _, count in group)))


if __name__ == "__main__":
    {"map": map_lines, "combine": reduce_lines, "reduce": reduce_lines}[sys.argv[1]](
        sys.stdin.buffer, sys.stdout.buffer.write
    )
