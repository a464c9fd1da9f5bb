"""SequenceCount (PUMA) for Hadoop Streaming: how often three words follow each other in a line of a file.

map: ``word|word|word|file <tab> 1``; combine and reduce add up.
Plain Python on bytes, nothing but the standard library.
"""

import os
import sys
from itertools import groupby


def map_lines(lines, write):
    file = os.path.basename(os.environ.get("mapreduce_map_input_file", "-")).encode()
    for line in lines:
        words = line.split()
        for three in zip(words, words[1:], words[2:]):
            write(b"|".join(three) + b"|" + file + b"\t1\n")


def reduce_lines(lines, write):
    for key, group in groupby((line.rstrip(b"\n").rpartition(b"\t") for line in lines), key=lambda row: row[0]):
        write(b"%s\t%d\n" % (key, sum(int(count) for _, _, count in group)))


if __name__ == "__main__":
    {"map": map_lines, "combine": reduce_lines, "reduce": reduce_lines}[sys.argv[1]](
        sys.stdin.buffer, sys.stdout.buffer.write
    )
