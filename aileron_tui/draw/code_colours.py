"""Code in colour: which stretches of a line are names and values of its language.

Only colour depends on it, never which text is drawn or how it is marked. Text from outside chooses the
language and its length, so a few languages are read, line by line, and no more than `MAX_LINE` of one.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_LINE: Final = 300
"""Characters; a longer line stays as it is."""
Kind = Literal["name", "value"]
_LANGUAGES: Final = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".h": "c", ".css": "css", ".go": "go", ".java": "java",
    ".js": "javascript", ".jsx": "javascript", ".json": "json", ".kt": "kotlin", ".mjs": "javascript",
    ".py": "python", ".pyi": "python", ".rb": "ruby", ".rs": "rust", ".sh": "bash", ".toml": "toml",
    ".ts": "typescript", ".tsx": "typescript", ".yaml": "yaml", ".yml": "yaml", ".zig": "zig",
}  # fmt: skip


def language(path: str) -> str:
    """Return the language of a file, by its name; empty if it is none of those that are read."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def coloured(text: str, name: str) -> Iterator[tuple[str, Kind | None]]:
    """Yield the stretches of the line *text* of the language *name*, which together are exactly *text*."""
    if not name or len(text) > MAX_LINE:
        yield text, None
        return
    from pygments import token as tokens

    parts: list[tuple[str, Kind | None]] = []
    for _, token, part in _lexer(name).get_tokens_unprocessed(f"{text}\n"):
        named = (
            token in tokens.Keyword or token in tokens.Name.Tag or token in tokens.Name.Attribute
        )
        parts.append((part, "name" if named else "value" if token in tokens.Literal else None))
    whole = "".join(part for part, _ in parts)
    if whole != f"{text}\n":
        yield text, None
        return
    left = len(text)
    for kind, alike in groupby(parts, key=_kind):
        if kept := "".join(part for part, _ in alike)[:left]:
            yield kept, kind
        left -= len(kept)


def _kind(part: tuple[str, Kind | None]) -> Kind | None:
    return part[1]


@lru_cache(maxsize=32)
def _lexer(name: str) -> "Lexer":
    from pygments import lexers

    lexer: Lexer = lexers.get_lexer_by_name(name)  # pyright: ignore[reportUnknownMemberType]
    return lexer
