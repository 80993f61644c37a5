"""What every view of the console is made of: bars, a document, a panel; which layout a terminal's size gets."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen

from aileron_core.clock import Clock
from aileron_core.console_port.intents import Intent, LockVault, RefetchPreview, SetPause
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.guide import guide_rows
from aileron_tui.draw.status_line import status_line
from aileron_tui.draw.text import Line, Piece, plain_text, wrap
from aileron_tui.draw.times import clock_minutes, clock_seconds
from aileron_tui.input.commands import PANEL_CONTEXTS, CommandHandlers, key_label
from aileron_tui.input.refusals import is_refused, no_move, refusal
from aileron_tui.input.situation import Situation, View, availability
from aileron_tui.messages import (
    CommandRequested,
    DocumentClicked,
    DocumentScrolled,
    PieceClicked,
    SettleDue,
    SizeChanged,
)
from aileron_tui.screens.deciding import Decisions
from aileron_tui.screens.reading import DocumentReader, TextHandoff, has_widget
from aileron_tui.state.intents import seen_difference
from aileron_tui.state.model import Model
from aileron_tui.state.situation import situation_of
from aileron_tui.state.tables.table import filter_problem
from aileron_tui.widgets.ask_panel import AskPanel
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines, glyphs_of

Submit = Callable[[Intent], None]

SMALL = (60, 16)
NORMAL_FROM = 110
WIDE_FROM = 182
"""The list of 52 and the rail of 50 leave the document 80 columns."""
_APP_COMMANDS = ("palette", "help", "quit", "next_scene")
"""Commands that the application carries out, besides switching views."""


def width_class(width: int, height: int) -> str:
    """Return the layout's name for a terminal of *width* by *height* cells."""
    if width < SMALL[0] or height < SMALL[1]:
        return "small"
    if width < NORMAL_FROM:
        return "compact"
    return "normal" if width < WIDE_FROM else "wide"


def _layout_classes(name: str) -> dict[str, bool]:
    return {
        "-small": name == "small",
        "-compact": name == "compact",
        "-normal": name in ("normal", "wide"),
        "-wide": name == "wide",
    }


