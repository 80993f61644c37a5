"""What is wrong with an action file, by the key it concerns; the place in the file comes later."""

from dataclasses import dataclass
from typing import Literal

from aileron_core.text import escape

__all__ = ["Finding", "KeyPath", "key_text", "quoted"]

KeyPath = tuple[str | int, ...]
"""Where a key stands in the front matter: table keys, and indexes from 0 in arrays."""

_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing wrong, or one thing that was taken leniently."""

    path: KeyPath
    message: str
    class_: Literal["parse_error", "validation_error", "leniency", "portability"] = (
        "validation_error"
    )
    """`parse_error` for the file's form, `validation_error` for its rules, `leniency` for what is
    taken though the strict rules have another spelling, `portability` for what upstream refuses."""
    severity: Literal["error", "warning"] = "error"


def key_text(path: KeyPath) -> str:
    """Return *path* as people write it: `execute[0].inputs.title`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{escape(part)}" if text else escape(part)
    return text


def quoted(value: str) -> str:
    """Return foreign text for a message: safe to draw, and of a length that leaves it readable."""
    if len(value) > _SHOWN:
        return f'"{escape(value[:_SHOWN])}…" ({len(value)} characters)'
    return f'"{escape(value)}"'
