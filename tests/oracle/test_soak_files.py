"""Would a ResourceManager start with the files of the soak? Hadoop's own classes say so, and the soak's model agrees.

The soak holds every file that a controller leaves on the disk against the model's rule, so the rule has to be Hadoop's.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from harness.clusters.jars import find
from tests.control.soak import edits
from tests.control.soak.regime import FOURTH, SECOND
from tests.control.soak.stood import Stood, files_of, mistaken
from tests.oracle import loading
from tests.oracle.hadoop_allocations import ask

pytestmark = pytest.mark.java


def starts_in_hadoop(files: list[Stood], folder: Path, timeout_s: float) -> list[bool]:
    """Whether a ResourceManager starts with each of them, all its queues included."""
    lib, found = find(), dict.fromkeys(range(len(files)), False)
    fair = [number for number, file in enumerate(files) if not file.capacity]
    cases = [{"xml": files[number].data.decode(), "memory_mb": 65_536, "vcores": 64} for number in fair]
    for number, answer in zip(fair, ask(cases, lib, folder, timeout_s=timeout_s) if fair else [], strict=True):
        names = _named(files[number].data)
        found[number] = answer["loaded"] and names <= answer["queues"].keys()
    other = [number for number, file in enumerate(files) if file.capacity]
    answers = loading.load([files[number].data for number in other], timeout_s=timeout_s) if other else []
    for number, answer in zip(other, answers, strict=True):
        found[number] = answer.start is None
    return [found[number] for number in range(len(files))]


def _named(data: bytes) -> set[str]:
    """The queues that a file names, whatever is wrong with their settings."""
    top, found = edits.parsed(data, "allocations"), set()
    waiting = [(element, "root") for element in top if element.tag == "queue"]
    while waiting:
        element, parent = waiting.pop()
        path = "root" if element.get("name") == "root" and parent == "root" else f"{parent}.{element.get('name')}"
        found.add(path)
        waiting += [(child, path) for child in element if child.tag == "queue"]
    return found


def compare(files: list[Stood], folder: Path, timeout_s: float = 120.0) -> Counter[tuple[bool, bool, bool]]:
    """Fails where Hadoop and the model differ; how many of which sort there were."""
    answers = starts_in_hadoop(files, folder, timeout_s)
    wrong = [
        f"{file.mistake or 'as it stood'}: Hadoop {'starts' if starts else 'does not start'}\n{file.data.decode()}"
        for file, starts in zip(files, answers, strict=True)
        if starts != file.starts
    ]
    assert not wrong, f"{len(wrong)} of {len(files)} files differ; the first, {wrong[0]}"
    return Counter((file.capacity, bool(file.mistake), starts) for file, starts in zip(files, answers, strict=True))


def drawn(seeds: range, most: int) -> list[Stood]:
    """Files as they stood, and as many with a mistake."""
    rng, files = random.Random(seeds.start), files_of(seeds, most)
    return files + [mistaken(file, rng) for file in files]


def test_hadoop_starts_with_the_files_with_which_the_model_starts(tmp_path: Path) -> None:
    counts = compare(drawn(range(SECOND + 6, SECOND + 10), 25) + drawn(range(FOURTH, FOURTH + 5), 12), tmp_path)
    assert sum(count for (_, mistake, _), count in counts.items() if not mistake) >= 60
    # Nothing that stood there was refused; mistakes of both schedulers were.
    assert not any(not mistake and not starts for _, mistake, starts in counts)
    assert all(counts[capacity, True, False] >= 5 for capacity in (False, True)), counts


@pytest.mark.long
def test_hadoop_starts_with_ten_thousand_files_with_which_the_model_starts(tmp_path: Path) -> None:
    files: list[Stood] = []
    for begin in range(SECOND + 1000, SECOND + 2000, 20):
        files += drawn(range(begin, begin + 20), 50)
        if len(files) >= 10_000:
            break
    assert len(files) >= 10_000
    compare(files, tmp_path, 3600.0)
