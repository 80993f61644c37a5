"""What every view of the console is made of: bars, a document, a question; which layout a terminal's size gets."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, TypeAlias

from aileron_core.clock import Clock
from aileron_core.console_port.intents import Intent, MarkReadBackSeen
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.guide import guide_rows
from aileron_tui.draw.text import Line, Piece, plain_text, wrap
from aileron_tui.draw.times import clock_minutes, clock_seconds
from aileron_tui.input.arming import AFTER_SECONDS
from aileron_tui.input.commands import AnyCommand, View, key_label
from aileron_tui.pages.asking import Asking
from aileron_tui.pages.command import availability, no_move, refusal
from aileron_tui.pages.deciding import Decisions
from aileron_tui.pages.questions import QUESTIONS, ask_links
from aileron_tui.pages.reading import DocumentReader, TextHandoff
from aileron_tui.pages.status_line import footer_line, status_line
from aileron_tui.pages.surface import Surface
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from aileron_tui.state.tables.table import filter_problem

Submit: TypeAlias = Callable[[Intent], None]
LayoutName = Literal["small", "compact", "normal", "wide"]

SMALL = (60, 16)
NORMAL_FROM = 110
WIDE_FROM = 182
"""The list of 52 and the rail of 50 leave the document 80 columns."""


def layout_of(width: int, height: int) -> LayoutName:
    """Return the layout's name for a terminal of *width* by *height* cells."""
    if width < SMALL[0] or height < SMALL[1]:
        return "small"
    if width < NORMAL_FROM:
        return "compact"
    return "normal" if width < WIDE_FROM else "wide"


