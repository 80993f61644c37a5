"""The footer: the keys that do something now, filled where the next press decides."""

from dataclasses import replace

from aileron_tui import words
from aileron_tui.draw.text import Line, Piece, Role, cell_width, justify, line
from aileron_tui.input.commands import VIEWS, AnyCommand, KeyContext
from aileron_tui.pages.command import Availability, availability
from aileron_tui.state.situation import Situation

GAP = 3
"""Blank cells between two keys."""


def footer_line(context: KeyContext, now: Situation, width: int) -> Line:
    """Return the keys that do something now, the recommended one first; `? help` never drops."""
    tail: Line = ()
    if context in VIEWS:
        help_key = Piece(now.registry.key_label("help"), "strong", action="help")
        tail = line(help_key, Piece(" help", "muted", action="help"), " ")
    room = width - cell_width(tail) - (2 if tail else 1)
    parts: Line = (Piece(" "),)
    keys = [
        (each.id, tuple(replace(piece, action=each.id) for piece in _key(each, state, now)))
        for each, state in _ordered(context, now)
    ]
    deny = sum(GAP + cell_width(drawn) for id_, drawn in keys if id_ == "deny")
    for number, (id_, drawn) in enumerate(keys):
        shown = line(" " * GAP if number else "", *drawn)
        deny = 0 if id_ == "deny" else deny
        if cell_width(parts) + cell_width(shown) + (deny if number else 0) > room:
            if deny:  # it never makes room for another key
                continue
            break
        parts = (*parts, *shown)
    return justify(parts, tail, width)


def _ordered(context: KeyContext, now: Situation) -> list[tuple[AnyCommand, Availability]]:
    entries = [(each, availability(each, now)) for each in now.registry.footer_order(context)]
    shown = [(each, state) for each, state in entries if state.shown and each.id != "help"]
    return sorted(shown, key=lambda entry: _rank(entry[0], now))


def _rank(each: AnyCommand, now: Situation) -> int:
    return each.rank_now(now) if each.rank_now is not None else each.footer_rank or 0


def _key(each: AnyCommand, state: Availability, now: Situation) -> Line:
    label, key_text = each.label_now(now) or each.label, now.registry.key_labels(each)
    if each.id == now.pressed_once and now.unseen:
        label = f"{label}, {words.status.unread(now.unseen)}"
    if state.decides_now:
        role: Role = "key-danger" if each.ends else "key"
        return (Piece(f" {key_text} ", role), Piece(f" {label}", "strong"))
    if each.decides and not state.asks:
        return (Piece(f" {key_text}  {label}", "muted"),)
    dots = "…" if each.asks or each.decides else ""
    return (Piece(key_text, "strong"), Piece(f" {label}{dots}", "muted"))
