"""Intents that the core has not answered yet: until then their keys do nothing."""

from collections.abc import Hashable, Iterator

from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Acknowledge,
    AllowHost,
    Approve,
    Deny,
    EditCall,
    EndSession,
    Intent,
    WithdrawAcceptance,
)
from aileron_core.console_port.view_models import ApprovalView, SessionView

ACCEPTED_STATES = ("ready", "cannot_run")
"""States of an accepted file."""


def file_key(kind: str, name: str) -> str:
    """Return the key of a file that is or may be accepted, the same in every list."""
    return f"held:{kind}:{name}"


def suite_key(suite_id: str) -> str:
    """Return the key of the files that one `action add` brought."""
    return f"suite:{suite_id}"


def intent_key(intent: Intent) -> str | None:
    """Return the key of the row that *intent* is about; None where it is about none."""
    match intent:
        case Approve() | Deny() | EditCall():
            return intent.approval_id
        case Acknowledge():
            return intent.call_id
        case Accept() | WithdrawAcceptance():
            return file_key(intent.kind, intent.name)
        case AcceptSuite():
            return suite_key(intent.suite_id)
        case EndSession() | AllowHost():
            return intent.session_id
        case _:
            return None


class PendingIntents:
    """Intents by what they are about, each with the version that stood on screen."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[Intent, Hashable]] = {}

    def add(self, intent: Intent, version: Hashable) -> None:
        """Record that *intent*, about the content *version*, is on its way."""
        key = intent_key(intent)
        if key is not None:
            self._sent[key] = (intent, version)

    def get(self, key: str) -> Intent | None:
        sent = self._sent.get(key)
        return sent[0] if sent is not None else None

    def on_approval(self, view: ApprovalView, version: Hashable) -> None:
        """An approval was updated: intents about it are answered, unless a deny is being checked."""
        sent = self._sent.get(view.call_id)
        if sent is None or (view.state == "pending" and sent[1] == version):
            return
        if not (view.state == "checking" and isinstance(sent[0], Deny)):
            del self._sent[view.call_id]

    def take_finished_files(
        self, event: LibraryUpdated
    ) -> Iterator[Accept | AcceptSuite | WithdrawAcceptance]:
        """Yield the intents about files that *event* shows to be done."""
        yield from self._suites(event)
        waiting = {file_key(each.kind, each.name): each.digest for each in event.not_accepted}
        items = {file_key(each.kind, each.name): each for each in event.library}
        for key, (intent, _) in list(self._sent.items()):
            if not isinstance(intent, Accept | WithdrawAcceptance):
                continue
            item = items.get(key)
            if isinstance(intent, Accept):
                done = key not in waiting and (item is None or item.state in ACCEPTED_STATES)
                over = waiting.get(key) != intent.digest
            else:
                # A key that was withdrawn is no row any more: no file is the key.
                done = item.state == "held_back" if item else intent.kind == "publisher"
                over = item is None or item.state not in ACCEPTED_STATES
            if done:
                yield intent
            if done or over:
                del self._sent[key]

    def _suites(self, event: LibraryUpdated) -> Iterator[AcceptSuite]:
        """Yield the intents about suites of which no file waits any more with the digest that was shown."""
        waiting = {(each.file, each.digest) for each in event.not_accepted}
        for key, (intent, _) in list(self._sent.items()):
            if isinstance(intent, AcceptSuite) and waiting.isdisjoint(intent.files):
                del self._sent[key]
                yield intent

    def take_allowed_hosts(self, open_: tuple[SessionView, ...]) -> Iterator[AllowHost]:
        """Yield the intents to allow a host that is allowed now; those about ended sessions are dropped."""
        there = {each.session_id: each for each in open_}
        for key, (intent, _) in list(self._sent.items()):
            if not isinstance(intent, AllowHost):
                continue
            session = there.get(key)
            if session is None or intent.host in session.hosts.allowed:
                del self._sent[key]
                if session is not None:
                    yield intent

    def take_ended_sessions(self, open_: tuple[SessionView, ...]) -> Iterator[str]:
        """Yield the sessions that were to end and are not among the open ones any more."""
        there = {each.session_id for each in open_}
        for key, (intent, _) in list(self._sent.items()):
            if isinstance(intent, EndSession) and key not in there:
                del self._sent[key]
                yield key

    def on_refused(self, call_id: str) -> None:
        """Give the key back. A refusal that names no call is about whatever else is on its way."""
        if self._sent.pop(call_id, None) is not None:
            return
        for key, (intent, _) in list(self._sent.items()):
            if not isinstance(intent, Approve | Deny | Acknowledge):
                del self._sent[key]

    def clear(self) -> None:
        """Nothing will be answered any more."""
        self._sent.clear()
