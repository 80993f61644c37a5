"""The console without a screen: one item at a time, line by line, for screen readers and dumb terminals.

The same state, texts and conditions as the screen's; only the drawing differs. An item is printed
whole, then it rests, then a question stands there. What is typed before the question counts for nothing.
"""

import logging
import signal
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from aileron_core.clock import Clock
from aileron_core.control_plane.port import (
    ConsolePort,
    Deny,
    Fact,
    Intent,
    Refresh,
)
from aileron_core.text import escape
from aileron_tui.actions import Registry
from aileron_tui.faults import fault_place
from aileron_tui.line_terminal import EndOfInput, LineTerminal, Together
from aileron_tui.notifying import Notifier
from aileron_tui.plain_state import PlainState
from aileron_tui.presenters import wording
from aileron_tui.presenters.glyphs import Glyphs
from aileron_tui.presenters.intents import intent_of
from aileron_tui.presenters.lines import Line, plain
from aileron_tui.presenters.model import Model, Token
from aileron_tui.presenters.pages import Pages
from aileron_tui.presenters.plain_lines import own
from aileron_tui.presenters.queue import Item
from aileron_tui.presenters.situation import availability
from aileron_tui.presenters.voice import voice
from aileron_tui.presenters.wording import panels
from aileron_tui.presenters.wording import plain as words
from aileron_tui.printing import Printer

__all__ = ["PlainConsole"]

_log = logging.getLogger(__name__)

EXIT_CORE_LOST = 70
FOLLOW_SECONDS = 5.0
"""How long the end of what was decided is waited for before the next item is printed."""
REASON_LIMIT = 2_000
_NEXT, _LIST = "n", "l"
_ENDED = frozenset({"completed", "failed", "unknown", "denied", "expired", "withdrawn"})
_KEYS = ("go_on", "approve", "take_in", "deny", "refresh", "pause", "quit", "help")
"""The actions of the registry that are here; `n` and `l` are only here."""


