"""Decisions in the console without a screen, under the same conditions as on the screen."""

from collections.abc import Callable

from aileron_core.console_port import (
    FINAL_STATES,
    AllowHost,
    Approve,
    Deny,
    EndSession,
    Intent,
    RefreshPreview,
    StopEverything,
)
from aileron_tui import words
from aileron_tui.input.situation import Availability, Panel
from aileron_tui.plain.context import PlainContext
from aileron_tui.plain.lines import own_line
from aileron_tui.state.decision_screens import DecisionScreen
from aileron_tui.state.deny_panel import REASON_LIMIT
from aileron_tui.state.intents import intent_of
from aileron_tui.state.pending_intents import file_key
from aileron_tui.state.situation import running_call

_ASKS: dict[Panel, tuple[str, str]] = {
    "stop": ("stop_everything", "stop_enter"),
    "stop_run": ("stop_run", "stop_run_enter"),
    "end": ("end_session", "end_enter"),
}
"""By panel: the action that opens it and confirms it, and the command that then runs."""


class LineDecisions:
    """Passes the person's answers to the core once what was printed has rested and may be decided."""

    def __init__(self, context: PlainContext) -> None:
        self._context, self._state, self._model = context, context.state, context.model

    def decide(self, action: str, typed: str) -> None:
        """Submit what *action* asks for, or say what was not seen; the same answer again decides."""
        model, context = self._model, self._context
        state = self._rested(action)
        if state.asks:
            model.note_first_press(action)
            return
        intent = intent_of(model, action) if state.decides_now else None
        if intent is None:
            context.say_unavailable(typed)
        else:
            self._hand_over(intent)

    def _rested(self, action: str) -> Availability:
        """Return what *action* does now; rest counts from when the item was printed."""
        model = self._model
        model.arming.on_drawn(model.screen_version, self._state.printed_at)
        return self._context.availability(action)

    def deny(self, reason: str, typed: str) -> None:
        """Deny with *reason*, which the agent gets."""
        item = self._state.item
        if item is None or not self._context.availability("deny").shown:
            self._context.say_unavailable(typed)
        elif len(reason) > REASON_LIMIT:
            self._context.say(words.plain.reason_too_long(REASON_LIMIT))
        else:
            self._hand_over(Deny(approval_id=item.key, reason=reason))

    # What is asked first

    def ask(self, action: str, typed: str) -> None:
        """Say what would be stopped or ended; only the same answer once more does it."""
        panel: Panel = next(panel for panel, (asking, _) in _ASKS.items() if asking == action)
        if not self._context.availability(action).shown:
            self._context.say_unavailable(typed)
            return
        self._model.forget_first_press()
        self._model.arming.reset()
        running = running_call(self._model) if panel == "stop_run" else None
        if running is not None and self._model.view == "activity":
            self._model.activity.stop_following()
        key = self._model.sessions_table.key if panel == "end" else ""
        key = running.run_id if running is not None else key
        self._model.open_panel(panel, key or "")

    def answer_question(self, action: str) -> None:
        """Confirm the open question if *action* is the one that opened it; any other cancels it."""
        model = self._model
        asked, done = _ASKS[model.panel]
        state = self._rested(done)
        intent = intent_of(model, done) if action == asked and state.decides_now else None
        model.close_panel()
        if intent is None:
            self._context.say(words.plain.LEFT_ALONE)
        else:
            self._hand_over(intent)

    # Handing over

    def _hand_over(self, intent: Intent) -> None:
        """Submit *intent* and wait a while for its outcome."""
        model, context = self._model, self._context
        over = self._end_of(intent)
        if isinstance(intent, Approve | Deny):
            self._keep_screen()
        model.mark_sent(intent)
        context.port.submit(intent)
        if not context.wait_until(over):
            self._state.messages.append(own_line(words.plain.NO_ANSWER_YET))

    def _keep_screen(self) -> None:
        """Keep the call as it was printed when it was decided, for the audit view."""
        item, model = self._state.item, self._model
        if item is None:
            return
        reading = model.reading
        model.decision_screens.add(
            DecisionScreen(
                at=self._context.clock.now(),
                item=item,
                file_changed=model.queue.file_changed(item),
                unfolded=model.unfolded,
                reading=reading.frozen_copy(),
                unseen=reading.unseen,
                total=reading.total,
            )
        )

    def _end_of(self, intent: Intent) -> Callable[[], bool]:
        """Return a function that says whether *intent* has had its effect."""
        state, item = self._state, self._state.item
        match intent:
            case StopEverything():
                before = state.report_count
                return lambda: state.report_count > before
            case EndSession(session_id=key) | AllowHost(session_id=key):
                return lambda: self._over(key)
            case _:
                file = self._model.library.current if self._model.view == "library" else None
                key = file_key(file.kind, file.name) if file is not None else ""
                key = key or (item.key if item is not None else "")
                return lambda: self._over(key)

    def _over(self, key: str) -> bool:
        if self._model.pending_intents.get(key) is not None:
            return False
        item = self._model.queue.get(key)
        view = item.approval if item is not None else None
        return (
            view is None
            or view.state in FINAL_STATES
            or view.state in ("pending", "awaiting_vault")
        )

    def ask_core(self, action: str, typed: str) -> None:
        """Ask for the preview again, or hold all calls."""
        context, item = self._context, self._state.item
        if not context.availability(action).shown:
            context.say_unavailable(typed)
        elif action == "refresh" and item is not None and item.approval is not None:
            self._model.refetched[item.key] = item.approval
            context.port.submit(RefreshPreview(approval_id=item.key))
            context.say(words.plain.ASKED_AGAIN)
        elif (intent := intent_of(self._model, action)) is not None:
            context.port.submit(intent)
            context.say(words.panels.pausing())
