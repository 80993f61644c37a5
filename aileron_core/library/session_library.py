"""The gate's library: the files of the home that a person accepted, and what each session has besides."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aileron_core.actions.model import Action, ConnectorIdentity, is_builtin
from aileron_core.connectors.builtin.channel import ToolChannels
from aileron_core.connectors.builtin.connector import FQN, BuiltinConnector
from aileron_core.connectors.builtin.tools import builtin_actions
from aileron_core.connectors.protocol import Connector
from aileron_core.errors import Conflict, NotFound
from aileron_core.library.home_library import HomeLibrary
from aileron_core.runs.interfaces import ResolvedAction
from aileron_core.settings import Rehearse


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLibrary:
    """The library of *home*, and the tools that single sessions have besides."""

    home: HomeLibrary
    channels: ToolChannels
    has_tools: Callable[[str], bool]
    """Whether the session with this id was launched with built-in tools."""
    plugin_tools: Callable[[str], Sequence[str]]
    """The ops of connectors, as `<plugin>.<op>`, that the open session with this id was launched with."""
    guard: Callable[[Connector], Connector]
    """Gives what a run calls in place of a connector."""
    rehearse: Callable[[], Rehearse]
    """Which commands are rehearsed now."""

    def find(self, name: str, session_id: str = "") -> ResolvedAction:
        """Return the accepted action, or the session's own tool, *name*.

        Raises:
            NotFound: there is none, or this session has no built-in tools.
            Conflict: it, or a connector of it, is not accepted or broken.
        """
        if not is_builtin(name):
            return (
                self.home.find_op(name)
                if name in self.plugin_tools(session_id)
                else self.home.find(name)
            )
        action = builtin_actions().get(name)
        if action is None or (session_id and not self.has_tools(session_id)):
            raise NotFound(f"This session has no tool {name[:80]!r}. List the tools again.")
        return ResolvedAction(action=action, connectors=self.connectors(session_id))

    def connectors(
        self,
        session_id: str,
        excluded: Sequence[str] = (),
        known: Mapping[str, Any] | None = None,
    ) -> Mapping[str, Connector]:
        """Return the connector of a call by *session_id*, by its FQN.

        Args:
            excluded: what a search leaves out (`path_patterns.HiddenPaths`).
            known: what the session's worker said that the call is about; nothing else is read or run.
        """
        channel = self.channels.get(session_id) if session_id else None
        connector = BuiltinConnector(
            channel, excluded=excluded, known=known or {}, rehearse=self.rehearse()
        )
        return {FQN: self.guard(connector)}

    def tools(self, session_id: str) -> tuple[Action, ...]:
        """Return the tools that the session has besides the accepted actions."""
        found = list(builtin_actions().values()) if self.has_tools(session_id) else []
        for name in self.plugin_tools(session_id):
            with suppress(Conflict):  # its connector is not accepted any more
                found.append(self.home.find_op(name).action)
        return tuple(found)

    def accepted_reads(self, identity: ConnectorIdentity, op: str) -> Mapping[str, str]:
        return {} if identity.fqn == FQN else self.home.accepted_reads(identity, op)

    async def offer_read(self, identity: ConnectorIdentity, read: str) -> bool:
        return identity.fqn != FQN and await self.home.offer_read(identity, read)

    async def changed_since(self, resolved: ResolvedAction) -> str:
        """Return what differs on disk, or ''; built-in tools are part of the program."""
        return "" if is_builtin(resolved.action.name) else await self.home.changed_since(resolved)
