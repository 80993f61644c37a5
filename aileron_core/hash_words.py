"""The list of words that stand for the bits of any hash, so that a person can compare two at a glance.

The list is frozen: 2,048 words of four to seven letters whose first four letters are unique.
Changing it would change what old records say.
"""

from functools import cache
from importlib import resources


@cache
def _words() -> tuple[str, ...]:
    text = resources.files("aileron_core").joinpath("words.txt").read_text(encoding="ascii")
    return tuple(text.split())


def _spoken(digest: bytes, count: int) -> tuple[str, ...]:
    bits = int.from_bytes(digest[:8], "big")
    return tuple(_words()[(bits >> (64 - 11 * (i + 1))) & 2047] for i in range(count))


def three_words(digest: bytes) -> tuple[str, str, str]:
    """Return the words for the first 33 bits of *digest* (at least 8 bytes), 11 bits each."""
    first, second, third = _spoken(digest, 3)
    return first, second, third


def two_words(digest: bytes) -> tuple[str, str]:
    """Return the words for the first 22 bits of *digest*, as the footer shows the audit's head."""
    first, second = _spoken(digest, 2)
    return first, second
