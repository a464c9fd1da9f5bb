"""Rankings selection (Hive benchmark) for Hadoop Streaming: ``SELECT pageURL, pageRank WHERE pageRank > X``.

``selection.py map X``; there is no reduce. Input: ``pageRank,pageURL,avgDuration``.
Plain Python on bytes, nothing but the standard library.
"""

import sys


def map_lines(lines, write, least):
    for line in lines:
        fields = line.split(b",")
        if len(fields) == 3 and int(fields[0]) > least:
            write(fields[1] + b"\t" + fields[0] + b"\n")


if __name__ == "__main__":
    map_lines(sys.stdin.buffer, sys.stdout.buffer.write, int(sys.argv[2]))
