"""What a page asks before it does something: why not, which rows, really everything, really this one."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.document import session_name
from aileron_tui.draw.status_line import status_line
from aileron_tui.draw.text import Line
from aileron_tui.input.situation import Panel
from aileron_tui.screens.deciding import DecidingScreen
from aileron_tui.state.tables.table import filter_doubt
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.line_view import Lines
from aileron_tui.widgets.reason import REASON_LIMIT, Reason
from aileron_tui.words import filters, panels

__all__ = ["PromptingScreen"]

FILTER_LIMIT = 200
_WITH_FIELD: frozenset[Panel] = frozenset({"deny", "filter"})


class PromptingScreen(DecidingScreen):
    """The voice and the keys, and the panel that takes their place while something is asked."""

    def compose_foot(self) -> ComposeResult:
        """Lay out the voice and the keys, and the panel that takes their place."""
        with Vertical(id="foot"):
            yield Lines(id="voice")
            yield Lines(id="keys")
            with Vertical(id="panel"):
                yield Lines(id="question", grows=True)
                yield Reason(id="reason", placeholder=words.REASON_PLACEHOLDER)
                yield Lines(id="panelkeys")

    # Drawing

    def draw_foot(self) -> None:
        """Draw the voice and the keys, or the question and its keys."""
        if not self.stands:
            return  # a timer's last call, while the application ends
        width, now, model = self.size.width, self.situation, self.model
        keys = bars.footer_line(now.context, now, width)
        if model.panel not in ("none", "palette"):
            self.query_one("#question", Lines).show(*self._question())
            self.query_one("#panelkeys", Lines).show(keys)
            return
        item = model.queue.current if model.view == "waiting" else None
        words = item.approval.words if item is not None and item.approval is not None else None
        said = status_line(now, model.said, self.clock.now(), self._of_list(), width=width)
        self.query_one("#voice", Lines).show(bars.voice_line(said, words, width))
        self.query_one("#keys", Lines).show(keys)

    def _of_list(self) -> Line:
        """Return what the voice says of the rows."""
        return filter_doubt(self.model.parsed, *self.model.counts)

    def draw_panel(self) -> None:
        """Show the panel or take it away, by what the model says."""
        self._leave_a_panel_of_nothing()
        panel = self.model.panel
        self.set_class(panel not in ("none", "palette"), "-panel")
        self.set_class(panel in _WITH_FIELD, "-field")

    def _question(self) -> tuple[Line, ...]:
        model, width = self.model, self.size.width
        match model.panel:
            case "stop":
                running = sum(each.running for each in model.sessions)
                question = panels.stop_question(model.queue.waiting, len(model.sessions), running)
                return bars.panel_question(question, panels.STOP_REMARK, width)
            case "end":
                session = model.people.current
                agent = session_name(session) if session is not None else ""
                remark = panels.end_remark(session.waiting if session is not None else 0)
                return bars.panel_question(panels.end_question(agent), remark, width)
            case "filter":
                return self._filter_question(width)
            case _:
                told = panels.equal_calls(self.situation.equal)
                return bars.panel_question(self.deny_question(), told, width)

    def _filter_question(self, width: int) -> tuple[Line, ...]:
        model = self.model
        if model.parsed.problems:
            return bars.panel_question(filters.QUESTION, model.parsed.problems[0], width, "attn")
        told = filters.counted(*model.counts) if model.filtered else ""
        return bars.panel_question(filters.QUESTION, told, width)

    def deny_question(self) -> str:
        """Return the question of the deny panel."""
        return ""

    # Opening and leaving

    def ask(self, panel: Panel, key: str = "", *, text: str = "", placeholder: str = "") -> None:
        """Ask something first; *text* stands in the field already."""
        self.model.open_panel(panel, key)
        field = self.query_one("#reason", Reason)
        field.max_length = FILTER_LIMIT if panel == "filter" else REASON_LIMIT
        field.placeholder = placeholder
        self._write(text)
        self.redraw()
        if panel in _WITH_FIELD:
            field.focus()
        else:
            self.set_focus(None)

    def _write(self, text: str) -> None:
        """Put *text* into the field, the cursor behind it."""
        field = self.query_one("#reason", Reason)
        field.value = text
        field.cursor_position = len(text)

    @property
    def reason(self) -> str:
        """What the person wrote."""
        return self.query_one("#reason", Reason).value

    def close_panel(self) -> None:
        """Take away what was asked."""
        self.model.close_panel()
        self.query_one("#reason", Reason).value = ""
        # Hiding the focused input leaves nothing focused.
        self.query_one("#document", Document).focus()

    def _leave(self) -> None:
        self.close_panel()
        self.redraw()

    def _leave_a_panel_of_nothing(self) -> None:
        """Close the panel where what it asks about is gone."""
        panel, now = self.model.panel, self.situation
        denied = now.deny_block in ("over", "empty", "lost", "storage", "undrawable")
        ended = now.session is None or now.session.session_id != self.model.panel_key
        gone = (
            (panel == "deny" and denied)
            or (panel == "end" and (ended or not now.changeable))
            or (panel == "stop" and not now.changeable)
        )
        if gone:
            self.close_panel()

    # The filter

    def action_filter(self) -> None:
        """Ask which rows to show; the list follows every key."""
        self.ask("filter", text=self.model.parsed.text, placeholder=filters.PLACEHOLDER)

    def on_input_changed(self, message: Input.Changed) -> None:
        """Show the rows that the filter lets through as it stands now."""
        message.stop()
        if self.model.panel == "filter":
            self.model.narrow(message.value, self.clock.now())
            self.redraw()

    def action_filter_enter(self) -> None:
        """Keep the filter."""
        self._leave()

    def action_filter_leave(self) -> None:
        """Show all rows."""
        self.model.narrow("", self.clock.now())
        self._leave()

    # Stop everything, end a session

    def action_stop_everything(self) -> None:
        """Ask once, then deny all, end every session, stop every run."""
        self.ask("stop")

    def action_stop_enter(self) -> None:
        """Stop everything, if this press counts."""
        self._press("stop_enter")

    def action_stop_leave(self) -> None:
        """Leave everything as it is."""
        self._leave()

    def action_end_session(self) -> None:
        """Ask once, then end the selected session."""
        session = self.model.people.current
        if session is not None:
            self.ask("end", session.session_id)

    def action_end_enter(self) -> None:
        """End the session, if this press counts."""
        self._press("end_enter")

    def action_end_leave(self) -> None:
        """Leave the session at work."""
        self._leave()

    def action_deny_enter(self) -> None:
        """Deny with the reason, if this press counts."""
        self._press("deny_enter")

    def action_deny_equal(self) -> None:
        """Deny equal calls too, if this press counts."""
        self._press("deny_equal")

    def action_reason_earlier(self) -> None:
        """Bring back an earlier reason."""
        self._bring(self.model.denying.reasons.earlier)

    def action_reason_later(self) -> None:
        """Bring back a later reason, or what was written."""
        self._bring(self.model.denying.reasons.later)

    def _bring(self, other: Callable[[str], str]) -> None:
        """Put another reason into the field; it has to be read before a key sends it."""
        if self.model.key_in_burst:
            return  # no hand pressed it
        self._write(other(self.reason))
        self.model.arming.changed()
        self.redraw()

    def action_deny_leave(self) -> None:
        """Leave it waiting."""
        self._leave()
