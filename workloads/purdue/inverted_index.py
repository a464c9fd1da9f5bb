"""InvertedIndex (PUMA) for Hadoop Streaming: in which files a word stands, and how often, most often first.

map: ``word <tab> file <tab> 1``; combine: the same with counts; reduce: ``word <tab> file:count,file:count``.
Plain Python on bytes, nothing but the standard library.
"""

import os
import sys
from itertools import groupby


def rows(lines):
    for line in lines:
        word, file, count = line.rstrip(b"\n").split(b"\t")
        yield word, file, int(count)


def map_lines(lines, write):
    file = os.path.basename(os.environ.get("mapreduce_map_input_file", "-")).encode()
    for line in lines:
        for word in line.split():
            write(word + b"\t" + file + b"\t1\n")


def counted(group):
    counts = {}
    for _, file, count in group:
        counts[file] = counts.get(file, 0) + count
    return counts


def combine_lines(lines, write):
    for word, group in groupby(rows(lines), key=lambda row: row[0]):
        for file, count in counted(group).items():
            write(b"%s\t%s\t%d\n" % (word, file, count))


def reduce_lines(lines, write):
    for word, group in groupby(rows(lines), key=lambda row: row[0]):
        order = sorted(counted(group).items(), key=lambda item: (-item[1], item[0]))
        write(word + b"\t" + b",".join(b"%s:%d" % item for item in order) + b"\n")


if __name__ == "__main__":
    {"map": map_lines, "combine": combine_lines, "reduce": reduce_lines}[sys.argv[1]](
        sys.stdin.buffer, sys.stdout.buffer.write
    )
