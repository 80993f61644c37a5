"""The calls of the last hours by their outcome, on one line."""

from collections.abc import Sequence

from aileron_core.console_port.view_models import HourOfCalls
from aileron_tui import words
from aileron_tui.draw.text import Line, Piece, Role, cell_width, truncate

HOURS = 12
"""Hours that are plotted."""
_BARS = "▁▂▃▄▅▆▇█"
_KINDS: tuple[tuple[str, Role, frozenset[str]], ...] = (
    ("done", "ok", frozenset({"completed", "settled"})),
    ("denied", "danger", frozenset({"denied"})),
    ("failed", "danger", frozenset({"failed"})),
    ("unknown", "attn", frozenset({"unknown"})),
    ("refused", "danger", frozenset({"refused"})),
    ("not run", "muted", frozenset({"expired", "withdrawn"})),
)


def outcome_plot(hours: Sequence[HourOfCalls], width: int) -> Line:
    """Return a bar for each of *hours*, the newest last, for each kind of outcome that there is, and how many there are.

    Fewer hours where there is no room, one alone is cut; nothing where no call ended. All bars have one
    scale, and a call that is alone is seen.
    """
    drawn: Line = ()
    for first in range(len(hours)):
        drawn = _plot(hours[first:])
        if cell_width(drawn) < width:
            return drawn
    return truncate(drawn, width - 1)


def _plot(hours: Sequence[HourOfCalls]) -> Line:
    plotted: list[tuple[str, Role, list[int]]] = [
        (name, role, [sum(n for state, n in hour.outcomes if state in states) for hour in hours])
        for name, role, states in _KINDS
    ]
    most = max(max(counts) for _, _, counts in plotted)
    drawn: list[Piece] = [Piece(f" {words.views.last_hours(len(hours))}", "muted")]
    for name, role, counts in plotted if most else ():
        bars = "".join(_BARS[-(-each * len(_BARS) // most) - 1] if each else "·" for each in counts)
        if any(counts):
            drawn += [Piece(f"  {name} ", "muted"), Piece(bars, role), Piece(f" {sum(counts)}")]
    return tuple(drawn) if most else ()