class Page(ABC):
    """One view. `redraw` draws everything from the model; nothing else changes what is shown.

    What a key does says its command (`keymap`). None draws: whoever does one redraws afterwards, once.
    """

    def __init__(
        self, view: View, model: Model, clock: Clock, submit: Submit, surface: Surface
    ) -> None:
        self.view: View = view
        self.model = model
        self.clock = clock
        self.submit = submit
        self.surface = surface
        self.rows_around = 0
        """Rows of the banner and of what a demo says."""
        self._key_situation: Situation | None = None
        self.panel = Asking(
            QUESTIONS, model, clock, submit, surface, on_filter=self._filter, on_search=self._search
        )
        self.reader = DocumentReader(surface, model, clock, on_rest=self._on_rest)
        self.handoff = TextHandoff(model, self.reader, surface, say=self._say)
        self._decisions = Decisions(self, model, clock)

    # Commands

    @property
    def situation(self) -> Situation:
        """What each key would do now."""
        return self._situation_at(self.clock.monotonic())

    def _situation_at(self, at: float) -> Situation:
        return Situation(self.model, self.clock.now(), at, self.panel.text)

    @property
    def key_situation(self) -> Situation:
        """What each key does in the situation in which the present one was pressed."""
        return self._key_situation if self._key_situation is not None else self.situation

    def begin_key(self, key: str, at: float, *, late: bool) -> bool:
        """*key* was pressed at *at*, monotonic seconds: judge it by the situation of now; return whether it is dropped.

        *late*: it was read long after it was typed.
        """
        model = self.model
        model.key_name = key
        second, moves = model.is_second_press(key), key in model.registry.moving_keys()
        dropped = model.begin_key(at, decides=second, moves=moves)
        if dropped and (key in model.registry.deciding_keys() or not late):
            model.end_key()
            model.arming.on_key_dropped()
            self.surface.settle_in(AFTER_SECONDS)
            return True
        self._key_situation = self._situation_at(at)
        return False

    def end_key(self) -> None:
        """The key was handled."""
        self._key_situation = None
        self.model.end_key()
        self.model.sweep(self.clock.now())

    def take_key(self, key: str, *, printable: bool) -> bool:
        """Do what *key* asks for, or say why it does nothing; return False where it is for the field.

        *printable*: it types a character.
        """
        now = self.key_situation
        commands = tuple(e for e in now.registry.in_context(now.context) if key in e.keys)
        if (
            possible := next((e for e in commands if availability(e, now).shown), None)
        ) is not None:
            self._do_key(possible)
            return True
        if not commands and self.panel.edits_by(key, printable=printable):
            return False
        label = key_label(key)
        if now.panel != "none" or now.moves_document or not self.leave_row(label):
            self._refuse(refusal(commands, label, now))
        return True

    def leave_row(self, key: str) -> bool:
        """Leave the selected row, if nothing is left to do about it; return whether it was left.

        *key*: the label of the key that was pressed, for the sentence on it.
        """
        return False

    def _refuse(self, sentence: str) -> None:
        self.model.refuse(sentence, self.clock.monotonic())

    def _do_key(self, command: AnyCommand) -> None:
        """Do what the key of *command* asks for."""
        before, in_document = self._place, self.key_situation.moves_document
        self._carry_out(command, self.key_situation)
        if command.moves and self._place == before:
            key = key_label(command.keys[0])
            if in_document or not self.leave_row(key):
                self._refuse(no_move(command, key, in_document=in_document))

    def _carry_out(self, command: AnyCommand, now: Situation) -> None:
        if command.decides:
            self._decisions.press(command)
        elif command.do is not None:
            command.do(self.panel if self.panel.is_open else self)
        else:
            for intent in command.intents(now):
                self.model.mark_sent(intent)
                self.submit(intent)
            if command.said:
                self._say(command.said)

    @property
    def _place(self) -> tuple[object, ...]:
        """What moving and reading change: cursor, opened row, first line in view, what stands in a field or a panel."""
        subject = self.model.subject
        cursor = subject.key if subject is not None else None
        reader, asked = self.reader, self.model.grant_panel.version
        batch = self.model.queue.batch
        of_table = batch.cursor if batch is not None else ""
        shown = (reader.document.top, reader.match_counts, self.panel.text)
        return (cursor, of_table, *shown, asked)

    def do(self, command_id: str) -> None:
        """Do the command *command_id*, which no key of this screen asked for, if it can be done now, and draw."""
        command, now = self.model.registry.command(command_id), self.situation
        if availability(command, now).has_effect:
            self._carry_out(command, now)
        else:
            self._refuse(refusal((command,), key_label(command.keys[0]), now))
        self.redraw()

    def click_piece(self, command: str) -> None:
        """Do what the clicked key of *command* does, unless that decides: the mouse decides nothing."""
        clicked = self.model.registry.command(command)
        self.model.forget_first_press()
        if clicked.mouse and not clicked.decides:
            self.do(clicked.id)
            return
        keys = self.model.registry.key_labels(clicked)
        self._say(f"Press {keys} to {clicked.label}. The mouse decides nothing.")
        self.redraw()

    # What commands do

    def move(self, rows: int) -> None:
        """Move by so many rows of the list, or of the document where that has the keys."""
        if self.key_situation.moves_document:
            self.reader.document.scroll_rows(rows)
        else:
            self.move_cursor(rows)

    def move_pages(self, pages: int) -> None:
        """Move by what is in view at once."""
        if self.key_situation.moves_document:
            self.reader.document.scroll_panes(pages)
        else:
            self.move_cursor(pages * self.page_rows)

    def move_to_end(self, *, last: bool) -> None:
        """Go to the first row, or to the last one."""
        if self.key_situation.moves_document:
            self.reader.scroll_to_end(last=last)
        else:
            self.select_row(-1 if last else 0)

    @abstractmethod
    def move_cursor(self, rows: int) -> None:
        """Move the cursor by so many rows."""

    @abstractmethod
    def select_row(self, row: int) -> None:
        """Put the cursor on *row* of its list, counted from the end where it is negative."""

    @property
    @abstractmethod
    def page_rows(self) -> int:
        """How many rows of the list are in view at once."""

    @abstractmethod
    def go_back(self) -> None:
        """Leave what is open, or else the filter."""

    def switch_pane(self) -> None:
        """Give the keys that move to the document, or back to the list."""
        focused = self.model.document_focused = not self.model.document_focused
        back = "The keys move in the list again."
        there = "The keys now move in the document; / searches it. tab: back to the list."
        self._say(there if focused else back)

    def ask_links(self) -> None:
        """Ask whether to open the first link in view."""
        ask_links(self.panel, self.reader.links)

    # The mouse

    def click_document(self, href: str) -> None:
        """Ask about the link that was clicked; a click anywhere else gives the document the keys."""
        self.model.forget_first_press()
        if self.model.panel == "none" and href:
            links = self.reader.links
            at = links.index(href) if href in links else 0
            ask_links(self.panel, (*links[at:], *links[:at]))
        elif self.model.panel == "none":
            self.model.document_focused = True
        self.redraw()

    @abstractmethod
    def click_row(self, row: int, pane: str | None) -> None:
        """Select the clicked row of the list *pane*; the mouse decides nothing."""

    def _filter(self, text: str) -> None:
        """Show the rows that match the filter as typed so far."""
        self.model.set_filter(text, self.clock.now())
        self.redraw()

    def _search(self, text: str) -> None:
        """Go to the first match of the text as typed so far."""
        self.reader.search(text)
        self.panel.match_counts = self.reader.match_counts
        self.redraw()

    def _say(self, message: str) -> None:
        self.model.say(message, self.clock.monotonic())

    # Deciding

    def require_second_press(self, command: str) -> None:
        """Say what was not seen; the next press of the same key decides."""
        self.model.note_first_press(command)

    def save_screen(self) -> None:  # noqa: B027 - a list keeps none
        """Keep the screen in which a call is decided, to show it again."""

    def settle(self, at: float) -> None:
        """Let a press that had its silence until *at*, monotonic seconds, decide."""
        self._decisions.settle(at)

    def after_decision(self) -> None:
        """The intent was submitted: close the panel, and draw."""
        self.panel.close()
        self.redraw()

    # Drawing

    @property
    def layout(self) -> LayoutName:
        return layout_of(*self.model.size)

    def resize(self, width: int, height: int) -> None:
        """Choose the layout; after a new size the rest before a key decides starts over."""
        self.model.size = (width, height)
        self.model.too_small = self.layout == "small"
        self.redraw()

    def leave(self) -> None:
        """Forget a passphrase that was half typed, as when nobody was here for long."""
        if self.panel.field == "secret":
            self.panel.close()

    def redraw(self) -> None:
        """Draw everything from the model, then wait until the terminal has drawn it."""
        if not self.surface.is_ready:
            return
        self._read_call()
        self._draw_top()
        if self.panel.is_open:
            self.panel.close_if_over(self.situation)
        self.surface.arrange_as(**self.arrangement())
        if self.model.too_small:
            self._draw_too_small()
        else:
            self.draw_view()
        self.draw_foot()
        self.reader.wait_for_paint()
        if self._is_before_a_person:
            self._report_seen()

    def arrangement(self) -> dict[str, bool]:
        """Return which of the stylesheet's arrangements hold."""
        layout, panel = self.layout, self.panel
        return {
            "small": layout == "small",
            "compact": layout == "compact",
            "normal": layout in ("normal", "wide"),
            "wide": layout == "wide",
            "lost": self.model.core_lost is not None,
            "panel": panel.is_open,
            "reader": self.model.reader,
            "field": panel.field == "field",
            "area": panel.field == "area",
            "passphrase": panel.field == "secret",
            "empty": self.is_empty,
        }

    @property
    def _is_before_a_person(self) -> bool:
        """Whether a person may be reading what is drawn: it is not locked, covered or too small."""
        model = self.model
        return self.surface.is_uncovered and not model.too_small and model.arming.focused

    def _report_seen(self) -> None:
        """Tell the core, once, that the person opened a call of which the service holds something else."""
        model = self.model
        opened = model.table is not None and model.table.opened
        call = model.opened_call.call if opened else None
        view = call.approval if call is not None else None
        read = view.read_back if view is not None else None
        if view is None or read is None or not read.waits_to_be_seen:
            model.marked_seen = ""
        elif model.core_lost is None and model.marked_seen != view.run_id:
            model.marked_seen = view.run_id
            self.submit(MarkReadBackSeen(run_id=view.run_id))

    def _read_call(self) -> None:
        """Ask for the call that is shown whole, where that was not read yet or differs by now."""
        if not self.surface.is_current:
            return
        model, table = self.model, self.model.table
        model.turn_to_call()
        if model.core_lost is not None:
            return
        beside = self.view != "waiting" and table is not None and not table.opened
        if wanted := model.opened_call.next_read(self.clock.monotonic(), beside=beside):
            self.submit(wanted)
        if model.panel == "grant" and (tries := model.grant_panel.next_try()):
            self.submit(tries)

    def _on_rest(self) -> None:
        """What is drawn was in view for some time."""
        if self.surface.is_ready:
            self._read_call()
        self.draw_foot()

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """There is no row at all, filter or not."""

    @abstractmethod
    def draw_view(self) -> None:
        """Draw the part between the bars."""

    def draw_foot(self) -> None:
        """Draw the status line and the keys, or the panel and its keys."""
        if not self.surface.is_ready:
            return  # called by a timer while the application ends
        width, now, model = self.model.size[0], self.situation, self.model
        if (question := self.panel.question) is not None:
            self.panel.draw(question, now, width)
            return
        view = now.approval
        status = status_line(now, model.status_message, self.rows_status(), width=width)
        if view is not None and (
            self.reader.shows_words or " · ".join(view.words or ()) in plain_text(status)
        ):
            view = None  # the record, or the report of what was approved, has them
        self.surface.show("status", bars.status_row(status, view, width))
        self.surface.show("keys", footer_line(now.context, now, width))

    def rows_status(self) -> Line:
        """Return the status line's sentence about the rows."""
        return filter_problem(self.model.parsed_filter, *self.model.row_counts)

    def _draw_top(self) -> None:
        model, width = self.model, self.model.size[0]
        self.surface.show(
            "topbar",
            bars.top_bar(
                view=model.view,
                waiting=model.queue.waiting,
                unknown=model.queue.unacknowledged,
                not_accepted=model.queue.not_accepted,
                problems=model.queue.problems,
                sessions=model.sessions,
                now=self.clock.now(),
                width=width,
                vault_locked=model.vault.state == "locked",
                vault_waited_for=model.account_waits.locked > 0
                or any(each.waits_for_vault for each in model.sessions),
                registry=model.registry,
            ),
        )
        rows = bars.banner_lines(
            lost=model.core_lost,
            storage=None if model.health.writable else model.health.message,
            warnings=self.startup_warnings,
            width=width,
            help_key=model.registry.key_label("help"),
            paused=self._paused(),
            replayed=self._replayed(),
            attached=bool(model.snapshot.attached),
        )
        self.surface.show("banner", *rows)
        guide = guide_rows(model.guide, width) if model.guide is not None else ()
        self.surface.show("guide", *guide)
        self.rows_around = self.panel.rows_around = len(rows) + len(guide)

    @property
    def startup_warnings(self) -> tuple[Line, ...]:
        """The warnings above every view, for as long as this console runs."""
        return bars.startup_warnings(
            self.model.snapshot,
            vault=self.model.vault,
            withheld=self.model.settings_withheld,
            lacks_letters=self.surface.lacks_letters,
        )

    def _paused(self) -> str:
        since = self.model.paused_at
        if since is None:
            return ""
        return words.bars.paused(self.model.registry.key_label("go_on"), clock_minutes(since))

    def _replayed(self) -> str:
        screen = self.model.replayed
        if screen is None:
            return ""
        return words.views.as_shown(clock_seconds(screen.at), screen.unseen, screen.total)

    def _draw_too_small(self) -> None:
        """Draw the one sentence of a pane that is too small to decide in."""
        width, height = self.model.size
        sentence = words.bars.too_small(self.model.queue.waiting)
        wrapped = wrap((Piece(sentence, "strong"),), width - 2)
        message = self.model.status_message
        if message is not None and message.refusal:
            wrapped = [*wrapped, *wrap(message.pieces, width - 2)]
        rows = bars.centred([each.pieces for each in wrapped], width, height)
        self.surface.show("sentence", *rows)
