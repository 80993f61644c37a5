"""The list of committed records, newest first."""

from collections.abc import Sequence

from aileron_core.control_plane.port import RecordView
from aileron_tui.presenters import wording
from aileron_tui.presenters.lines import Line, Piece, Role, cells, cut, line, wrap
from aileron_tui.presenters.outside import outside
from aileron_tui.presenters.times import clock_seconds

__all__ = ["DETAIL_ROWS", "activity_detail", "activity_header", "activity_row", "activity_voice"]

_ROLES: dict[str, Role] = {
    "completed": "ok",
    "approved": "ok",
    "denied": "danger",
    "failed": "danger",
    "unknown": "attn",
    "differed": "attn",
    "unavailable": "attn",
    "conflict": "danger",
    "refused": "danger",
    "cut": "danger",
    "expired": "muted",
    "withdrawn": "muted",
}
_ACTORS = {"person": "you", "agent": "agent", "aileron": "aileron"}
_COLUMNS: tuple[tuple[str, int], ...] = (
    ("no.", 8),
    ("time", 10),
    ("event", 20),
    ("by", 9),
    ("agent", 12),
    ("action", 22),
)
_DROPPED_WHEN_NARROW = frozenset({"no.", "agent"})
NARROW = 100
DETAIL_ROWS = 3


def activity_header(width: int) -> Line:
    """Return the names of the columns."""
    named = [Piece(f"{name:<{size}}", "muted") for name, size in _columns(width)]
    return line(" ", " ", *named, Piece("what", "muted"))


def activity_row(record: RecordView, width: int, *, selected: bool) -> Line:
    """Return one record on one line; what does not fit ends in `…`."""
    kind = record.event.rpartition(".")[2]
    values: dict[str, Line] = {
        "no.": (Piece(str(record.seq), "muted"),),
        "time": (Piece(clock_seconds(record.at), "muted"),),
        "event": outside(record.event, _ROLES.get(kind, "text")),
        "by": (Piece(_ACTORS.get(record.actor, "aileron"), "text"),),
        "agent": outside(record.agent, "muted"),
        "action": outside(record.action or "", "text"),
    }
    parts: list[Piece] = [Piece("▌", "factbar") if selected else Piece(" "), Piece(" ")]
    for name, size in _columns(width):
        shown = cut(values[name], size - 2)
        parts += [*shown, Piece(" " * (size - cells(shown)))]
    return cut(line(*parts, *outside(record.summary, "gist" if selected else "text")), width - 1)


def activity_detail(record: RecordView, width: int) -> tuple[Line, ...]:
    """Return the summary of the selected record, whole, then what its row has no room for."""
    told = line(
        *outside(record.summary),
        *_part("no.", str(record.seq)),
        *_part("agent", record.agent),
        *_part("action", record.action or ""),
    )
    rows = [each.pieces for each in wrap(told, width - 4)]
    if len(rows) > DETAIL_ROWS:
        # The last row goes on with all the rest, so that the cut is marked.
        rest = tuple(piece for row in rows[DETAIL_ROWS - 1 :] for piece in (*row, Piece(" ")))
        rows = [*rows[: DETAIL_ROWS - 1], cut(rest, width - 4)]
    return tuple(line("  ", *row) for row in rows)


def _part(name: str, text: str) -> Line:
    if not text:
        return ()
    return (Piece(f"  · {name} ", "muted"), *outside(text, "muted"))


def activity_voice(records: Sequence[RecordView], words: tuple[str, str] | None) -> Line:
    """Return the voice of the view: the order, and the head of the chain in two words."""
    if not records:
        return (Piece(wording.NO_RECORDS, "muted"),)
    head = f" {wording.audit_head(words)}" if words else ""
    return (Piece(f"{wording.ACTIVITY_REMARK}{head}", "muted"),)


def _columns(width: int) -> list[tuple[str, int]]:
    narrow = width < NARROW
    return [(n, s) for n, s in _COLUMNS if not (narrow and n in _DROPPED_WHEN_NARROW)]
