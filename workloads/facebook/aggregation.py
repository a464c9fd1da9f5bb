"""Uservisits aggregation (Hive benchmark) for Hadoop Streaming: ``SELECT sourceIP, SUM(adRevenue) GROUP BY sourceIP``.

Money is added in ten-thousandths, exactly. map: ``sourceIP <tab> ten-thousandths``; combine adds up;
reduce: ``sourceIP <tab> revenue``. Plain Python on bytes, nothing but the standard library.
"""

import sys
from itertools import groupby


def map_lines(lines, write):
    for line in lines:
        fields = line.split(b",")
        if len(fields) == 9:
            write(b"%s\t%d\n" % (fields[0], round(float(fields[3]) * 10000)))


def sums(lines):
    for key, group in groupby((line.rstrip(b"\n").partition(b"\t") for line in lines), key=lambda row: row[0]):
        yield key, sum(int(value) for _, _, value in group)


def combine_lines(lines, write):
    for key, total in sums(lines):
        write(b"%s\t%d\n" % (key, total))


def reduce_lines(lines, write):
    for key, total in sums(lines):
        write(b"%s\t%d.%04d\n" % (key, total // 10000, total % 10000))


if __name__ == "__main__":
    {"map": map_lines, "combine": combine_lines, "reduce": reduce_lines}[sys.argv[1]](
        sys.stdin.buffer, sys.stdout.buffer.write
    )
