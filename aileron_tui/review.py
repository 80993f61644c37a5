"""Draws calls for the review page, and says what it may answer: by the console's own functions."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.console_port.events import Snapshot, StorageHealth, VaultStatus
from aileron_core.console_port.view_models import ApprovalView, NotAcceptedView
from aileron_core.devices import CONSOLE
from aileron_core.devices.signed import Verdict
from aileron_core.server.review_items import DrawnPart, Offer
from aileron_core.tasks import type_and_places
from aileron_tui import words
from aileron_tui.draw.blocks import Block
from aileron_tui.draw.context import requester_section
from aileron_tui.draw.document import context_blocks, undrawable_blocks
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import hidden_characters_of
from aileron_tui.draw.header import approval_head, warnings
from aileron_tui.draw.hidden_characters import findings_of
from aileron_tui.draw.rows import call_summary, effect_word, requester, row_tag
from aileron_tui.draw.text import Line, plain_text, wrap
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.items import Item
from aileron_tui.pages.command import availability, refusal, whose_answer
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.pages.status_line import status_line
from aileron_tui.state.document_cache import DocumentCache, call_blocks, is_large
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation

PART_LINES = 200
"""Lines of a part, and about as many as a page shows before one has to scroll far."""
PART_CHARACTERS = 40_000
"""Of a part, where its lines are long."""
LINE_CHARACTERS = 400
"""Of one line: a longer one goes on in the next, so that a line fits on a small screen."""


def line_json(pieces: Line) -> list[Json]:
    """Return each piece as its text, or with its role where that is not `text`; no blank at the start."""
    whole = [[p.text, p.role] if p.role != "text" else p.text for p in pieces if p.text]
    if whole and not plain_text(pieces[:1]).strip():
        return [*whole[1:]]
    return [*whole]


def parts_of(blocks: Sequence[Block]) -> tuple[DrawnPart, ...]:
    """Return *blocks* divided into parts, at least one."""
    parts: list[DrawnPart] = []
    lines: list[Json] = []
    to_see = size = 0
    for block in _in_lines(blocks):
        if len(lines) >= PART_LINES or size >= PART_CHARACTERS:
            parts.append(DrawnPart(blocks=lines, lines=to_see))
            lines, to_see, size = [], 0, 0
        lines.append(_block_json(block))
        to_see += block.must_be_seen
        size += sum(len(piece.text) for piece in block.pieces)
    return (*parts, DrawnPart(blocks=lines, lines=to_see))


def _in_lines(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield *blocks*, a long one as several: the further ones have no label."""
    for block in blocks:
        if sum(len(piece.text) for piece in block.pieces) <= LINE_CHARACTERS:
            yield block
            continue
        for row, each in enumerate(wrap(block.pieces, LINE_CHARACTERS)):
            label = block.label if row == 0 else ()
            yield replace(block, label=label, pieces=each.pieces)


def _block_json(block: Block) -> dict[str, Json]:
    drawn: dict[str, Json] = {"kind": block.kind}
    if block.kind == "value":
        drawn["bar"] = block.gutter
    if block.label:
        drawn["label"] = line_json(block.label)
    if block.label and block.label_from == "outside":
        drawn["outside"] = True
    if block.pieces:
        # Blanks at the start of a value are its own.
        drawn["text"] = [[p.text, p.role] if p.role != "text" else p.text for p in block.pieces]
    if block.background:
        drawn["ground"] = block.background
    if block.must_be_seen:
        drawn["see"] = True
    return drawn


_WIDE: Final = 4_000
"""Cells of a line that the page itself breaks."""
_BUTTONS: Final = {"approve": "Approve", "deny": "Deny"}
_log = logging.getLogger(__name__)


class Around(Protocol):
    """What else of the console a page says of a call, as it is now."""

    @property
    def not_accepted(self) -> tuple[NotAcceptedView, ...]: ...

    @property
    def vault(self) -> VaultStatus: ...


