"""Problems of an action file, each at its key; `load` adds line and column."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aileron_core.text import escape

KeyPath = tuple[str | int, ...]
"""Where a key stands in the front matter: table keys, and indexes from 0 in arrays."""

_SHOWN = 80
_LONGEST = 200
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyProblem:
    """One problem, or one spelling that was accepted leniently."""

    path: KeyPath
    message: str
    class_: Literal["parse_error", "validation_error", "leniency", "portability"] = (
        "validation_error"
    )
    """`parse_error` for the file's form, `validation_error` for its rules, `leniency` for what is
    taken though the strict rules have another spelling, `portability` for what upstream refuses."""
    severity: Literal["error", "warning"] = "error"


def key_text(path: Sequence[str | int]) -> str:
    """Return *path* as people write it: `execute[0].inputs.title`, `render."Sent to"`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{_part_text(part)}" if text else _part_text(part)
    return text


def _part_text(part: str) -> str:
    """Return one part of a key, in quotes where TOML would ask for them: it may hold dots itself."""
    if _BARE.fullmatch(part) and len(part) <= _LONGEST:
        return part
    part = part if len(part) <= _LONGEST else f"{part[:_LONGEST]}…"
    return '"' + escape(part).replace("\\", "\\\\").replace('"', '\\"') + '"'


def quoted(value: str) -> str:
    """Return foreign text for a message: safe to draw, and of a length that leaves it readable."""
    if len(value) > _SHOWN:
        return f'"{escape(value[:_SHOWN])}…" ({len(value)} characters)'
    return f'"{escape(value)}"'
