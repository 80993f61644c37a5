"""The calls of the last hours by their outcome, on one line."""

from collections.abc import Sequence

from aileron_core.console_port.view_models import HourOfCalls
from aileron_tui import words
from aileron_tui.draw.text import Line, Piece, Role, cell_width, line

HOURS = 12
"""Hours that are plotted."""
_BARS = "▁▂▃▄▅▆▇█"
_KINDS: tuple[tuple[str, Role, frozenset[str]], ...] = (
    ("done", "ok", frozenset({"completed", "settled"})),
    ("denied", "danger", frozenset({"denied", "refused"})),
    ("failed", "danger", frozenset({"failed", "unknown"})),
    ("not run", "muted", frozenset({"expired", "withdrawn"})),
)


def outcome_plot(hours: Sequence[HourOfCalls], width: int) -> Line:
    """Return a bar for each of *hours*, the newest last, for each kind of outcome that there is, and how many there are.

    Nothing where no call ended. All bars have one scale; a call that is alone is seen.
    """
    plotted = [
        (name, role, [sum(n for state, n in hour.outcomes if state in states) for hour in hours])
        for name, role, states in _KINDS
    ]
    most = max((max(counts, default=0) for _, _, counts in plotted), default=0)
    drawn = line(" ", Piece(words.views.last_hours(len(hours)), "muted"))
    found = False
    for name, role, counts in plotted:
        bars = "".join(_BARS[-(-each * len(_BARS) // most) - 1] if each else "·" for each in counts)
        more = line(Piece(f"  {name} ", "muted"), Piece(bars, role), f" {sum(counts)}")
        if any(counts) and cell_width((*drawn, *more)) < width:
            drawn, found = (*drawn, *more), True
    return drawn if found else ()
