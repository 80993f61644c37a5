"""What is said of a filter: what it is, how many rows it lets through, the way back."""

from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, line
from aileron_tui.state.filter import ParsedFilter
from aileron_tui.words import filters

__all__ = ["filter_doubt", "filter_status"]


def filter_doubt(parsed: ParsedFilter, matching: int, total: int) -> Line:
    """Return what is wrong with a filter: not understood, or nothing lets through; else nothing."""
    if parsed.problems:
        return line(Piece(parsed.problems[0], "attn"), Piece(filters.SHOW_ALL, "muted"))
    if not parsed.query or matching:
        return ()
    shown = foreign_text(parsed.text, "strong")
    return line(Piece(filters.NONE, "attn"), *shown, Piece(filters.show_all(total), "attn"))


def filter_status(parsed: ParsedFilter, matching: int, total: int) -> Line:
    """Return what a filter lets through; nothing without one."""
    if not parsed.text.strip():
        return ()
    counted = Piece(f"{filters.counted(matching, total)} ", "muted")
    return line(counted, *foreign_text(parsed.text, "strong"), Piece(filters.SHOW_ALL, "muted"))
