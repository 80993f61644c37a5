"""View 4: every action and connector in the home: ready, not accepted, or invalid."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import LibraryItemView
from aileron_core.errors import Problem
from aileron_tui import words
from aileron_tui.draw.acceptance import content_warnings, publisher_warnings
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.columns import Column
from aileron_tui.draw.file_page import (
    consequence_line,
    publisher_blocks,
    run_time_line,
    server_blocks,
)
from aileron_tui.draw.foreign_text import foreign_text, host_names, render_foreign, rendered_lines
from aileron_tui.draw.header import draw_warnings
from aileron_tui.draw.rows import EFFECTS
from aileron_tui.draw.steps import op_blocks
from aileron_tui.draw.text import Line, Piece, Role, line, truncate
from aileron_tui.draw.times import clock_seconds, day
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.pending_intents import ACCEPTED_STATES
from aileron_tui.state.tables.table import KeyedTable

_ROLES: Mapping[str, Role] = {
    "ready": "ok",
    "cannot_run": "danger",
    "held_back": "attn",
    "error": "danger",
}


class LibraryTable(KeyedTable[LibraryItemView]):
    """The rows of view 4, in the core's order."""

    fields: ClassVar[tuple[str, ...]] = ("action", "state", "host", "kind", "effect")
    decides: ClassVar[bool] = True

    def __init__(
        self, items: Sequence[LibraryItemView], problems: Iterable[Problem], now: float
    ) -> None:
        super().__init__(
            Column("state", lambda e, _: _state(e), 16, 14),
            Column("kind", lambda e, _: line(Piece(e.kind, "muted")), 11),
            Column("name", lambda e, row: foreign_text(e.name, row.role), 32, 20),
            Column("effect", lambda e, _: line(_effect(e)), 9, min_width=100),
            Column("gated", lambda e, _: _gated(e), 7),
            Column("connector", lambda e, _: foreign_text(e.connector, "muted"), 22, 12),
            Column("host", lambda e, _: _hosts(e), 0, 20, 100),
        )
        self.update(items, problems, now)

    def update(
        self, items: Sequence[LibraryItemView], problems: Iterable[Problem], now: float
    ) -> None:
        """Replace the rows by the present state of the home."""
        self._problems = tuple(problems)
        self.set_items(items, now)

    def key_of(self, item: LibraryItemView) -> str:
        return f"{item.kind}:{item.name}" + (f":{item.digest}" if item.is_update else "")

    def fields_of(self, item: LibraryItemView) -> FilterFields:
        state = f"{item.state} {words.views.LIBRARY_STATES[item.state]}"
        hosts = " ".join(item.hosts)
        named = {
            "action": item.name,
            "state": state,
            "host": hosts,
            "kind": item.kind,
            "effect": item.effect,
        }
        text = f"{item.name} {item.file} {item.reason} {item.connector} {' '.join(item.steps)} {hosts} {state}"
        return FilterFields(text=text, fields=named, at=item.accepted_at)

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs: the file's digest and state."""
        item = self.current
        if item is None:
            return ()
        return (self.key, item.digest, item.state, item.reason, item.run_time, item.publisher)

    # Drawing

    def summary(self, now: float, width: int) -> Line:
        """Return how many are ready, not accepted and invalid."""
        parts: list[Piece] = []
        for state, role in _ROLES.items():
            count = sum(item.state == state for item in self._items)
            if count or state == "ready":
                parts.append(Piece(" · " if parts else " ", "muted"))
                text = f"{words.views.LIBRARY_GLYPHS[state]} {count} {words.views.LIBRARY_STATES[state]}"
                parts.append(Piece(text, role if count else "muted"))
        return tuple(parts)

    def detail_of(self, item: LibraryItemView, now: float) -> Line:
        """Return why it is not ready, or since when it counts."""
        text = line(Piece(words.views.ACCEPTED, "muted"), *_since(item))
        if item.reason or item.accepted_at is None:
            text = foreign_text(item.reason, _ROLES[item.state]) if item.reason else _since(item)
        return line(*text, Piece(" · ", "muted"), *foreign_text(item.file or item.digest, "muted"))

    def head_of(self, item: LibraryItemView, width: int, now: float) -> tuple[Line, ...]:
        """Return what it is, its file, what to beware of."""
        chip = Piece(f" {words.files.FILE_EFFECT} ", "chip")
        first = line(" ", chip, "  ", *foreign_text(item.name, "strong"), "  ", *_state(item))
        file = line(Piece(" · file ", "muted"), *foreign_text(item.file)) if item.file else ()
        second = line(" ", Piece(item.kind, "muted"), *file)
        rows = [truncate(first, width - 1), truncate(second, width - 1)]
        if item.reason:
            reason = foreign_text(item.reason, "attn")
            rows += draw_warnings((reason,), width, compact=False)
        counts = item.state in ACCEPTED_STATES
        warned = publisher_warnings(item.publisher, item.kind, counts=counts)
        if warned := [*warned, *content_warnings(item.content, gated=item.gated)]:
            rows += draw_warnings(warned, width, compact=False)
        return tuple(rows)

    def blocks_of(self, item: LibraryItemView, *, unfold: bool) -> Iterable[Block]:
        """Return the facts of its file, or of a publisher's key."""
        if item.kind == "publisher":
            return (
                heading(words.files.KEY_SECTION),
                value("Then", _then(item)),
                value("Publisher", foreign_text(item.name, "strong")),
                value("Key", foreign_text(item.digest, "strong")),
                value("Accepted", _since(item)),
            )
        made = [
            heading(
                words.files.FILE_SECTION,
                (
                    Piece(
                        words.files.WHOLE_KEPT if _is_kept(item) else words.views.FILE_REMARK,
                        "muted",
                    ),
                ),
            ),
            value("Then", _then(item)),
        ]
        if item.kind == "action":
            made += _action_blocks(item)
        made += _run_time(item)
        if item.content is not None and item.content.server is not None:
            made += server_blocks(item.content.server, item.hosts)
        made += _list("Hosts", item.hosts)
        if item.refused_hosts:
            made += _list(words.views.REFUSED_HOSTS, item.refused_hosts)
        made += [
            value("Name", foreign_text(item.name, "strong")),
            value("Version", foreign_text(item.version) if item.version else _none()),
            value("File", foreign_text(item.file)),
        ]
        made += [value("Digest", foreign_text(item.digest)), *publisher_blocks(item.publisher)]
        if item.reason:
            for number, pieces in enumerate(
                rendered_lines(render_foreign(item.reason, unfold=unfold), "attn")
            ):
                made.append(value("Why" if number == 0 else "", pieces))
        if item.accepted_at is not None:
            made.append(value("Accepted", _since(item)))
        return (*made, *self._problem_blocks(item, unfold=unfold))

    @property
    def content(self) -> FileContentView | None:
        return self.current.content if self.current is not None else None

    def _problem_blocks(self, item: LibraryItemView, *, unfold: bool) -> Iterable[Block]:
        here = () if _is_kept(item) else self._problems  # those are of its file's other bytes
        problems = [each for each in here if each.file == item.file]
        if problems:
            yield blank()
            yield heading(
                words.views.PROBLEMS, (Piece(words.views.problems(len(problems)), "muted"),), "attn"
            )
        for each in problems:
            line_label = f"line {each.line}" if each.line else ""
            for number, pieces in enumerate(
                rendered_lines(render_foreign(each.message, unfold=unfold), "attn")
            ):
                yield value(line_label if number == 0 else "", pieces)
            if each.key:
                yield value("", line(Piece("at ", "muted"), *foreign_text(each.key)))

    def status(self, registry: CommandRegistry) -> Line:
        return (
            Piece(words.views.LIBRARY_STATUS if self._items else words.views.NO_LIBRARY, "muted"),
        )


