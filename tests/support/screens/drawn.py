"""What a console draws of a state, without a screen: the same functions, in a millisecond."""

import re
from collections.abc import Iterable
from dataclasses import replace

from aileron_core.console_port.events import CoreEvent, Snapshot
from aileron_core.console_port.intents import Intent
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.blocks import COMPACT_GUTTER, GUTTER, Layout
from aileron_tui.draw.changes import full_preview_row
from aileron_tui.draw.context import equal_calls_section, recent_runs_section, requester_section
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.header import item_head
from aileron_tui.draw.rows import row_lines
from aileron_tui.draw.text import Line, plain_text
from aileron_tui.draw.times import clock_minutes
from aileron_tui.input.commands import View
from aileron_tui.items import Item
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.pages.status_line import footer_line, status_line
from aileron_tui.state.apply_event import apply_event
from aileron_tui.state.document_cache import DocumentCache, LayoutOptions
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from aileron_tui.state.tables.table import AnyTable
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.calls import NOW
from tests.support.screens.port import FixtureCore

_SIGNS = Glyphs()


class Drawn:
    """One state: its bars, its rows, and the selected item whole. All of that was read, and is at rest.

    Nothing here presses a key: that keys do what the footer says is for tests on a screen.
    """

    def __init__(
        self, state: Snapshot, *, compact: bool = False, seen: bool = True, glyphs: Glyphs = _SIGNS
    ) -> None:
        """*compact*: as in 80 columns. *seen*: every line was on screen for long enough."""
        self._glyphs = glyphs
        self.model = Model(state, arm_seconds=0.4, registry=DEFAULT_REGISTRY, now=NOW)
        self.now = NOW
        self._width, self._compact, self._seen = (80 if compact else 120), compact, seen
        self._cache = DocumentCache(DEFAULT_REGISTRY)
        self._core = FixtureCore(state, FrozenClock(NOW))

    def tell(self, *events: CoreEvent) -> "Drawn":
        """Let the core say *events*."""
        for event in events:
            self._core.learn(event)
            apply_event(self.model, event, self.now, 0.0)
        return self

    def read(self, wanted: Intent | None) -> None:
        """Let the core answer what is *wanted* of it, if anything is."""
        if wanted is not None:
            self.tell(*self._core.answer(wanted))

    def go(self, view: View, name: str = "", *, opened: bool = False) -> "Drawn":
        """Go to *view*, there to the first row that has *name*, and into it where it is to be *opened*."""
        self.model.switch_to(view)
        table = self.model.tables[view]
        if view == "activity":
            while (wanted := table.next_read(self.now)) is not None:
                self.read(wanted)
        table.select(next(n for n, row in enumerate(self.rows) if name in row))
        table.opened = opened
        return self

    # What stands where

    @property
    def top_bar(self) -> str:
        model, queue = self.model, self.model.queue
        return self._plain(
            bars.top_bar(view=model.view, waiting=queue.waiting, unknown=queue.unacknowledged,
                         not_accepted=queue.not_accepted, problems=queue.problems,
                         sessions=model.sessions, now=self.now, width=self._width,
                         vault_locked=model.vault.state == "locked", registry=model.registry)
        )  # fmt: skip

    @property
    def banner(self) -> str:
        model = self.model
        standing = bars.startup_warnings(model.snapshot, vault=model.vault)
        storage = None if model.health.writable else model.health.message
        since = model.paused_at
        paused = "" if since is None else words.bars.paused("P", clock_minutes(since))
        return self._text(
            bars.banner_lines(
                lost=model.core_lost, storage=storage, warnings=standing, width=self._width, help_key="?",
                paused=paused,
            )
        )  # fmt: skip

    @property
    def rows(self) -> list[str]:
        """The rows of the list that has the cursor; in the waiting list one or two lines each."""
        table = self.model.table
        if table is not None:
            return [self._table_row(table, number) for number in range(len(table))]
        return [self._plain(each) for item in self.model.queue.items for each in self._row(item)]

    @property
    def list_texts(self) -> str:
        """What stands above and below the rows of a table, and the rows."""
        table = self.model.table
        assert table is not None
        above, below = table.header(self._width, self.now), table.detail(self._width, self.now)
        return "\n".join([self._text(above), *self.rows, self._text(below), self.status])

    @property
    def head(self) -> str:
        return self._text(self._page()[0])

    @property
    def document(self) -> list[str]:
        return [self._plain(each) for each in self._page()[1].lines]

    @property
    def item(self) -> str:
        """Head and document of what is selected, and what the keys would do about it."""
        return "\n".join([self.head, *self.document, self.status, self.keys])

    @property
    def words(self) -> str:
        """The same with a blank wherever a line was broken."""
        return " ".join(re.sub("[┃┊│↳]", " ", self.item).split())

    @property
    def situation(self) -> Situation:
        """What each key would do, after a rest."""
        self._page()
        self.model.arming.on_drawn(self.model.screen_version, 0.0)
        return Situation(self.model, self.now, 10.0)

    @property
    def status(self) -> str:
        now, table, message = self.situation, self.model.table, self.model.status_message
        of_list: Line = ()
        if table is not None and not table.opened:
            of_list = table.filter_status() or table.status(self.model.registry)
        return self._plain(status_line(now, message, of_list, width=self._width))

    @property
    def keys(self) -> str:
        now = self.situation
        return self._plain(footer_line(now.context, now, 200))

    @property
    def calm(self) -> str:
        """What stands there where nothing waits."""
        model = self.model
        return self._text(
            bars.empty_lines(last=model.queue.decided[0] if model.queue.decided else None,
                             connected=sum(session.connected for session in model.sessions),
                             actions_ready=model.actions_ready, now=self.now, width=self._width,
                             height=32)
        )  # fmt: skip

    # How it is drawn

    def _plain(self, line: Line) -> str:
        return plain_text(self._glyphs.draw(line, 500))

    def _text(self, lines: Iterable[Line]) -> str:
        return "\n".join(self._plain(each) for each in lines)

    def _table_row(self, table: AnyTable, number: int) -> str:
        selected = number == table.index
        return self._plain(table.row(number, self._width, self.now, selected=selected))

    def _row(self, item: Item) -> tuple[Line, ...]:
        return row_lines(
            item, self._width if self._compact else 45, self.now,
            hidden=bool(self._cache.findings(item)), selected=item.key == self.model.queue.selected,
            compact=self._compact,
        )  # fmt: skip

    def _page(self) -> tuple[tuple[Line, ...], Layout]:
        model = self.model
        model.turn_to_call()
        self.read(model.opened_call.next_read())
        head, layout = self._drawn_page()
        model.has_marks, model.is_converted = self._cache.has_marks, self._cache.is_converted
        model.scrollable, model.has_wraps = len(layout.lines) > 20, bool(layout.wraps)
        model.links = sum(bool(piece.href) for each in layout.lines for piece in each)
        model.laid_out_version = model.subject.version if model.subject is not None else None
        model.reading.set_lines(layout.ranges)
        if self._seen:
            model.reading.mark_seen(range(len(layout.lines)))
        return head, layout

    def _drawn_page(self) -> tuple[tuple[Line, ...], Layout]:
        model, table, cache = self.model, self.model.table, self._cache
        gutter = COMPACT_GUTTER if self._compact else GUTTER
        beside_list = table in (None, model.decided) and not self._compact
        width = self._width - (46 if beside_list else 2)
        options = LayoutOptions(width=width, gutter=gutter, unfold=model.unfolded)
        page = model.opened_call.page(cache, options, self.now, as_decided=table is not None)
        if page is not None:
            return page
        if table is not None and table is not model.decided:
            layout = cache.page(
                table.blocks(self.now, unfold=model.unfolded), options, table.content
            )
            model.findings = cache.page_findings
            return table.head(width, self.now), layout
        item = model.current_item if table is None else model.decided.current_item
        changed = model.queue.file_changed(item)
        warnings = cache.warnings(item, file_changed=changed) if item is not None else []
        head = item_head(item, warnings, self.now, width, compact=self._compact)
        view = item.approval if item is not None else None
        if view is not None:
            context = (
                requester_section(view),
                recent_runs_section(model.records, view),
                equal_calls_section(model.queue.decided, view),
            )
            options = replace(options, context=context)
        layout = cache.layout(item, replace(options, file_changed=changed), self.now)
        model.findings = cache.findings_in(item)
        drifted = view is not None and view.drift is not None
        model.preview_row = full_preview_row(cache.blocks, layout) if drifted else None
        return head, layout


def situation(state: Snapshot, view: View = "waiting", **given: object) -> Situation:
    """Return what each key would do in *state*, after a rest, with these of its attributes as *given*."""
    drawn = Drawn(state)
    drawn.model.view = view
    now = drawn.situation
    for name, value in given.items():
        assert hasattr(now, name)
        setattr(now, name, value)
    return now
