"""Patterns for paths in a project: `*`, `?` and `[…]` within a name, `**` for any number of folders.

A pattern without `/` is the name of a file or folder anywhere. One with `/` begins at the project's top, as
`./` does before a single name. `/` at the end: a folder and all that is in it. Standard library only: the
workers of the built-in tools run a copy of this module.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache

_MAX_ALTERNATIVES = 256

_Parts = tuple[re.Pattern[str] | None, ...]


def matches(pattern: str, path: str, *, strict: bool) -> bool:
    """Return whether *path*, relative to the project and without links, is meant by *pattern*.

    Args:
        strict: for what allows. What denies, asks or hides disregards case, since a file system may, and means
            all that is in a matching folder.
    """
    parts = _parts(pattern, ignore_case=not strict)
    within = pattern.endswith("/") or not strict
    name = path.rpartition("/")[2]
    if not within and parts and name not in ("", "."):  # a search asks it of each file
        *above, last = parts
        if last and not last.match(name):
            return False
        if above and not any(above):
            return True
    places = _beyond_folders(parts, {0})
    for name in _names(path):
        if within and len(parts) in places:
            return True
        places = _beyond_folders(parts, {*_next(parts, places, name)})
    return len(parts) in places


def alternatives(pattern: str) -> list[str]:
    """Return what a search means by *pattern*, in which `{a,b}` is either and `[^a]` is `[!a]`.

    Braces that are not closed, or hold no comma, stand for themselves.

    Raises:
        ValueError: for more than 256 patterns.
    """
    done: list[str] = []
    left = [pattern.replace("[^", "[!")]
    while left:
        each = left.pop()
        inner = re.search(r"\{([^{}]*,[^{}]*)\}", each)
        if inner is None:
            done.append(each)
        else:
            before, after = each[: inner.start()], each[inner.end() :]
            left += [f"{before}{choice}{after}" for choice in reversed(inner[1].split(","))]
        if len(done) + len(left) > _MAX_ALTERNATIVES:
            raise ValueError(
                f"The pattern's braces stand for more than {_MAX_ALTERNATIVES} patterns. Use fewer."
            )
    return done


class HiddenPaths:
    """What a search leaves out: of *patterns*, the last that matches counts, and `!` begins an exception."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        last = [_last_name(each) for each in self._patterns if not each.startswith("!")]
        self._may_be_hidden = re.compile("|".join(map(translate, last)) or "(?!)", re.IGNORECASE)

    def hides(self, path: str) -> bool:
        """Return whether *path*, relative to the project and without links, is left out."""
        names = _names(path)
        if names and not any(map(self._may_be_hidden.match, names)):  # which is so of nearly all
            return False
        hidden = False
        for pattern in self._patterns:
            excepted = pattern.startswith("!")
            if hidden == excepted and matches(pattern.removeprefix("!"), path, strict=excepted):
                hidden = not excepted
        return hidden


def _last_name(pattern: str) -> str:
    """Return what one of the names of any path must match that *pattern* hides."""
    names = [name for name in _names(pattern) if name != "**"]
    return names[-1] if names else "*"


def _next(parts: _Parts, places: Iterable[int], name: str) -> Iterable[int]:
    for place in places:
        if place < len(parts):
            part = parts[place]
            if part is None:
                yield place
            elif part.match(name):
                yield place + 1


def _beyond_folders(parts: _Parts, places: Iterable[int]) -> set[int]:
    """Return *places* and those behind a `**`, which may stand for no folder at all."""
    found: set[int] = set()
    for place in places:
        found.add(place)
        while place < len(parts) and parts[place] is None:
            place += 1
            found.add(place)
    return found


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


@lru_cache(maxsize=2048)
def _parts(pattern: str, *, ignore_case: bool) -> _Parts:
    """Return one expression a name; None for `**`."""
    flags = re.IGNORECASE if ignore_case else 0
    parts = [
        None if name == "**" else re.compile(translate(name), flags) for name in _names(pattern)
    ]
    anywhere = "/" not in pattern.rstrip("/")
    return (None, *parts) if anywhere else (*parts,)
