"""Augment mode of one console: what is kept of each session, and what is said of it once."""

import asyncio
import logging

from aileron_core.app import App
from aileron_core.errors import ModelFormatError
from aileron_core.ids import new_exchange_id
from aileron_core.models.format import read_request
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.augment.catalogue import Catalogue
from aileron_core.server.augment.conversations import Conversations
from aileron_core.server.augment.exchange import Exchange
from aileron_core.server.augment.limits import AugmentLimits
from aileron_core.server.augment.plans import Plan, make_plan
from aileron_core.server.augment.request_body import BufferedBodies
from aileron_core.server.augment.requests import FORMATS
from aileron_core.server.augment.tool_calls import ToolCaller
from aileron_core.server.gateway.augmenting import GatewaySide
from aileron_core.sessions.model import Session

_log = logging.getLogger(__name__)


class AugmentRoom:
    """Answers the requests of sessions in augment mode."""

    def __init__(self, app: App, agents: AgentApi) -> None:
        self._settings = app.options.settings
        self._agents = agents
        self.limits = AugmentLimits()
        self._buffered = BufferedBodies(self.limits.buffered_bytes)
        self._known: dict[str, dict[bytes, Conversations]] = {}
        """By session and wire format: what one format hides, another cannot be sent."""
        self._newest = Catalogue()
        self._said: set[tuple[str, str]] = set()

    def exchange(self, side: GatewaySide) -> Exchange:
        """Return what answers one request of an agent."""

        def plan(body: bytes | bytearray) -> Plan | None:
            return self._plan(side, body)

        def caller(made: Plan, over: asyncio.Event) -> ToolCaller:
            return ToolCaller(
                self._agents,
                side.session,
                made.catalogue,
                made.offer,
                hold_seconds=self._settings.hold_seconds,
                over=over,
                exchange=new_exchange_id(),
            )

        return Exchange(side, self.limits, self._buffered, plan, caller)

    def forget(self, session_id: str) -> None:
        """Keep nothing of a session that has ended."""
        self._known.pop(session_id, None)
        self._said = {each for each in self._said if each[0] != session_id}

    @property
    def session_ids(self) -> tuple[str, ...]:
        """The sessions of which something is kept."""
        return tuple(self._known)

    def _plan(self, side: GatewaySide, body: bytes | bytearray) -> Plan | None:
        session = side.session
        kept = self._known.setdefault(session.session_id, {})
        known = kept.setdefault(side.path, Conversations())
        names = [name.lower() for name, _ in side.client.headers]
        try:
            made = (
                "its body is compressed"
                if b"content-encoding" in names
                else make_plan(
                    FORMATS[side.path], read_request(body), known, lambda: self._fresh(session)
                )
            )
        except ModelFormatError:
            made = "it could not be read"
        if isinstance(made, str):
            self._say(session, f"A model request passed without Aileron's tools: {made}.")
            return None
        if made.note:
            self._say(session, f"A model request was changed or passed: {made.note}.")
        return made

    def _fresh(self, session: Session) -> Catalogue:
        items = self._agents.list_actions(session)["items"]
        made = Catalogue.of(items, self._settings.is_tool)
        # Each conversation keeps its own: equal ones are kept once.
        self._newest = self._newest if self._newest == made else made
        return self._newest

    def _say(self, session: Session, sentence: str) -> None:
        """Write a sentence of ours to the log, once for a session."""
        said = (session.session_id, sentence)
        if said not in self._said:
            self._said.add(said)
            _log.warning("session %s: %s", session.session_id, sentence)