class PlainConsole:
    """Prints what the core says and hands over what the person answers. It holds no decision."""

    def __init__(
        self,
        port: ConsolePort,
        terminal: LineTerminal,
        *,
        clock: Clock,
        arm_seconds: float,
        registry: Registry,
        glyphs: Glyphs,
        notifier: Notifier,
        first_frame: Callable[[], object],
    ) -> None:
        """Subscribe to *port*.

        Args:
            port: the core.
            terminal: where the person is.
            clock: of both times.
            arm_seconds: how long a printed item rests before it can be answered.
            registry: the keys.
            glyphs: what the terminal can draw.
            notifier: tells of arrivals.
            first_frame: called once, after the first item was printed.

        Raises:
            Unavailable: the core has ended.
        """
        self._port, self._terminal, self._clock = port, terminal, clock
        self._arm_seconds, self._registry = arm_seconds, registry
        self._first_frame: Callable[[], object] | None = first_frame
        self._facts: deque[Fact] = deque()
        snapshot = port.subscribe(self._sink)
        self._model = Model(snapshot, arm_seconds=arm_seconds, registry=registry, now=clock.now())
        self._state = PlainState(self._model, self._facts, clock, notifier)
        self._printer = Printer(terminal, glyphs, Pages(registry))
        self._say = self._printer.say
        self._printed: Token = ()
        self._shown: Token = ()
        self._shown_at = 0.0
        self._quit_asked = self._ended = False

    def run(self) -> int:
        """Ask until the person quits or a signal ends it; return the exit code. For the main thread."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._end)
        with suppress(EndOfInput), self._terminal:
            self._say(words.STARTS)
            self._say(words.REST)
            while not self._ended and self._model.lost is None:
                self._turn()
            self._tell_news()
            self._say(words.ENDS if self._model.lost is None else self._voice())
        return 0 if self._model.lost is None else EXIT_CORE_LOST

    def _end(self, _number: int, _frame: object) -> None:
        self._ended = True
        self._terminal.wake()

    def _sink(self, fact: Fact) -> None:
        """Take a fact on the core's thread."""
        self._facts.append(fact)
        self._terminal.wake()

    def _tell_news(self) -> None:
        for told in self._state.take_news():
            self._say(told)

    # One turn: tell, print, rest, ask, answer

    def _turn(self) -> None:
        self._state.take()
        self._tell_news()
        self._show()
        if self._first_frame is not None:
            self._first_frame()
            self._first_frame = None
        if not self._terminal.rests(self._arm_seconds, self._interrupted):
            return
        item = self._state.item
        try:
            typed = self._terminal.hears(words.PROMPT, self._interrupted)
        except Together:
            self._say(words.TOGETHER)
            return
        if typed is None:
            self._say(())  # leave the line of the question
        if typed is None or self._interrupted():
            if item is not None and not self._ended and not _looking(item):
                self._say(words.CHANGED_MEANWHILE)
        elif typed:
            self._answer(typed)

    def _interrupted(self) -> bool:
        """Take what came; return whether what was printed does not hold any more."""
        self._state.take()
        return self._ended or self._state.token != self._shown

    # Printing

    def _show(self) -> None:
        """Print the item unless it stands there already, then what an answer would do."""
        self._shown = self._state.token
        item, content = self._state.item, self._state.content
        if item is not None and content != self._printed:
            self._print_item(item)
            self._shown_at = self._clock.monotonic()
        self._printed = content
        if item is None:
            self._say(wording.NOTHING_WAITS)
            if files := self._model.queue.held:
                self._say(words.files_wait(files, _NEXT))
        told = own(wording.LOOKING) if _looking(item) else self._voice()
        if plain(told):
            self._say(told)
        self._say(words.keys(list(self._keys())))

    def _print_item(self, item: Item) -> None:
        """Print the whole of *item*, which counts as seen then; only its head while it is looked at."""
        model, now = self._model, self._clock.now()
        moved = model.queue.file_moved(item)
        try:
            if _looking(item):
                self._printer.head(item, now, file_moved=moved)
                return
            layout = self._printer.item(item, now, file_moved=moved)
        except EndOfInput:
            raise
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            if model.cannot_draw(item.version):
                _log.error("an item could not be drawn: %s", fault_place(error))
            return
        model.laid_out = item.version
        model.reading.lay_out(layout.places)
        model.reading.mark(range(len(layout.places)))

    def _voice(self) -> Line:
        now = self._clock.now()
        situation = self._model.situation(now, self._clock.monotonic())
        return voice(situation, None, now, width=1 << 16)

    def _keys(self) -> Iterable[tuple[str, str]]:
        """Yield the keys that do something now, each with what it does."""
        model, face = self._model, self._registry.face
        now = model.situation(self._clock.now(), self._clock.monotonic())
        for action in _KEYS:
            if action in ("quit", "help") or availability(action, now).shown:
                key = f"{face(action)} REASON" if action == "deny" else face(action)
                yield key, self._registry.action(action).label
        if [each for each in self._state.waiting if each is not self._state.item]:
            yield _NEXT, "next"
        yield _LIST, "list"

    # Answers

    def _answer(self, typed: str) -> None:
        word, _, rest = typed.partition(" ")
        action = self._meant(word)
        if rest and action != "deny":
            action = ""
        if action != "quit":
            self._quit_asked = False
        if action != self._model.confirmed:
            self._model.take_back()
        match action:
            case "approve" | "take_in" | "go_on":
                self._decide(action, typed)
            case "deny":
                self._deny(rest.strip(), typed)
            case "refresh" | "pause":
                self._ask_core(action, typed)
            case "next":
                self._next()
            case "list":
                self._list()
            case "quit":
                self._quit()
            case "help":
                self._help()
            case _:
                self._say(words.not_now(escape(typed)))

    def _meant(self, word: str) -> str:
        """Return what *word* stands for: of two actions with one key the one that is possible now."""
        named = [each for each in _KEYS if self._registry.face(each) == word]
        if not named:
            return {_NEXT: "next", _LIST: "list"}.get(word, "")
        now = self._model.situation(self._clock.now(), self._clock.monotonic())
        return next((each for each in named if availability(each, now).shown), named[0])

    def _decide(self, action: str, typed: str) -> None:
        """Hand over what *action* asks for, if what was printed has rested and may be decided."""
        at, model = self._clock.monotonic(), self._model
        model.arming.drawn(model.token, self._shown_at)
        state = availability(action, model.situation(self._clock.now(), at))
        if state.asks:
            model.confirm(action)
            return
        intent = intent_of(model, action) if state.filled else None
        if intent is None:
            self._say(words.not_now(escape(typed)))
            return
        self._hand_over(intent)

    def _deny(self, reason: str, typed: str) -> None:
        item = self._state.item
        situation = self._model.situation(self._clock.now(), self._clock.monotonic())
        if item is None or not availability("deny", situation).shown:
            self._say(words.not_now(escape(typed)))
        elif len(reason) > REASON_LIMIT:
            self._say(words.reason_too_long(REASON_LIMIT))
        else:
            self._hand_over(Deny(approval_id=item.key, reason=reason))

    def _hand_over(self, intent: Intent) -> None:
        """Submit *intent* and wait a while for what becomes of it."""
        item, model = self._state.item, self._model
        model.sending(intent)
        self._port.submit(intent)
        key = item.key if item is not None else ""
        until = self._clock.monotonic() + FOLLOW_SECONDS

        def over() -> bool:
            self._state.take()
            late = self._clock.monotonic() >= until
            return late or self._ended or model.lost is not None or self._over(key)

        if not over():
            self._terminal.rests(FOLLOW_SECONDS, over)
        if not self._over(key):
            self._state.news.append(own(words.UNDER_WAY))

    def _over(self, key: str) -> bool:
        item = self._model.queue.get(key)
        if self._model.sent.get(key) is not None:
            return False
        view = item.approval if item is not None else None
        return view is None or view.state in _ENDED or view.state in ("pending", "awaiting_vault")

    def _ask_core(self, action: str, typed: str) -> None:
        """Ask for the preview again, or hold all calls."""
        item = self._state.item
        situation = self._model.situation(self._clock.now(), self._clock.monotonic())
        if not availability(action, situation).shown:
            self._say(words.not_now(escape(typed)))
        elif action == "refresh" and item is not None:
            self._port.submit(Refresh(approval_id=item.key))
            self._say(words.ASKED_AGAIN)
        elif (intent := intent_of(self._model, action)) is not None:
            self._port.submit(intent)
            self._say(panels.pausing())

    def _next(self) -> None:
        """Go to the next item that waits, behind the last one to the first."""
        waiting, here = self._state.waiting, self._state.item
        others = [each for each in waiting if each is not here]
        if not others:
            self._say(words.NOTHING_ELSE)
            return
        row = waiting.index(here) + 1 if here is not None else 0
        self._state.chosen = self._model.queue.selected = waiting[row % len(waiting)].key

    def _list(self) -> None:
        items = self._state.waiting
        selected = self._model.queue.selected or ""
        self._printer.listing(items, selected, self._clock.now())

    def _quit(self) -> None:
        waiting = self._model.queue.waiting
        if waiting and not self._quit_asked:
            self._quit_asked = True
            self._say(wording.quit_asks(waiting, self._registry.face("quit")))
        else:
            self._ended = True

    def _help(self) -> None:
        for action in _KEYS:
            told = self._registry.action(action)
            self._say(f" {self._registry.face(action)}: {told.help or told.label}")
        for key, told in words.HELP:
            self._say(f" {key}: {told}")
        self._say(words.REST)


def _looking(item: Item | None) -> bool:
    """Return whether Aileron still asks what *item* would do."""
    view = item.approval if item is not None else None
    return view is not None and view.state == "pending" and view.preview.status == "fetching"