def _is_kept(item: LibraryItemView) -> bool:
    return item.content is not None and item.content.is_kept


def _state(item: LibraryItemView) -> Line:
    glyph, word = words.views.LIBRARY_GLYPHS[item.state], words.views.LIBRARY_STATES[item.state]
    return (Piece(f"{glyph} {word}", _ROLES[item.state]),)


def _effect(item: LibraryItemView) -> str:
    return item.effect if item.effect in EFFECTS else ""


def _gated(item: LibraryItemView) -> Line:
    if item.gated is None:
        return ()
    if item.gated:
        return (Piece(words.views.YES, "muted"),)
    return (Piece(words.views.NOT_GATED, "attn"),)


def _hosts(item: LibraryItemView) -> Line:
    if not item.hosts:
        return (Piece(words.views.NO_HOST, "muted"),)
    if len(item.hosts) > 1:
        return (Piece(words.item.one_of(len(item.hosts)), "muted"),)
    return host_names(item.hosts, "text")


def _since(item: LibraryItemView) -> Line:
    if item.accepted_at is None:
        return (Piece(words.views.NOT_ACCEPTED, "muted"),)
    at = f"{day(item.accepted_at)} {clock_seconds(item.accepted_at)}"
    by = words.views.ACTORS.get(item.accepted_by, item.accepted_by)
    return line(Piece(at), Piece(" by ", "muted"), *foreign_text(by))


def _then(item: LibraryItemView) -> Line:
    if item.kind == "action" and item.gated is None:
        return (Piece(words.views.NOT_KNOWN, "muted"),)
    if item.state == "cannot_run":
        return foreign_text(item.reason, "attn")
    return consequence_line(item.kind, item.name, item.gated)


def _none() -> Line:
    return (Piece(words.item.NONE, "muted"),)


def _action_blocks(item: LibraryItemView) -> list[Block]:
    gated = (
        words.views.NOT_KNOWN
        if item.gated is None
        else (words.views.YES if item.gated else words.views.NO)
    )
    return [
        value("Gated", (Piece(gated, "text" if item.gated is not False else "attn"),)),
        value("Effect", (Piece(_effect(item) or words.item.NONE, "strong"),)),
        *(op_blocks(item.steps, "strong") if item.steps else [value("Runs", _none())]),
        value("Preview", foreign_text(item.preview) if item.preview else _none()),
    ]


def _run_time(item: LibraryItemView) -> list[Block]:
    """Return how long an action may run, where that is not its file's own limit or the usual one."""
    named = item.run_time
    if named is None:
        return []
    if item.accepted_at is None or item.state == "held_back":
        return [value("Time", run_time_line(named))]
    if named.accepted:
        return [value("Time", (Piece(words.files.run_time_given(named.seconds)),))]
    argument = "" if named.named_by == "connector" else named.named_by
    missing = words.files.run_time_missing(named.seconds, named.usual, argument)
    return [value("Time", (Piece(missing, "attn"),))]


def _list(label: str, rows: Sequence[str]) -> list[Block]:
    if not rows:
        return [value(label, _none())]
    return [
        value(label if number == 0 else "", foreign_text(text, "strong"))
        for number, text in enumerate(rows)
    ]
