"""What is said of a filter: what it is, how many rows it lets through, the way back."""

from aileron_tui.presenters.filtering import Parsed
from aileron_tui.presenters.lines import Line, Piece, line
from aileron_tui.presenters.outside import outside
from aileron_tui.presenters.wording import filters

__all__ = ["filter_doubt", "filter_told"]


def filter_doubt(parsed: Parsed, matching: int, total: int) -> Line:
    """Return what is wrong with a filter: not understood, or nothing lets through; else nothing."""
    if parsed.problems:
        return line(Piece(parsed.problems[0], "attn"), Piece(filters.SHOW_ALL, "muted"))
    if not parsed.query or matching:
        return ()
    shown = outside(parsed.text, "strong")
    return line(Piece(filters.NONE, "attn"), *shown, Piece(filters.show_all(total), "attn"))


def filter_told(parsed: Parsed, matching: int, total: int) -> Line:
    """Return what a filter lets through; nothing without one."""
    if not parsed.text.strip():
        return ()
    counted = Piece(f"{filters.counted(matching, total)} ", "muted")
    return line(counted, *outside(parsed.text, "strong"), Piece(filters.SHOW_ALL, "muted"))
