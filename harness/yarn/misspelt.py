"""Suggest the probably intended name for a misspelt name of a setting, an element or a queue.

Similarity alone is not enough: ``maximum-application-lifetime`` does not mean ``maximum-applications``, and ``dev2``
does not mean ``dev1``. Most words of a name have to occur in the suggestion, possibly misspelt.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_WORD = re.compile(r"[0-9]+|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
#: Similarity above which one word may be a misspelling of another.
_ALIKE = 0.7
#: Similarity above which a whole name may be a misspelling of another, regardless of word boundaries.
_ALIKE_WHOLE = 0.9
#: Sets of words with the same meaning: Hadoop's older and present names.
_SAME = ({"app", "application", "job"}, {"queue", "pool"})
#: Minimum number of letters of an abbreviation of a word.
_SHORTEST = 3


def likely(name: str, known: Iterable[str], *, whole: bool = False) -> str:
    """Return the known name that was probably meant; "" if there is none, or more than one.

    ``whole``: whether the names are chosen by people, like queue names, and all of their words must occur.
    """
    words = [word.lower() for word in _WORD.findall(name[:100])]
    rates = [_rate(name, words, each, whole) for each in known if each != name]
    found = sorted(rate for rate in rates if rate is not None)
    if not found or (len(found) > 1 and found[0][0] == found[1][0] > 0):
        return ""
    return found[0][2]


def _rate(name: str, words: list[str], known: str, whole_names: bool) -> tuple[int, float, str] | None:
    """Return (number of missing words, dissimilarity, known name); None if that name cannot have been meant."""
    parts = [word.lower() for word in _WORD.findall(known)]
    unlike = 1 - difflib.SequenceMatcher(None, name.lower(), known.lower(), autojunk=False).ratio()
    if len(words) != len(parts) and _misspelt("".join(words), "".join(parts), _ALIKE_WHOLE):
        # The words may lack separators, as in maxresources.
        return 0, unlike, known
    rest = list(parts)
    one = _misspelt if whole_names else _one
    for word in words:
        match = next((part for part in rest if part == word), None) or next((p for p in rest if one(word, p)), None)
        if match is None:
            return None
        rest.remove(match)
    # Most of the name must be present, including any number that distinguishes it from others.
    if not words or len(rest) > (0 if whole_names else len(words) / 2) or any(word.isdigit() for word in rest):
        return None
    return len(rest), unlike, known


def _one(word: str, known: str) -> bool:
    """Return whether a word is another one: misspelt, abbreviated, or an older name of it."""
    if any({word.rstrip("s"), known.rstrip("s")} <= names for names in _SAME):
        return True
    return (len(word) >= _SHORTEST and known.startswith(word)) or _misspelt(word, known)


def _misspelt(word: str, known: str, alike: float = _ALIKE) -> bool:
    """Return whether a word is another one with some wrong letters."""
    if word == known:
        return True
    if any(char.isdigit() for char in word + known) or min(len(word), len(known)) < _SHORTEST:
        return False
    more = abs(len(word) - len(known))
    if more > 3 or (more > 1 and (word in known or known in word)):
        return False
    return difflib.SequenceMatcher(None, word, known, autojunk=False).ratio() >= alike
