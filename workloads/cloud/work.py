"""A task that computes: ``python3 work.py crypto|sort SIZE``.

crypto: a chain of SIZE SHA-256 hashes, each of the one before it: only the processor counts. sort: SIZE random numbers
are written to a file, read, sorted and written back, onto the disk: memory and disk count besides. What comes out does
not depend on the machine. Plain Python, as small an installation as Debian's minimal one.
"""

import array
import hashlib
import os
import random
import sys


def crypto(size):
    digest = b"yarnfair".ljust(32)
    for _ in range(size):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def sort(size):
    draw, path = random.Random(size).getrandbits, f"work-{os.getpid()}"
    try:
        write(path, [draw(32) for _ in range(size)])
        numbers = array.array("L")
        with open(path, "rb") as stream:
            numbers.frombytes(stream.read())
        found = sorted(numbers)
        write(path, found)
    finally:
        if os.path.exists(path):
            os.unlink(path)
    if len(found) != size:
        raise ValueError(f"{len(found)} numbers of {size}")
    return str(found[0]) if found else ""


def write(path, numbers):
    with open(path, "wb") as stream:
        stream.write(array.array("L", numbers).tobytes())
        stream.flush()
        os.fsync(stream.fileno())


if __name__ == "__main__":
    print({"crypto": crypto, "sort": sort}[sys.argv[1]](int(sys.argv[2])))
