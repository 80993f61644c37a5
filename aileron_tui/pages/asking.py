"""What is asked at the foot of a view: a question as an object, and the one that is open."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TypeAlias

from aileron_core.clock import Clock
from aileron_core.console_port.intents import Intent
from aileron_core.vault.secret import Secret
from aileron_tui.draw import bars
from aileron_tui.draw.text import Line, Piece, wrap
from aileron_tui.input.commands import Command
from aileron_tui.pages.status_line import footer_line
from aileron_tui.pages.surface import Place, Surface, TextField
from aileron_tui.state.deny_panel import REASON_LIMIT
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation

SECRET_EDITS = frozenset({"backspace", "ctrl+h", "ctrl+u"})
_SECRET_BYTES = 1024


class SecretText:
    """What is typed unseen: bytes that are overwritten. No text is ever made of them, which Python would keep."""

    def __init__(self) -> None:
        self._typed = bytearray(_SECRET_BYTES)
        self._used = 0
        self.changed: Callable[[], object] = lambda: None
        """Called when there are more or fewer characters."""

    @property
    def is_empty(self) -> bool:
        return not self._used

    @property
    def characters(self) -> int:
        return sum(byte & 0xC0 != 0x80 for byte in self._typed[: self._used])

    def take(self) -> Secret:
        """Return what was typed, and empty the line."""
        typed = self._typed[: self._used]
        secret = Secret(typed)
        typed[:] = bytes(len(typed))
        self.clear()
        return secret

    def clear(self) -> None:
        """Overwrite what was typed."""
        self._typed[:] = bytes(_SECRET_BYTES)
        self._used = 0
        self.changed()

    def press(self, key: str, character: str | None) -> None:
        """Take *key*, which edits, or types *character*."""
        if key == "ctrl+u":
            self.clear()
        elif key in SECRET_EDITS:
            self._delete_last()
        elif character is not None:
            self.append(character)

    def append(self, text: str) -> None:
        """Add *text*, if it fits."""
        added = text.encode("utf-8", "surrogatepass")
        end = self._used + len(added)
        if end <= _SECRET_BYTES:
            self._typed[self._used : end] = added
            self._used = end
        self.changed()

    def _delete_last(self) -> None:
        while self._used:
            self._used -= 1
            byte, self._typed[self._used] = self._typed[self._used], 0
            if byte & 0xC0 != 0x80:
                break
        self.changed()


class Asking:
    """The question that is open, and what is typed there. What an answer does is not decided here.

    Its name stands in the model.
    """

    def __init__(
        self,
        questions: Mapping[str, "Question"],
        model: Model,
        clock: Clock,
        submit: Callable[[Intent], None],
        surface: Surface,
        *,
        on_filter: Callable[[str], None],
        on_search: Callable[[str], None],
    ) -> None:
        """*on_filter* and *on_search* are called with what the field reads, at each change."""
        self.match_counts: tuple[int, int] = (0, 0)
        """The number of the match in view, and how many there are, for the question of a search."""
        self.secret = SecretText()
        self.rows_around = 0
        """Rows of the banner and of what a demo says."""
        self.links: tuple[str, ...] = ()
        """The addresses that can be opened, the one that is asked about first."""
        self.shown_link = ""
        """That one, if every character of it is on screen."""
        self.model, self.clock, self.submit, self.surface = model, clock, submit, surface
        self.on_filter, self.on_search = on_filter, on_search
        self._questions = questions
        self._asked_before: object = None

    @property
    def question(self) -> "Question | None":
        """The question that is open."""
        return self._questions.get(self.model.panel)

    @property
    def is_open(self) -> bool:
        return self.question is not None

    @property
    def field(self) -> Place:
        """Where what is typed goes."""
        return self.question.field(self.model) if self.question is not None else "nothing"

    @property
    def _input(self) -> TextField:
        return self.surface.area if self.field == "area" else self.surface.field

    @property
    def text(self) -> str:
        return self._input.value

    def edits_by(self, key: str, *, printable: bool) -> bool:
        """Return whether *key* types or edits in the line that is open."""
        if self.field == "secret":
            return printable or key in SECRET_EDITS
        return self.field in ("field", "area") and self._input.edits_by(key, printable=printable)

    def typed(self, text: str) -> None:
        """The field reads *text* now."""
        if self.question is not None:
            self.question.typed(self, text)

    def draw(self, question: "Question", now: Situation, width: int) -> None:
        model, asked = self.model, self.model.account_panel.question
        asked = asked if now.panel in ("bind", "login") else None
        if asked != self._asked_before:  # the core's answer may ask for something else
            self._asked_before = asked
            self.surface.field.put("")
            self.secret.clear()
            self.surface.focus_on(self.field)
        message = model.status_message
        refused = message is not None and message.refusal
        rows = wrap(message.pieces, width - 2) if message is not None and refused else ()
        refusal = ((Piece(" "), *each.pieces) for each in rows)
        if question.rows is not None:
            asks = question.rows(self, now, width)
        else:
            asks = bars.panel_question(*question.text(now), width)
        self.surface.show("question", *asks, *refusal)
        self.surface.show("panelkeys", footer_line(now.context, now, width))

    # Opening and closing

    def ask(self, name: str, key: str = "", *, text: str = "", placeholder: str = "") -> None:
        """Open the question *name* about *key*, with *text* in the field."""
        self.model.open_panel(name, key)
        limit = self.question.limit if self.question is not None else 0
        self._input.ask(text, placeholder, limit)
        self.surface.focus_on(self.field)

    def close(self) -> None:
        """Take the question away; nothing is decided."""
        self.model.close_panel()
        self.model.vault_panel.close()
        if not self.model.account_panel.is_sent:
            self.model.account_panel.close()
        self.secret.clear()
        self.surface.field.put("")
        self.surface.focus_on("document")

    def close_if_over(self, now: Situation) -> None:
        """Close a question about what is gone."""
        if self.question is not None and self.question.is_over(now):
            self.close()

    def refuse(self, sentence: str) -> None:
        self.model.refuse(sentence, self.clock.monotonic())


Answer: TypeAlias = Command[Situation, Asking]
"""A key that answers a question."""


def _never(_: Situation) -> bool:
    return False


def _ignore(_asking: Asking, _text: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Question:
    """Something that is asked at the foot of a view."""

    name: str
    _: KW_ONLY
    answers: tuple[Answer, ...]
    """The keys that only it has, the first answers it."""
    leave: str
    """What `esc` does: its label."""
    text: Callable[[Situation], tuple[str, str]] = lambda _: ("", "")
    """What is asked, and a remark."""
    rows: Callable[[Asking, Situation, int], tuple[Line, ...]] | None = None
    """All that stands there, in so many cells, where that is more than the text."""
    on_leave: Callable[[Asking], object] = Asking.close
    is_over: Callable[[Situation], bool] = _never
    """What it is about is gone."""
    field: Callable[[Model], Place] = lambda _: "nothing"
    """Where what is typed goes."""
    limit: int = REASON_LIMIT
    """Characters of the field."""
    typed: Callable[[Asking, str], object] = _ignore
    """What follows every change in the field."""

    @property
    def commands(self) -> tuple[Answer, ...]:
        leave = Answer(
            f"{self.name}_leave", ("escape",), self.leave, footer_rank=3, do=self.on_leave
        )
        answers = (self.answers[0], leave, *self.answers[1:])
        return tuple(replace(each, contexts=(self.name,), fixed=True) for each in answers)
