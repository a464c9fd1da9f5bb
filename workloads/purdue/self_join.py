"""SelfJoin (PUMA) for Hadoop Streaming: associations of k + 1 fields from those of k, as a-priori mining makes them.

Two lines that differ in the last field alone make one of k + 1 fields, the last two in order.
map: ``first k-1 fields <tab> last field``; reduce: ``first k-1 fields <tab> field,field``, each pair once.
Plain Python on bytes, nothing but the standard library.
"""

import sys
from itertools import combinations, groupby


def map_lines(lines, write):
    for line in lines:
        first, comma, last = line.rstrip(b"\r\n").rpartition(b",")
        if comma:
            write(first + b"\t" + last + b"\n")


def reduce_lines(lines, write):
    for first, group in groupby((line.rstrip(b"\n").partition(b"\t") for line in lines), key=lambda row: row[0]):
        for pair in combinations(sorted({last for _, _, last in group}), 2):
            write(first + b"\t" + b",".join(pair) + b"\n")


if __name__ == "__main__":
    {"map": map_lines, "reduce": reduce_lines}[sys.argv[1]](sys.stdin.buffer, sys.stdout.buffer.write)
