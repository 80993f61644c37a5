"""The replacement of Edit: a text that occurs exactly once, or each occurrence of it."""

from aileron_core.connectors.builtin.worker.problems import OpFailed

MAX_RESULT = 16 * 1024 * 1024
"""Characters."""
_LINES_NAMED = 10


def replaced(text: str, old: str, new: str, *, every: bool, path: str) -> str:
    """Return *text* with *old* replaced by *new*.

    In a text whose lines all end in CR LF, the line feeds of *old* and *new* mean that too: Read shows such
    lines without their CR.

    Args:
        every: replace each occurrence; otherwise there must be exactly one.

    Raises:
        OpFailed: `invalid_arguments`, `too_large`.
    """
    if not old:
        raise OpFailed(
            "invalid_arguments",
            "old_string is empty. Give the text to replace, or use Write for a whole file.",
        )
    if old == new:
        raise OpFailed("invalid_arguments", "old_string and new_string are equal; nothing changes.")
    if 0 < text.count("\n") == text.count("\r\n"):
        old, new = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (old, new))
    times = text.count(old)
    if not times:
        raise OpFailed("invalid_arguments", _not_found(text, old, path))
    if times > 1 and not every:
        raise OpFailed(
            "invalid_arguments",
            f"old_string occurs {times} times in {path}, in {_named_lines(text, old, times)}. Add "
            "lines around it so that it occurs once, or set replace_all.",
        )
    if len(text) + times * (len(new) - len(old)) > MAX_RESULT:
        raise OpFailed(
            "too_large",
            f"{path} would have more than {MAX_RESULT} characters. Replace fewer occurrences.",
        )
    return text.replace(old, new)


def _not_found(text: str, old: str, path: str) -> str:
    wanted, lines = _without_blanks(old).strip("\n"), f"\n{_without_blanks(text)}\n"
    at = lines.find(f"\n{wanted}\n") if wanted else -1
    if at < 0:
        return f"old_string does not occur in {path}. Read the file and copy the text exactly."
    first = lines.count("\n", 0, at) + 1
    last = first + wanted.count("\n")
    where = f"line {first} differs" if first == last else f"lines {first} to {last} differ"
    return (
        f"old_string does not occur in {path}, but {where} from it only in blanks, tabs or line "
        "ends. Copy them exactly as Read shows them."
    )


def _without_blanks(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


def _named_lines(text: str, old: str, times: int) -> str:
    numbers: list[int] = []
    at, line = 0, 1
    while len(numbers) < _LINES_NAMED and (found := text.find(old, at)) >= 0:
        line += text.count("\n", at, found)
        numbers.append(line)
        line += text.count("\n", found, found + len(old))
        at = found + len(old)
    rest = f" and {times - len(numbers)} more" if times > len(numbers) else ""
    return f"lines {', '.join(map(str, numbers))}{rest}"
