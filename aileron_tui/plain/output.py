"""What the console without a screen prints before it asks: one item whole; then what an answer would do."""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from aileron_core.clock import Clock
from aileron_core.tasks import type_and_places
from aileron_tui import words
from aileron_tui.draw.bars import startup_warnings
from aileron_tui.draw.blocks import sentence_lines, text_of, unbroken
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.draw.text import Line, line, plain_text
from aileron_tui.items import Item
from aileron_tui.pages.command import availability
from aileron_tui.pages.device_questions import device_question, link_sentences
from aileron_tui.pages.questions import stop_text
from aileron_tui.pages.status_line import status_line
from aileron_tui.plain.state import PlainState
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.model import Version
from aileron_tui.state.printed_pages import is_fetching, item_page
from aileron_tui.terminal.line_terminal import EndOfInput, LineTerminal

_log = logging.getLogger(__name__)

WAIT_SECONDS = 5.0
"""How long an intent's outcome is waited for before the next question."""
COMMANDS = {
    **dict.fromkeys((
        "go_on", "approve", "accept", "accept_rest", "decline_key", "acknowledge", "deny", "refresh", "look_again", "unfold",
        "unlock_vault", "lock_vault", "choose_account", "open_review", "device_confirm", "device_owners", "device_refuse", "pause", "stop_everything", "quit", "help",
    ), ""),
    "view_activity": "aileron audit list",
    "view_audit": "aileron audit list",
    "view_library": "aileron action list",
    "view_sessions": "aileron status",
    "view_accounts": "aileron binding list",
    "view_rules": "aileron policy grants",
}  # fmt: skip
"""The registry's commands that this console has, in its help's order; which command to type elsewhere for the others."""
OWN_KEYS = {
    "n": "next", "1": "again", words.plain.STOP: "stop_everything", words.plain.DEVICES: "devices",
    words.plain.GRANTS: "grants",
}  # fmt: skip
_TYPED_BEHIND = {"deny": " REASON", "choose_account": " NUMBER"}


class Output:
    """Prints to a terminal, and returns once that has left."""

    def __init__(
        self, terminal: LineTerminal, clock: Clock, glyphs: Glyphs, state: PlainState
    ) -> None:
        self.terminal, self.clock, self.state = terminal, clock, state
        self._glyphs, self._model = glyphs, state.model
        self._pages = DocumentCache(state.model.registry)

    def say(self, message: Line | str) -> None:
        """Print a sentence.

        Raises:
            EndOfInput: the terminal is gone.
        """
        pieces = line(message) if isinstance(message, str) else message
        self._lines(sentence_lines(pieces, self.terminal.columns) or ((),))

    def say_news(self) -> None:
        while self.state.messages:
            self.say(self.state.messages.popleft())

    def _lines(self, lines: Iterable[Line]) -> None:
        columns = self.terminal.columns
        texts = [text_of(self._glyphs.draw(each, columns)) for each in lines]
        self.terminal.send("".join(f"{text}\n" for text in texts))

    def wait_until(self, over: Callable[[], bool]) -> None:
        """Wait until *over*, for `WAIT_SECONDS` at most; say it if that was not enough.

        Raises:
            EndOfInput: the terminal is gone.
        """
        until, state = self.clock.monotonic() + WAIT_SECONDS, self.state

        def ends() -> bool:
            state.take_events()
            return state.is_over or self.clock.monotonic() >= until or over()

        if not ends():
            self.terminal.wait_quietly(WAIT_SECONDS, ends)
        if not over():
            state.messages.append(line(words.plain.NO_ANSWER_YET))

    def say_startup_warnings(self) -> None:
        """Print the warnings that the screen shows above everything else."""
        model, withheld = self._model, self._model.settings_withheld
        for row in startup_warnings(model.snapshot, vault=model.vault, withheld=withheld):
            self.say(line(" ", *row))

    def show(self) -> Version:
        """Print the item unless it was printed last; return what an answer is about while that is unchanged."""
        state = self.state
        shown, content = state.question_version, state.content_version
        if content != state.printed_version:
            if self._model.panel == "stop":
                self._say_question()
            elif self._model.panel == "pair":
                for text, role in link_sentences(self._model, self.clock.now()):
                    # Unbroken, so that it can be copied.
                    self.terminal.send(f"{text}\n") if role == "link" else self.say(text)
            elif self._model.panel == "device":
                self._lines(
                    unbroken(partial(device_question, self.state.situation), self.terminal.columns)
                )
                self.say(words.plain.keys([*self._keys("device")]))
            elif state.item is not None:
                self._print(state.item)
            state.printed_at = self.clock.monotonic()
        state.printed_version = content
        if self._model.panel == "none":
            self._say_status()
        return shown

    def _print(self, item: Item) -> None:
        """Print the whole of *item*, which then counts as read; if that fails, nothing can decide it."""
        model, pages, columns = self._model, self._pages, self.terminal.columns
        changed, now, unfold = model.queue.file_changed(item), self.clock.now(), model.unfolded
        try:
            page = item_page(pages, item, now, columns, file_changed=changed, unfold=unfold)
            self._lines(((), *page, ()))
            model.findings = pages.findings_in(item)
        except EndOfInput:
            raise
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            if model.mark_undrawable(item.version):
                _log.error("an item could not be drawn: %s", type_and_places(error))
            return
        if not is_fetching(item):
            model.has_marks, model.is_converted = pages.has_marks, pages.is_converted
            model.laid_out_version = item.version
            model.reading.set_lines(pages.current.ranges)
            model.reading.mark_seen(range(len(pages.current.ranges)))

    def _say_question(self) -> None:
        model, registry = self._model, self._model.registry
        for sentence in stop_text(model):
            self.say(sentence)
        key, label = registry.key_label("stop_everything"), registry.command("stop_enter").label
        self.say(words.plain.asks_again(key, label))

    def status(self) -> Line:
        return status_line(self.state.situation, None, width=1 << 16)

    def _say_status(self) -> None:
        state, queue = self.state, self._model.queue
        message = line(words.status.LOOKING) if is_fetching(state.item) else self.status()
        if state.asks_nothing:
            self.say(words.plain.changes_too_fast("n"))
        elif state.item is None:
            self.say(words.bars.NOTHING_WAITS)
            if queue.not_accepted:
                self.say(words.plain.files_wait(queue.not_accepted, "n"))
        if plain_text(message):
            self.say(message)
        self.say(words.plain.keys(list(self._keys("waiting"))))

    def _keys(self, context: str) -> Iterator[tuple[str, str]]:
        """Yield each key that does something now, in the registry's order, and what it does."""
        now, others = self.state.situation, len(self.state.others)
        for command in now.registry.footer_order(context):
            if availability(command, now).shown and COMMANDS.get(command.id) == "":
                key = f"{now.registry.key_label(command.id)}{_TYPED_BEHIND.get(command.id, '')}"
                yield key, command.label_now(now) or command.label
        if others and context == "waiting":
            yield "n", words.plain.next_of(others)