class PageDrawing:
    """A `ReviewDrawing`. Its sentences name the page's two buttons, and every other key as the console's."""

    def __init__(
        self, clock: Clock, around: Around, registry: CommandRegistry = DEFAULT_REGISTRY
    ) -> None:
        named = ((each, _BUTTONS.get(each.id)) for each in registry.commands)
        self.registry = CommandRegistry(
            tuple(
                replace(each, keys=(button or f"{registry.key_label(each.id)} in the console",))
                for each, button in named
            )
        )
        self.clock = clock
        self._around = around
        self._findings = DocumentCache(self.registry)
        self._lock = threading.Lock()

    def rows(self, views: Sequence[ApprovalView]) -> Sequence[JsonObject]:
        with self._lock:
            return [self._guarded_row(view, self.clock.now()) for view in views]

    def _guarded_row(self, view: ApprovalView, now: float) -> JsonObject:
        row: JsonObject = {"effect": effect_word(view.effect), **_times(view)}
        try:
            return {**row, **self._row(view, now)}
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may hide the other rows
            _log.error("a row could not be drawn: %s", type_and_places(error))
            about: Json = [[words.status.UNDRAWABLE, "danger"]]
            return {**row, "about": about, "who": [], "tag": []}

    def _row(self, view: ApprovalView, now: float) -> JsonObject:
        item = Item(key=view.call_id, approval=view)
        hidden = not is_large(view) and bool(self._findings.findings(item))
        return {
            "about": line_json(call_summary(view)),
            "who": line_json(requester(view)),
            "tag": line_json(row_tag(item, now, hidden=hidden)),
        }

    def item(self, view: ApprovalView) -> "PageItem":
        return PageItem(self, view)

    def situation(
        self, view: ApprovalView, *, paused: bool = False, writable: bool = True
    ) -> Situation:
        """Return the situation of a console that shows *view* alone, and has seen all of it."""
        now = self.clock.now()
        alone = Snapshot(
            version="",
            home="",
            url="",
            routes=(),
            accepted_installed=False,
            approvals=(
                replace(view, state="pending"),
            ),  # what ended has a row where it waited before
            sessions=(),
            not_accepted=self._around.not_accepted,
            problems=(),
            actions_ready=0,
            records=(),
            head_words=None,
            health=StorageHealth(writable=writable),
            paused_at=now if paused else None,
            vault=self._around.vault,
        )
        model = Model(alone, arm_seconds=0.0, registry=self.registry, now=now)
        model.queue.selected = view.call_id
        model.queue.update(view, now)
        if (item := model.queue.current) is not None:
            model.laid_out_version = item.version
        return Situation(model, now, 0.0)


class PageItem:
    """A `DrawnItem`: one call as it was drawn, by the state that the console was in."""

    def __init__(self, drawing: PageDrawing, view: ApprovalView) -> None:
        if view.hand == CONSOLE.name:  # on a page it is another's
            view = replace(view, hand=words.views.THE_CONSOLE)
        self._drawing, self._view = drawing, view
        self._findings: tuple[str, ...] = ()
        self._drawable = True
        try:
            blocks = self._draw()
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            _log.error("an item could not be drawn: %s", type_and_places(error))
            self._drawable, self._findings = False, ()
            self._shown: JsonObject = {"title": [], "who": [], "warnings": []}
            blocks = undrawable_blocks()
        self.parts = parts_of(blocks)

    def _draw(self) -> tuple[Block, ...]:
        drawing, view, now = self._drawing, self._view, self._drawing.clock.now()
        found = hidden_characters_of(view)
        queue = drawing.situation(view).model.queue
        warned = warnings(view, found, file_changed=queue.file_changed(queue.current))
        _, *who = approval_head(view, (), now, _WIDE, compact=False)
        self._findings = findings_of(view, found)
        self._shown = {
            "title": line_json(foreign_text(view.title, "strong")),
            "who": [line_json(each) for each in who],
            "warnings": [line_json(each) for each in warned],
        }
        context = context_blocks((requester_section(view),))
        return (*call_blocks(drawing.registry, view, now), *context)

    @property
    def shown(self) -> JsonObject:
        """What the page shows besides the lines; times in epoch milliseconds."""
        status = status_line(self._situation(0), None, width=_WIDE)
        return {
            "effect": effect_word(self._view.effect),
            **self._shown,
            **_times(self._view),
            "answered": whose_answer(self._view),
            "now": round(self._drawing.clock.now() * 1000),
            "status": line_json(status),  # what a press does once all of it was seen
        }

    def offer(self, verdict: Verdict, unseen: int, *, paused: bool, writable: bool) -> Offer:
        now = self._situation(unseen, paused=paused, writable=writable)
        command = now.registry.command(verdict)
        state = availability(command, now)
        if not state.shown:
            return Offer(why_not=refusal((command,), _BUTTONS[verdict], now))
        if not (command.decides and state.asks):
            return Offer()
        now.model.note_first_press(verdict)
        now.pressed_once = verdict
        return Offer(ask=plain_text(status_line(now, None, width=_WIDE)))

    def _situation(self, unseen: int, *, paused: bool = False, writable: bool = True) -> Situation:
        now = self._drawing.situation(self._view, paused=paused, writable=writable)
        now.unseen, now.total = unseen, sum(part.lines for part in self.parts)
        now.findings = self._findings
        if not self._drawable and now.blocked_by == "none":
            now.blocked_by = "undrawable"
        if not self._drawable and now.deny_blocked_by == "none":
            now.deny_blocked_by = "undrawable"
        return now


def _times(view: ApprovalView) -> dict[str, Json]:
    """Return the times that the page counts from, in epoch milliseconds."""
    expires = view.expires_at
    return {
        "asked": round(view.requested_at * 1000),
        "expires": round(expires * 1000) if expires is not None else None,
    }
