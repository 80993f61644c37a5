"""Where in a TOML text a key stands, for messages; `tomllib` keeps no positions."""

import re

__all__ = ["key_line", "syntax_place"]

_HEADER = re.compile(r"\s*\[{1,2}\s*([A-Za-z0-9_.\"' -]+?)\s*\]{1,2}\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=")
_AT = re.compile(r"\(at line (\d+), column (\d+)\)")


def key_line(text: str, dotted: str) -> int:
    """Return the line, from 1, where *dotted* or its nearest table begins; 0 if it is not found.

    A guess by looking at lines: good enough to lead a person there, never used for a decision.
    """
    table, best, best_length = "", 0, -1
    for number, line in enumerate(text.splitlines(), start=1):
        if (header := _HEADER.match(line)) is not None:
            table = _plain(header[1])
            found = table
        elif (key := _KEY.match(line)) is not None:
            found = f"{table}.{_plain(key[1])}".strip(".")
        else:
            continue
        covers = dotted == found or dotted.startswith(f"{found}.")
        if covers and len(found) > best_length:
            best, best_length = number, len(found)
    return best


def syntax_place(message: str) -> tuple[int, int]:
    """Return line and column of a `tomllib` error message; zeros where it names none."""
    at = _AT.search(message)
    return (int(at[1]), int(at[2])) if at else (0, 0)


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))
