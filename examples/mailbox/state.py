"""What the mailbox holds, and the trouble that it was asked to make."""

import copy
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from examples.mailbox.mail import message_json, minimal, parse_raw, summary

__all__ = ["Draft", "State", "Trouble"]

OPS = frozenset({"get", "list", "send", "update", "create", "delete"})
_COMMANDS = frozenset(
    {"fail", "delay_seconds", "garbage", "hang", "lose_answer", "change_after", "change", "reset"}
)


@dataclass(slots=True, kw_only=True)
class Draft:
    """One draft; its message gets a new id with each change, as Gmail's do."""

    id: str
    mail: EmailMessage
    message_id: str
    thread_id: str

    def full(self) -> dict[str, Any]:
        """Return `format=full`."""
        message = message_json(self.mail, message_id=self.message_id, thread_id=self.thread_id)
        return {"id": self.id, "message": message}

    def brief(self) -> dict[str, Any]:
        """Return what lists and writes answer with."""
        return {"id": self.id, "message": minimal(self.full()["message"])}


@dataclass(slots=True, kw_only=True)
class Trouble:
    """Failures, delays, garbage, hanging, lost answers and changes, each for one op."""

    failures: list[dict[str, Any]] = field(default_factory=list)
    delays: dict[str, float] = field(default_factory=dict)
    garbage: set[str] = field(default_factory=set)
    hang: set[str] = field(default_factory=set)
    lose_answer: set[str] = field(default_factory=set)
    """Ops whose next answer is lost once what they ask for was done."""
    change_after: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What changes right after the next answer of an op."""

    def delay(self, op: str) -> float:
        """Return how many seconds *op* has to wait."""
        return self.delays.get(op, 0.0)

    def next_failure(self, op: str) -> int | None:
        """Return the status that *op* has to fail with now, and count it down."""
        for failure in self.failures:
            if failure["op"] == op and failure["times"] > 0:
                failure["times"] -= 1
                return int(failure["status"])
        return None


class State:
    """Drafts in order, sent mail, requests seen. Touched on the service's loop only."""

    def __init__(
        self,
        drafts: Iterable[tuple[str, EmailMessage]],
        on_sent: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        self._on_sent = on_sent
        self.drafts: dict[str, Draft] = {}
        self.sent: list[dict[str, Any]] = []
        self.requests: list[dict[str, str]] = []
        self.trouble = Trouble()
        self.closing = threading.Event()
        self._next_id = 0x19A4C0DE00000000
        self._next_draft = 8842200001
        for draft_id, mail in drafts:
            self._put(draft_id, mail)

    def search(self, query: str) -> list[Draft]:
        """Return the drafts that hold every word of *query*; `to:` and `subject:` look there only."""
        return [draft for draft in self.drafts.values() if _matches(draft, query)]

    def create(self, raw: str) -> Draft:
        """Add a draft and return it."""
        draft_id = f"r-{self._next_draft}"
        self._next_draft += 1
        rest, self.drafts = self.drafts, {}
        self._put(draft_id, parse_raw(raw))
        self.drafts |= rest
        return self.drafts[draft_id]

    def replace(self, draft_id: str, raw: str) -> None:
        """Give a draft another message in the same thread."""
        self._put(draft_id, parse_raw(raw))

    def send(self, draft_id: str) -> dict[str, Any] | None:
        """Move a draft to the sent mail; None if there is none."""
        draft = self.drafts.pop(draft_id, None)
        if draft is None:
            return None
        answer = {"id": self._new_id(), "threadId": draft.thread_id, "labelIds": ["SENT"]}
        self.sent.append({"draft_id": draft_id, **answer, **summary(draft.mail)})
        if self._on_sent is not None:
            self._on_sent(self.sent[-1])
        return answer

    def apply(self, commands: Mapping[str, Any]) -> None:
        """Do what `POST /_control` asks for: the names in `_COMMANDS`.

        Raises:
            ValueError, KeyError, TypeError: it is not understood.
        """
        if unknown := set(commands) - _COMMANDS:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        if commands.get("reset"):
            self.trouble = Trouble()
        if (fail := commands.get("fail")) is not None:
            entry = {"op": _op(fail["op"]), "status": int(fail["status"])}
            self.trouble.failures.append(entry | {"times": int(fail.get("times", 1))})
        if (delays := commands.get("delay_seconds")) is not None:
            named = delays if isinstance(delays, dict) else dict.fromkeys(OPS, delays)
            self.trouble.delays |= {_op(op): float(seconds) for op, seconds in named.items()}
        if (garbage := commands.get("garbage")) is not None:
            self.trouble.garbage.add(_op(garbage))
        if (hang := commands.get("hang")) is not None:
            self.trouble.hang.add(_op(hang))
        if (lost := commands.get("lose_answer")) is not None:
            self.trouble.lose_answer.add(_op(lost))
        if (after := commands.get("change_after")) is not None:
            self.trouble.change_after[_op(after["op"])] = after
        if (change := commands.get("change")) is not None:
            self._change(change)

    def answered(self, op: str) -> bool:
        """Do what is due after an answer of *op*; return whether the answer arrives."""
        if (change := self.trouble.change_after.pop(op, None)) is not None:
            self._change(change)
        arrives = op not in self.trouble.lose_answer
        self.trouble.lose_answer.discard(op)
        return arrives

    def to_json(self) -> dict[str, Any]:
        """Return sent mail, drafts and requests for a person or a test to look at."""
        drafts = [{"id": draft.id, **summary(draft.mail)} for draft in self.drafts.values()]
        return {"sent": self.sent, "drafts": drafts, "requests": self.requests}

    def _change(self, change: Mapping[str, Any]) -> None:
        draft = self.drafts[change["id"]]
        draft.mail = copy.deepcopy(draft.mail)
        for key in ("to", "cc", "bcc", "subject"):
            if key in change:
                del draft.mail[key]
                draft.mail[key.capitalize()] = str(change[key])
        if "body" in change:
            part = draft.mail.get_body(preferencelist=("plain",)) or draft.mail
            assert isinstance(part, EmailMessage)
            part.set_content(str(change["body"]))
        draft.message_id = self._new_id()

    def _put(self, draft_id: str, mail: EmailMessage) -> None:
        old = self.drafts.get(draft_id)
        message_id = self._new_id()
        thread_id = old.thread_id if old else message_id
        self.drafts[draft_id] = Draft(
            id=draft_id, mail=mail, message_id=message_id, thread_id=thread_id
        )

    def _new_id(self) -> str:
        self._next_id += 0x10001
        return f"{self._next_id:x}"


def _op(name: object) -> str:
    if name not in OPS:
        raise ValueError(f"op must be one of {', '.join(sorted(OPS))}")
    return str(name)


def _matches(draft: Draft, query: str) -> bool:
    shown = summary(draft.mail)
    for word in query.lower().split():
        key, _, rest = word.partition(":")
        places = [shown[key]] if rest and key in shown else list(shown.values())
        if not any((rest or word) in place.lower() for place in places):
            return False
    return True
