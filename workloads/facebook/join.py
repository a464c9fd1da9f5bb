"""Rankings-uservisits join (Hive benchmark) for Hadoop Streaming: two jobs, as Hive plans them.

``SELECT sourceIP, AVG(pageRank), SUM(adRevenue) FROM rankings JOIN uservisits ON pageURL = destURL
WHERE visitDate BETWEEN X AND Y GROUP BY sourceIP``.

First ``join.py map X Y``: ``URL <tab> 0 <tab> rank`` or ``URL <tab> 1 <tab> sourceIP <tab> ten-thousandths``, sorted by
URL and then by the 0 or 1, cut by URL alone; ``join.py reduce``: ``sourceIP <tab> rank <tab> ten-thousandths``.
Then ``join.py map-again`` (nothing to do), ``join.py reduce-again``: ``sourceIP <tab> average rank <tab> revenue``.
Plain Python on bytes, nothing but the standard library.
"""

import sys
from itertools import groupby


def map_lines(lines, write, first_day, last_day):
    for line in lines:
        fields = line.rstrip(b"\r\n").split(b",")
        if len(fields) == 3:
            write(fields[1] + b"\t0\t" + fields[0] + b"\n")
        elif len(fields) == 9 and first_day <= fields[2] <= last_day:
            write(b"%s\t1\t%s\t%d\n" % (fields[1], fields[0], round(float(fields[3]) * 10000)))


def split(lines):
    return (line.rstrip(b"\n").split(b"\t") for line in lines)


def reduce_lines(lines, write):
    for _, group in groupby(split(lines), key=lambda row: row[0]):
        ranks = []
        for row in group:
            if row[1] == b"0":
                ranks.append(row[2])
            else:
                for rank in ranks:
                    write(b"\t".join((row[2], rank, row[3])) + b"\n")


def map_again(lines, write):
    for line in lines:
        write(line)


def reduce_again(lines, write):
    for address, group in groupby(split(lines), key=lambda row: row[0]):
        count = ranks = revenue = 0
        for row in group:
            count, ranks, revenue = count + 1, ranks + int(row[1]), revenue + int(row[2])
        write(b"%s\t%.6f\t%d.%04d\n" % (address, ranks / count, revenue // 10000, revenue % 10000))


if __name__ == "__main__":
    step, write = sys.argv[1], sys.stdout.buffer.write
    if step == "map":
        map_lines(sys.stdin.buffer, write, sys.argv[2].encode(), sys.argv[3].encode())
    else:
        {"reduce": reduce_lines, "map-again": map_again, "reduce-again": reduce_again}[step](sys.stdin.buffer, write)
