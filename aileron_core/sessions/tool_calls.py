"""Counting the tool calls of each session's model by name, and marking the calls that go around the gate.

Only with `[gateway] inspect`. Names, numbers and times are kept, nothing of arguments or texts.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.clock import Clock, parse_rfc3339, rfc3339
from aileron_core.console_port.view_models import ToolCallsView, UnreadReason, WentAroundView
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.sessions.traffic import SessionMeter
from aileron_core.storage.database import Database

MAX_NAMES: Final = 200
"""Names of one session that are counted apart; the calls of all others are counted together."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")
"""What is kept as a name: providers allow no more, and anything else might be text."""


@dataclass(slots=True)
class _Calls:
    """What was seen of one session."""

    by_name: dict[str, int] = field(default_factory=dict[str, int])
    others: int = 0
    unread: dict[UnreadReason, int] = field(default_factory=dict[UnreadReason, int])
    around: dict[str, float] = field(default_factory=dict[str, float])
    """Each tool that goes around the gate, and when it was called first."""
    unrecorded: list[str] = field(default_factory=list[str])
    """Those of them that are not on record yet."""


class ToolCallMeter(SessionMeter[_Calls]):
    """Counts tool calls by session; records are written by `sweep`. A mark is published at once.

    Args:
        inspects: whether answers of models are read at all.
    """

    def __init__(
        self,
        sessions: SessionRegistry,
        database: Database,
        clock: Clock,
        *,
        inspects: bool,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(sessions, database, clock, changed)
        self._inspects = inspects

    async def load(self) -> None:
        """Take over which of the open sessions went around the gate before this process."""
        first = {each.session_id: each.last_record for each in self._sessions.all()}
        if first:
            for session_id, tool, at in await self._database.read(lambda c: _marks(c, first)):
                self._of(session_id).around.setdefault(tool, at)

    def add(self, session_id: str, name: str) -> None:
        """Count a call of a tool by the session's model."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        calls = self._of(session_id)
        if _NAME.fullmatch(name) and (name in calls.by_name or len(calls.by_name) < MAX_NAMES):
            calls.by_name[name] = calls.by_name.get(name, 0) + 1
        else:
            calls.others += 1
        if name not in calls.around and goes_around(session.agent, session.terms.builtins, name):
            calls.around[name] = self._clock.now()
            calls.unrecorded.append(name)
            self._changed()
        else:
            self._notify_soon()

    def add_unread(self, session_id: str, reason: UnreadReason) -> None:
        """Count an answer that was not read, or not to its end."""
        if self._sessions.get(session_id) is not None:
            unread = self._of(session_id).unread
            unread[reason] = unread.get(reason, 0) + 1
            self._notify_soon()

    def view(self, session_id: str) -> ToolCallsView | None:
        """Return what was seen of a session; None if nothing is read and nothing was."""
        calls = self._by_session.get(session_id)
        if calls is None:
            return ToolCallsView() if self._inspects else None
        return ToolCallsView(
            by_name=tuple(sorted(calls.by_name.items())),
            others=calls.others,
            unread=tuple(sorted(calls.unread.items())),
            went_around=tuple(WentAroundView(tool, at) for tool, at in calls.around.items()),
        )

    def _of(self, session_id: str) -> _Calls:
        return self._by_session.setdefault(session_id, _Calls())

    async def sweep(self, *, everything: bool = False) -> None:
        """Put marks on record, and the counts of sessions that have ended; with *everything*, of all.

        Raises:
            StorageUnavailable: it could not be written, and stays due.
        """
        async with self._writing:
            for session_id, calls in tuple(self._by_session.items()):
                while calls.unrecorded:
                    await self._record_mark(session_id, calls, calls.unrecorded[0])
                    calls.unrecorded.pop(0)
                gone = self._sessions.get(session_id) is None
                if not gone and not everything:
                    continue
                if calls.by_name or calls.others or calls.unread:
                    await self._record_counts(session_id, calls)
                    calls.by_name, calls.others, calls.unread = {}, 0, {}
                if gone:
                    del self._by_session[session_id]

    async def _record_mark(self, session_id: str, calls: _Calls, tool: str) -> None:
        summary = "The model called a tool that does not go through the gate"
        extra: dict[str, Json] = {"tool": tool, "called_at": rfc3339(calls.around[tool])}
        await self._record(session_id, AuditEvent.SESSION_WENT_AROUND, summary, extra)

    async def _record_counts(self, session_id: str, calls: _Calls) -> None:
        summary = "The tool calls of the session's model were counted"
        extra: dict[str, Json] = {
            "calls": {**calls.by_name},
            "other_names": calls.others,
            "unread": {**calls.unread},
        }
        await self._record(session_id, AuditEvent.SESSION_CALLS_COUNTED, summary, extra)


def _marks(
    connection: sqlite3.Connection, first: dict[str, int]
) -> Iterable[tuple[str, str, float]]:
    rows = connection.execute(
        "SELECT json_extract(body, '$.session'), json_extract(body, '$.tool'), "
        "json_extract(body, '$.called_at') FROM audit "
        "WHERE seq > ? AND event = ? AND json_valid(body) ORDER BY seq",
        (min(first.values()), AuditEvent.SESSION_WENT_AROUND),
    )
    found: list[tuple[str, str, float]] = []
    for session_id, tool, at in rows:
        if session_id in first and isinstance(tool, str) and isinstance(at, str):
            try:
                found.append((session_id, tool, parse_rfc3339(at)))
            except ValueError:
                continue  # another program wrote it
    return found


@dataclass(frozen=True, slots=True)
class _OwnTools:
    """One agent's own tools."""

    writing: frozenset[str]
    """Those that write files or run commands."""
    reading: frozenset[str]
    """Others that a launch with `--intercept-builtins` switches off."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OWN_TOOLS: Final[Mapping[str, _OwnTools]] = MappingProxyType(
    {
        "codex": _OwnTools(
            # The last three are calls that the provider's own format has a kind for.
            _names(
                "apply_patch exec_command shell shell_command write_stdin "
                "apply_patch_call local_shell_call shell_call"
            ),
            _names("view_image"),
        ),
        "claude": _OwnTools(
            _names(
                "Bash Edit EnterWorktree ExitWorktree Monitor MultiEdit NotebookEdit PowerShell Workflow Write"
            ),
            _names("BashOutput Glob Grep KillShell LSP NotebookRead Read"),
        ),
        "opencode": _OwnTools(
            _names("apply_patch bash edit multiedit patch write"),
            _names("glob grep list lsp read"),
        ),
        "goose": _OwnTools(
            _names(
                "apps__create_app apps__delete_app apps__iterate_app developer__shell developer__text_editor "
                "edit shell text_editor write"
            ),
            _names(
                "analyze apps__list_apps delegate extensionmanager__list_resources "
                "extensionmanager__manage_extensions extensionmanager__read_resource "
                "extensionmanager__search_available_extensions load tree"
            ),
        ),
        "pi": _OwnTools(_names("bash edit powershell write"), _names("find grep ls read")),
    }
)
"""Of the agents whose models answer in a format that Aileron reads."""


def goes_around(agent: str, builtins: str, name: str) -> bool:
    """Return whether a call of the tool *name* is one of the agent's own that should have come to the gate.

    That is so of each tool that writes files or runs commands, and with `--intercept-builtins`
    (*builtins* is `instead`) of each that was switched off. Aileron's tools have a prefix in each of
    these agents, so none of theirs is called like one of ours.
    """
    found = _OWN_TOOLS.get(agent)
    if found is None:
        return False
    return name in found.writing or (builtins == "instead" and name in found.reading)
