"""Grep (Hive benchmark) for Hadoop Streaming: the lines that contain a string, ``field LIKE '%XYZ%'``.

``grep.py map XYZ``; there is no reduce. A found line is ``line <tab> 1``.
Plain Python on bytes, nothing but the standard library.
"""

import os
import sys


def map_lines(lines, write, wanted):
    for line in lines:
        line = line.rstrip(b"\r\n")
        if wanted in line:
            write(line + b"\t1\n")


if __name__ == "__main__":
    map_lines(sys.stdin.buffer, sys.stdout.buffer.write, os.fsencode(sys.argv[2]))
