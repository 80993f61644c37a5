"""The panel at the foot: asks for a reason or a filter, or to confirm a stop or the end of a session."""

from collections.abc import Callable
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from aileron_core.clock import Clock
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.document import agent_name, session_name
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.links import parse_link
from aileron_tui.draw.text import Line, Piece, wrap
from aileron_tui.input.commands import CommandHandlers
from aileron_tui.input.situation import Panel, Situation
from aileron_tui.messages import LinkRequested
from aileron_tui.state.deny_panel import REASON_LIMIT
from aileron_tui.state.model import Model
from aileron_tui.widgets.line_input import LineInput
from aileron_tui.widgets.line_view import Lines

FILTER_LIMIT = 200
"""Characters of a filter."""
_ROWS_BESIDE_LINK = 8
"""Rows of the screen that are no part of the question about a link."""
_WITH_FIELD: frozenset[Panel] = frozenset({"deny", "filter", "search"})
_ASKING: frozenset[Panel] = frozenset({"deny", "filter", "stop", "end", "search", "link"})


class AskPanel(Vertical):
    """A question, a line to type in where one is wanted, and the keys that answer.

    Which question is open stands in the model. What an answer does is not decided here.
    """

    class Closed(Message):
        """The question is gone."""

    @dataclass
    class FilterTyped(Message):
        """The filter reads *text* now."""

        text: str

    @dataclass
    class SearchTyped(Message):
        """The text to search for reads *text* now."""

        text: str

    def __init__(self, model: Model, clock: Clock) -> None:
        super().__init__(id="panel")
        self.match_counts: tuple[int, int] = (0, 0)
        """The number of the match in view, and how many there are, for the question of a search."""
        self._links: tuple[str, ...] = ()
        """The addresses that can be opened, the one that is asked about first."""
        self._shows_link = False
        """Every character of that one is on screen."""
        self._model = model
        self._clock = clock
        self._question = Lines(id="question", grows=True)
        self._field = LineInput(
            id="reason", placeholder=words.panels.REASON_PLACEHOLDER, max_length=REASON_LIMIT
        )
        self._keys = Lines(id="panelkeys")

    def compose(self) -> ComposeResult:
        """Lay out the question, the field and the keys."""
        yield self._question
        yield self._field
        yield self._keys

    @property
    def commands(self) -> CommandHandlers:
        """What opens a question, and what answers one without deciding anything."""
        reasons = self._model.deny_panel.reasons
        return {
            "deny": self._ask_deny,
            "filter": self._ask_filter,
            "stop_everything": lambda: self._ask("stop"),
            "end_session": self._ask_end,
            "search": self._ask_search,
            "search_enter": self.close,
            "search_leave": self._end_search,
            "link_next": self._ask_next_link,
            "link_enter": self._open_link,
            "link_leave": self.close,
            "filter_enter": self.close,
            "filter_leave": self._show_all,
            "deny_leave": self.close,
            "stop_leave": self.close,
            "end_leave": self.close,
            "reason_earlier": lambda: self._bring(reasons.earlier),
            "reason_later": lambda: self._bring(reasons.later),
        }

    @property
    def is_open(self) -> bool:
        return self._model.panel in _ASKING

    @property
    def has_field(self) -> bool:
        return self._model.panel in _WITH_FIELD

    @property
    def text(self) -> str:
        return self._field.value

    def edits_by(self, event: events.Key) -> bool:
        """Return whether *event* types or edits in the field."""
        return self._field.edits_by(event)

    def draw(self, now: Situation, width: int) -> None:
        message = self._model.status_message
        refused = message is not None and message.refusal
        rows = wrap(message.pieces, width - 2) if message is not None and refused else ()
        refusal = ((Piece(" "), *each.pieces) for each in rows)
        self._question.show(*self._asked(now, width), *refusal)
        self._keys.show(bars.footer_line(now.context, now, width))

    def _asked(self, now: Situation, width: int) -> tuple[Line, ...]:
        model = self._model
        match model.panel:
            case "stop":
                running = sum(each.running for each in model.sessions)
                question = words.panels.stop_question(
                    model.queue.undecided, len(model.sessions), running
                )
                return bars.panel_question(question, words.panels.STOP_REMARK, width)
            case "end":
                agent = session_name(now.session) if now.session is not None else ""
                remark = words.panels.end_remark(
                    now.session.waiting if now.session is not None else 0
                )
                return bars.panel_question(words.panels.end_question(agent), remark, width)
            case "filter":
                return self._filter_question(width)
            case "search":
                remark = words.panels.matches(*self.match_counts) if self.text else ""
                return bars.panel_question(words.panels.SEARCH_QUESTION, remark, width)
            case "link":
                return self._link_question(width)
            case _:
                view = now.approval
                asked = (
                    words.panels.deny_question(escape(view.title), agent_name(view)) if view else ""
                )
                return bars.panel_question(asked, words.panels.equal_calls(now.equal_count), width)

    def _filter_question(self, width: int) -> tuple[Line, ...]:
        model = self._model
        if model.parsed_filter.problems:
            return bars.panel_question(
                words.filters.QUESTION, model.parsed_filter.problems[0], width, "attn"
            )
        remark = words.filters.counted(*model.row_counts) if model.filtered else ""
        return bars.panel_question(words.filters.QUESTION, remark, width)

    def _link_question(self, width: int) -> tuple[Line, ...]:
        """Return the question before a link is opened: its host, then the whole address."""
        target = parse_link(self._links[0]) if self._links else None
        if target is None:
            return ()
        rows = list(bars.panel_question(words.panels.link_question(target.host), "", width))
        warned = (
            Piece(each, "attn")
            for each in words.panels.link_warnings(target.has_user, target.is_renamed)
        )
        for pieces in (*((each,) for each in warned), foreign_text(target.url, "strong")):
            rows += [(Piece("  "), *each.pieces) for each in wrap(pieces, width - 4)]
        self._shows_link = len(rows) <= self.screen.size.height - _ROWS_BESIDE_LINK
        if self._shows_link:
            return tuple(rows)
        remark = words.panels.long_link(target.host, len(target.url))
        return bars.panel_question(words.panels.LINK_TOO_LONG, remark, width, "attn")

    # Opening and closing

    def ask_links(self, links: tuple[str, ...]) -> None:
        """Show where the first of *links* leads, and ask whether to open it."""
        if links:
            self._links = links
            self._ask("link", links[0])

    def _ask_next_link(self) -> None:
        self._links = (*self._links[1:], *self._links[:1])
        self._model.arming.reset()

    def _open_link(self) -> None:
        target = parse_link(self._links[0]) if self._links else None
        self.close()
        if target is not None and self._shows_link:
            self.post_message(LinkRequested(target.url))

    def _ask_search(self) -> None:
        """Ask what to search for in the document; it follows every key."""
        self._ask(
            "search", text=self._model.search_text, placeholder=words.panels.SEARCH_PLACEHOLDER
        )

    def _end_search(self) -> None:
        self.post_message(self.SearchTyped(""))
        self.close()

    def _ask(self, panel: Panel, key: str = "", *, text: str = "", placeholder: str = "") -> None:
        """Open *panel* about *key*, with *text* in the field."""
        self._model.open_panel(panel, key)
        self._field.max_length = FILTER_LIMIT if panel in ("filter", "search") else REASON_LIMIT
        self._field.placeholder = placeholder
        self._write(text)
        if self.has_field:
            self._field.focus()
        else:
            self.screen.set_focus(None)

    def _ask_deny(self) -> None:
        item = self._model.queue.current
        if item is not None and item.approval is not None:
            self._model.deny_panel.open(item.approval)
            self._ask("deny", item.key, placeholder=words.panels.REASON_PLACEHOLDER)

    def _ask_filter(self) -> None:
        """Ask which rows to show; the list follows every key."""
        self._ask(
            "filter", text=self._model.parsed_filter.text, placeholder=words.filters.PLACEHOLDER
        )

    def _ask_end(self) -> None:
        session = self._model.sessions_table.current
        if session is not None:
            self._ask("end", session.session_id)

    def close(self) -> None:
        """Take the question away; nothing is decided."""
        self._model.close_panel()
        self._field.value = ""
        self.post_message(self.Closed())

    def close_if_over(self, now: Situation) -> bool:
        """Close a question about what is gone; return whether it was closed."""
        panel = now.panel
        denied = now.deny_blocked_by in ("over", "empty", "lost", "storage", "undrawable")
        ended = now.session is None or now.session.session_id != self._model.panel_key
        over = (
            (panel == "deny" and denied)
            or (panel == "end" and (ended or not now.can_change))
            or (panel == "stop" and not now.can_change)
        )
        if over:
            self.close()
        return over

    # Typing

    def on_input_changed(self, message: Input.Changed) -> None:
        """Say what the filter reads now."""
        message.stop()
        if self._model.panel == "filter":
            self.post_message(self.FilterTyped(message.value))
        elif self._model.panel == "search":
            self.post_message(self.SearchTyped(message.value))

    def _show_all(self) -> None:
        """Forget the filter."""
        self._model.set_filter("", self._clock.now())
        self.close()

    def _bring(self, other: Callable[[str], str]) -> None:
        """Put another reason into the field; it has to be read before a key sends it."""
        if self._model.key_in_burst:
            return  # no hand pressed it
        self._write(other(self.text))
        self._model.arming.reset()

    def _write(self, text: str) -> None:
        """Put *text* into the field, the cursor behind it."""
        self._field.value = text
        self._field.cursor_position = len(text)
