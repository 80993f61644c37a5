"""The unified diff of two texts, in a time that neither of them can make long.

`difflib` alone takes minutes for a few thousand lines of two kinds. So the texts are first divided at lines
that both have exactly once, and what lies between is compared until the work is used up; then it is shown as
replaced.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

MAX_DIFFED = 1024 * 1024
"""Bytes of a text that is compared line by line, as its callers keep to."""
_CONTEXT = 3
_MAX_WORK = 50_000_000
"""Steps at the worst: about half a second."""

Block = tuple[int, int, int]
"""Lines that stay: where they begin in the old and in the new text, and how many they are."""
Change = tuple[int, int, int, int]
"""Lines `[a0, a1)` of the old text that become lines `[b0, b1)` of the new one."""


def unified_diff(old: str | None, new: str | None, path: str) -> tuple[str, int, int]:
    """Return the diff, the number of lines added, and of lines removed.

    Args:
        old: None if there is no such file.
        new: None if there will be none.
    """
    a, b = _split(old or ""), _split(new or "")
    changes = list(_changes(a, b))
    added = sum(b1 - b0 for _, _, b0, b1 in changes)
    removed = sum(a1 - a0 for a0, a1, _, _ in changes)
    if not changes:
        return "", 0, 0
    before = "/dev/null" if old is None else _label(f"a/{path}")
    after = "/dev/null" if new is None else _label(f"b/{path}")
    out = [f"--- {before}\n", f"+++ {after}\n"]
    for hunk in _hunks(changes):
        out += _drawn(hunk, a, b)
    return "".join(out), added, removed


def _label(path: str) -> str:
    """Return *path*, quoted if it could be taken for more than a path: a file's name may hold a line's end."""
    return path if path.isprintable() and '"' not in path else json.dumps(path)


def _split(text: str) -> list[str]:
    """Return the lines with their ends; of all line ends only a line feed counts, as in git."""
    lines = [f"{each}\n" for each in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _changes(a: Sequence[str], b: Sequence[str]) -> Iterator[Change]:
    at_a = at_b = 0
    for start_a, start_b, size in (*_blocks(a, b), (len(a), len(b), 0)):
        if start_a > at_a or start_b > at_b:
            yield at_a, start_a, at_b, start_b
        at_a, at_b = start_a + size, start_b + size


def _blocks(a: Sequence[str], b: Sequence[str]) -> Iterator[Block]:
    """Yield what stays, in order; blocks may touch."""
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    left = shorter - start
    end = next((i for i in range(left) if a[-1 - i] != b[-1 - i]), left)
    yield 0, 0, start
    work = _MAX_WORK
    anchors = _anchors(a[start : len(a) - end], b[start : len(b) - end])
    fixed = [(start - 1, start - 1), *((x + start, y + start) for x, y in anchors)]
    fixed.append((len(a) - end, len(b) - end))
    for (a0, b0), (a1, b1) in pairwise(fixed):
        gap_a, gap_b = a[a0 + 1 : a1], b[b0 + 1 : b1]
        cost = _cost(gap_a, gap_b)
        if cost <= work:
            work -= cost
            matcher = SequenceMatcher(None, gap_a, gap_b, autojunk=False)
            for x, y, size in matcher.get_matching_blocks():
                if size:
                    yield a0 + 1 + x, b0 + 1 + y, size
        if (a1, b1) != fixed[-1]:
            yield a1, b1, 1
    yield len(a) - end, len(b) - end, end


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Return the most pairs of lines that are unique in both, in an order that both have (patience diff)."""
    once_a, once_b = Counter(a), Counter(b)
    place = {line: at for at, line in enumerate(b) if once_b[line] == 1}
    pairs = [(x, place[line]) for x, line in enumerate(a) if once_a[line] == 1 and line in place]
    tails: list[
        int
    ] = []  # of the sequence of each length: its last line in b, and which pair that is
    tail_pairs: list[int] = []
    previous = [-1] * len(pairs)
    for at, (_, y) in enumerate(pairs):
        length = bisect_left(tails, y)
        tails[length : length + 1] = [y]
        tail_pairs[length : length + 1] = [at]
        previous[at] = tail_pairs[length - 1] if length else -1
    found: list[tuple[int, int]] = []
    at = tail_pairs[-1] if tail_pairs else -1
    while at >= 0:
        found.append(pairs[at])
        at = previous[at]
    return found[::-1]


def _cost(a: Sequence[str], b: Sequence[str]) -> int:
    counts = Counter(a)
    equal = sum(counts[each] * times for each, times in Counter(b).items())
    return equal * min(len(a), len(b)) + len(a) + len(b)


def _hunks(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Yield the changes that share their context."""
    hunk = [changes[0]]
    for change in changes[1:]:
        if change[0] - hunk[-1][1] > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _drawn(hunk: Sequence[Change], a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    before = min(_CONTEXT, first[0])
    after = min(_CONTEXT, len(a) - last[1])
    a_range = _range(first[0] - before, last[1] + after)
    b_range = _range(first[2] - before, last[3] + after)
    yield f"@@ -{a_range} +{b_range} @@\n"
    at = first[0] - before
    for a0, a1, b0, b1 in hunk:
        yield from (_line(" ", each) for each in a[at:a0])
        yield from (_line("-", each) for each in a[a0:a1])
        yield from (_line("+", each) for each in b[b0:b1])
        at = a1
    yield from (_line(" ", each) for each in a[at : at + after])


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _line(sign: str, line: str) -> str:
    return (
        f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
    )