class ConsoleScreen(Screen[None]):
    """One view. `redraw` draws everything from the model; nothing else changes the screen.

    What a key does is looked up in one table of handlers, which its parts and the view fill. No
    handler draws: whoever calls one redraws afterwards, once.
    """

    AUTO_FOCUS = "#document"
    COMPONENT_CLASSES: ClassVar[set[str]] = ROLE_CLASSES

    def __init__(self, view: View, model: Model, clock: Clock, submit: Submit) -> None:
        super().__init__()
        self.model = model
        self.clock = clock
        self.submit = submit
        # Bindings of the instance, not of the class: the person chooses the keys.
        self._view: View = view
        self.bind_keys()
        self._key_situation: Situation | None = None
        self.panel = AskPanel(model, clock, submit)
        self.reader = DocumentReader(self, model, clock, on_rest=self.draw_foot)
        self._decisions = Decisions(self, model, clock)
        handoff = TextHandoff(model, self.reader, post=self.post_message, say=self._say)
        self.handlers: CommandHandlers = {
            **self._own_handlers(),
            **self.panel.commands,
            **self.reader.commands,
            **handoff.commands,
            **self._decisions.commands,
            **self.view_handlers(),
        }

    def bind_keys(self) -> None:
        """Take the keys of the registry, which may have changed."""
        registry = self.model.registry
        self._bindings = registry.bindings_for(self._view, "reader", *PANEL_CONTEXTS)

    def _own_handlers(self) -> CommandHandlers:
        """Return what is done for a command in every view."""
        asked = [each.id for each in self.model.registry.commands if each.id.startswith("view_")]
        return {
            **{
                command: lambda command=command: self.post_message(CommandRequested(command))
                for command in (*asked, *_APP_COMMANDS)
            },
            # At once, without rest: pausing changes no call, and going on has to rest.
            "pause": lambda: self.submit(SetPause(paused=True)),
            "lock_vault": lambda: self.submit(LockVault()),
            "look_again": self._look_again,
            "switch_pane": self._switch_pane,
            "links": lambda: self.panel.ask_links(self.reader.links),
        }

    def view_handlers(self) -> CommandHandlers:
        """Return what is done for a command in this view alone."""
        return {}

    def compose_foot(self) -> ComposeResult:
        """Compose what a demo says, the status line and the keys, and the panel that replaces the latter."""
        with Vertical(id="foot"):
            yield Lines(id="guide", grows=True)
            yield Lines(id="status")
            yield Lines(id="keys")
            yield self.panel

    @property
    def has_widgets(self) -> bool:
        """Whether its widgets are mounted, first and last: a closing screen outlives them by a moment."""
        return has_widget(self, "#topbar") and has_widget(self, "#keys")

    # Commands

    @property
    def situation(self) -> Situation:
        """What each key would do now."""
        return situation_of(self.model, self.clock.now(), self.clock.monotonic())

    @property
    def key_situation(self) -> Situation:
        """What each key does in the situation in which the present one was pressed."""
        return self._key_situation if self._key_situation is not None else self.situation

    def begin_key(self, at: float) -> None:
        """A key was pressed at *at*, monotonic seconds: it is judged by the situation of now."""
        self._key_situation = situation_of(self.model, self.clock.now(), at)

    def end_key(self) -> None:
        """The key was handled."""
        self._key_situation = None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Allow a command exactly when the footer's function does."""
        if action != "do":
            return True
        return availability(str(parameters[0]), self.key_situation).shown

    def take_key(self, event: events.Key) -> bool:
        """Say why *event* does nothing, if that is so; return whether it needs no more than that."""
        now, keys = self.key_situation, self.model.registry
        commands = tuple(e.id for e in keys.in_context(now.context) if event.key in e.keys)
        if not is_refused(commands, now):
            return False
        if not commands and self.panel.has_field and self.panel.edits_by(event):
            return False
        key = key_label(event.key)
        if now.panel != "none" or now.moves_document or not self.leave_row(key):
            self._refuse(refusal(commands, key, now))
        return True

    def leave_row(self, key: str) -> bool:
        """Leave the selected row, if nothing is left to do about it; return whether it was left.

        *key*: the label of the key that was pressed, for the sentence on it.
        """
        return False

    def _refuse(self, sentence: str) -> None:
        self.model.refuse(sentence, self.clock.monotonic())

    def action_do(self, command: str) -> None:
        """Do what the key of *command* asks for."""
        before, in_document = self._place, self.key_situation.moves_document
        handlers = {**self.handlers, **self.reader.moves} if in_document else self.handlers
        handlers[command]()
        if self.model.registry.command(command).moves and self._place == before:
            key = self.model.registry.key_label(command)
            if in_document or not self.leave_row(key):
                self._refuse(no_move(command, key, in_document=in_document))

    @property
    def _place(self) -> tuple[object, ...]:
        """What moving and reading change: cursor, opened row, first line in view, what stands in a field."""
        subject = self.model.subject
        cursor = subject.key if subject is not None else None
        reader = self.reader
        return (cursor, reader.document.rows_in_view[0], reader.match_counts, self.panel.text)

    def do(self, command: str) -> None:
        """Do *command*, which no key of this screen asked for, if it can be done now, and draw."""
        if availability(command, self.situation).has_effect:
            self.handlers[command]()
        else:
            key = self.model.registry.key_label(command)
            self._refuse(refusal((command,), key, self.situation))
        self.redraw()

    def on_piece_clicked(self, message: PieceClicked) -> None:
        """Do what the clicked key does, unless that decides: the mouse decides nothing."""
        message.stop()
        clicked = self.model.registry.command(message.action)
        self.model.forget_first_press()
        if not clicked.decides:
            self.do(clicked.id)
            return
        self._say(words.keys.press_key(self.model.registry.key_labels(clicked), clicked.label))
        self.redraw()

    def _switch_pane(self) -> None:
        """Give the keys that move to the document, or back to the list."""
        focused = self.model.document_focused = not self.model.document_focused
        self._say(words.keys.IN_DOCUMENT if focused else words.keys.IN_LIST)

    def on_document_clicked(self, message: DocumentClicked) -> None:
        """Ask about the link that was clicked; a click anywhere else gives the document the keys."""
        message.stop()
        self.model.forget_first_press()
        if self.model.panel == "none" and message.href:
            links = self.reader.links
            at = links.index(message.href) if message.href in links else 0
            self.panel.ask_links((*links[at:], *links[:at]))
        elif self.model.panel == "none":
            self.model.document_focused = True
        self.redraw()

    def on_ask_panel_search_typed(self, message: AskPanel.SearchTyped) -> None:
        """Go to the first match of the text as typed so far."""
        message.stop()
        self.reader.search(message.text)
        self.panel.match_counts = self.reader.match_counts
        self.redraw()

    def _say(self, message: str) -> None:
        self.model.say(message, self.clock.monotonic())

    def _look_again(self) -> None:
        """Fetch the preview again of a call whose outcome is unknown."""
        call_id = self.situation.unknown_outcome_id
        if call_id:
            self.submit(RefetchPreview(call_id=call_id))
            self._say(words.views.LOOKING_AGAIN)

    # Deciding

    @property
    def reason(self) -> str:
        """What the person wrote where something was asked."""
        return self.panel.text

    def require_second_press(self, command: str) -> None:
        """Say what was not seen; the next press of the same key decides."""
        self.model.note_first_press(command)

    def save_screen(self) -> None:
        """Keep the screen in which a call is decided, to show it again."""

    def schedule_settle(self, seconds: float) -> None:
        """Have `settle` called in *seconds*, by way of the application's queue."""
        # Every key that had arrived is counted before.
        self.set_timer(seconds, lambda: self.post_message(SettleDue()))

    def settle(self, at: float) -> None:
        """Let a press that had its silence until *at*, monotonic seconds, decide."""
        self._decisions.settle(at)

    def after_decision(self) -> None:
        """The intent was submitted: close the panel, and draw."""
        self.panel.close()
        self.redraw()

    # The panel

    def on_ask_panel_closed(self, message: AskPanel.Closed) -> None:
        """Hiding the focused field leaves nothing focused."""
        message.stop()
        if not self.panel.is_open:
            self.reader.document.focus()

    def on_ask_panel_filter_typed(self, message: AskPanel.FilterTyped) -> None:
        """Show the rows that match the filter as typed so far."""
        message.stop()
        if self.model.panel == "filter":
            self.model.set_filter(message.text, self.clock.now())
            self.redraw()

    # Drawing

    def set_first_layout(self, width: int, height: int) -> None:
        """Take the layout of a terminal of *width* by *height* cells before mounting: styles are then found once."""
        classes = _layout_classes(width_class(width, height))
        self.update_classes({**classes, "-empty": self.is_empty}, update=False)

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout; after a new size the rest before a key decides starts over."""
        width, height = event.size
        name = width_class(width, height)
        self.update_classes(_layout_classes(name))
        self.model.size = (width, height)
        self.model.too_small = name == "small"
        self.redraw()

    def on_size_changed(self, message: SizeChanged) -> None:
        """Draw for the size that a widget has now."""
        message.stop()
        self.redraw()

    def on_document_scrolled(self, message: DocumentScrolled) -> None:
        """Other lines are in view: they count as seen from when they are painted."""
        message.stop()
        self.reader.wait_for_paint()

    def on_screen_suspend(self) -> None:
        """Forget a passphrase that was half typed, as when nobody was here for long."""
        if self.panel.has_passphrase:
            self.panel.close()

    def on_screen_resume(self) -> None:
        """Draw what changed while another screen was shown."""
        self.model.size = (self.size.width, self.size.height)
        self.redraw()

    def redraw(self) -> None:
        """Draw everything from the model, then wait until the terminal has drawn it."""
        if not self.has_widgets:
            return
        self._read_call()
        self._draw_top()
        if self.panel.is_open:
            self.panel.close_if_over(self.situation)
        self.update_classes(
            {
                "-lost": self.model.core_lost is not None,
                "-panel": self.panel.is_open,
                "-reader": self.model.reader,
                "-field": self.panel.has_field and not self.panel.has_passphrase,
                "-passphrase": self.panel.has_passphrase,
                "-empty": self.is_empty,
            }
        )
        if self.model.too_small:
            self._draw_too_small()
        else:
            self.draw_view()
        self.draw_foot()
        self.reader.wait_for_paint()
        if self._is_before_a_person and (seen := seen_difference(self.model)) is not None:
            self.submit(seen)

    @property
    def _is_before_a_person(self) -> bool:
        """Whether a person may be reading what is drawn: it is not locked, covered or too small."""
        model = self.model
        return self.reader.is_uncovered and not model.too_small and model.arming.focused

    def _read_call(self) -> None:
        """Ask for the call that is shown whole, where that was not read yet or differs by now."""
        if not self.is_current:
            return
        self.model.turn_to_call()
        if self.model.core_lost is None and (wanted := self.model.opened_call.next_read()):
            self.submit(wanted)

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """There is no row at all, filter or not."""

    @abstractmethod
    def draw_view(self) -> None:
        """Draw the part between the bars."""

    def draw_foot(self) -> None:
        """Draw the status line and the keys, or the panel and its keys."""
        if not self.has_widgets:
            return  # called by a timer while the application ends
        width, now, model = self.size.width, self.situation, self.model
        self._draw_guide(width)
        if self.panel.is_open:
            self.panel.draw(now, width)
            return
        view = now.approval
        status = status_line(
            now, model.status_message, self.clock.now(), self.rows_status(), width=width
        )
        if view is not None and (
            self.reader.shows_words or " · ".join(view.words or ()) in plain_text(status)
        ):
            view = None  # the record, or the report of what was approved, has them
        self.query_one("#status", Lines).show(bars.status_row(status, view, width))
        self.query_one("#keys", Lines).show(bars.footer_line(now.context, now, width))

    def _draw_guide(self, width: int) -> None:
        guide = self.query_one("#guide", Lines)
        guide.set_class(self.model.guide is not None, "-shown")
        if self.model.guide is not None:
            guide.show(*guide_rows(self.model.guide, width))

    def rows_status(self) -> Line:
        """Return the status line's sentence about the rows."""
        return filter_problem(self.model.parsed_filter, *self.model.row_counts)

    def _draw_top(self) -> None:
        model, width = self.model, self.size.width
        self.query_one("#topbar", Lines).show(
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
            )
        )
        rows = bars.banner_lines(
            lost=model.core_lost,
            storage=None if model.health.writable else model.health.message,
            warnings=self.startup_warnings,
            width=width,
            help_key=model.registry.key_label("help"),
            paused=self._paused(),
            replayed=self._replayed(),
        )
        banner = self.query_one("#banner", Lines)
        banner.set_class(bool(rows), "-shown")
        banner.show(*rows)

    @property
    def startup_warnings(self) -> tuple[Line, ...]:
        """The warnings above every view, for as long as this console runs."""
        return bars.startup_warnings(
            self.model.snapshot,
            vault=self.model.vault,
            withheld=self.model.settings_withheld,
            lacks_letters=bool(glyphs_of(self).charset),
        )

    def _paused(self) -> str:
        since = self.model.paused_at
        if since is None:
            return ""
        return words.panels.paused(self.model.registry.key_label("go_on"), clock_minutes(since))

    def _replayed(self) -> str:
        screen = self.model.replayed
        if screen is None:
            return ""
        return words.views.as_shown(clock_seconds(screen.at), screen.unseen, screen.total)

    def _draw_too_small(self) -> None:
        """Draw the one sentence of a pane that is too small to decide in."""
        width, height = self.size
        sentence = words.bars.too_small(self.model.queue.waiting)
        wrapped = wrap((Piece(sentence, "strong"),), width - 2)
        message = self.model.status_message
        if message is not None and message.refusal:
            wrapped = [*wrapped, *wrap(message.pieces, width - 2)]
        rows = bars.centred([each.pieces for each in wrapped], width, height)
        self.query_one("#sentence", Lines).show(*rows)
