"""Glob patterns for paths in a project, as regular expressions.

`*`, `?` and `[...]` match within a name, `**` any number of folders, `{a,b}` either. A pattern without `/`
means a name in any folder; one with it begins at the folder that is searched.
"""

import re

from aileron_core.connectors.builtin.worker.problems import OpFailed

_MAX_ALTERNATIVES = 256


def glob_expression(pattern: str) -> re.Pattern[str]:
    """Return what matches the relative paths that *pattern* means.

    Raises:
        OpFailed: `invalid_arguments`.
    """
    return re.compile("|".join(_path_expression(each) for each in _alternatives(pattern)))


def _path_expression(pattern: str) -> str:
    parts = [each for each in pattern.split("/") if each not in ("", ".")]
    if "/" not in pattern:
        parts.insert(0, "**")
    out = ""
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            out += ".*" if last else "(?:[^/]+/)*"
        else:
            out += _name_expression(part) + ("" if last else "/")
    return f"(?s:{out})\\Z"


def _name_expression(name: str) -> str:
    """Return the expression of one name: as `fnmatch` has it, but never across a `/`."""
    out, at = "", 0
    while at < len(name):
        sign = name[at]
        end = name.find("]", at + 2) if sign == "[" else -1
        if sign == "*":
            out += "" if out.endswith("[^/]*") else "[^/]*"
        elif sign == "?":
            out += "[^/]"
        elif end > 0:
            inner = name[at + 1 : end].replace("\\", "\\\\")
            negated = inner[:1] in ("!", "^")
            inner = re.sub(r"([\[&~|])", r"\\\1", inner[1:] if negated else inner)
            out += f"(?!/)[{'^' if negated else ''}{inner}]"
            at = end
        else:
            out += re.escape(sign)
        at += 1
    try:
        re.compile(out)
    except re.error:
        raise OpFailed(
            "invalid_arguments", f"{name} is not a glob pattern: its [...] holds a reversed range."
        ) from None
    return out


def _alternatives(pattern: str) -> list[str]:
    """Return *pattern* with its braces expanded; one that is not closed, or has no comma, stays as it is."""
    done: list[str] = []
    left = [pattern]
    while left:
        each = left.pop()
        inner = re.search(r"\{([^{}]*,[^{}]*)\}", each)
        if inner is None:
            done.append(each)
        else:
            before, after = each[: inner.start()], each[inner.end() :]
            left += [f"{before}{choice}{after}" for choice in reversed(inner[1].split(","))]
        if len(done) + len(left) > _MAX_ALTERNATIVES:
            raise OpFailed(
                "invalid_arguments",
                f"The pattern's braces stand for more than {_MAX_ALTERNATIVES} patterns. Use fewer.",
            )
    return done
