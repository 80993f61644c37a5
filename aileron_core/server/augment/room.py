"""Augment mode of one console: what is kept of each session, and what is said of it once."""

import asyncio
import logging
import re
from typing import Any

from aileron_core.actions.model import Action
from aileron_core.app import App
from aileron_core.audit.events import AuditEvent
from aileron_core.errors import AileronError, ModelFormatError
from aileron_core.ids import new_exchange_id
from aileron_core.models import BY_PATH
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.augment.catalogue import Catalogue
from aileron_core.server.augment.conversations import Conversations
from aileron_core.server.augment.exchange import Exchange
from aileron_core.server.augment.limits import AugmentLimits, beside_if_large
from aileron_core.server.augment.plans import Plan, make_plan, read_request
from aileron_core.server.augment.tool_calls import Report, ToolCaller
from aileron_core.server.gateway.augmenting import UNRECORDED, GatewaySide
from aileron_core.server.gateway.key_injection import is_encoded
from aileron_core.server.gateway.providers import GatewayError
from aileron_core.server.shares import Shares
from aileron_core.sessions.model import Session

_log = logging.getLogger(__name__)
_PLAIN = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_MOST_NAMES = 64


class AugmentRoom:
    """Answers the requests of sessions in augment mode."""

    def __init__(self, app: App, agents: AgentApi) -> None:
        self._settings = app.options.settings
        self._sessions = app.session_service
        self._agents = agents
        self.limits = AugmentLimits()
        self._buffered = Shares(self.limits.buffered_bytes)
        self._known: dict[str, dict[bytes, Conversations]] = {}
        """By session and wire format: what one format hides, another cannot be sent."""
        self._newest_of: tuple[Action, ...] = ()
        self._newest = Catalogue.of((), self._settings.is_tool)
        self._said: set[tuple[str, str]] = set()

    def exchange(self, side: GatewaySide) -> Exchange:
        """Return what answers one request of an agent."""

        async def plan(body: bytes | bytearray | None) -> Plan | None:
            return await self._plan(side, body)

        def caller(made: Plan, over: asyncio.Event, report: Report | None) -> ToolCaller:
            return ToolCaller(
                agents=self._agents,
                session=side.session,
                catalogue=made.catalogue,
                offer=made.offer,
                hold_seconds=self._settings.hold_seconds,
                over=over,
                exchange=new_exchange_id(),
                report=report,
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

    async def _plan(self, side: GatewaySide, body: bytes | bytearray | None) -> Plan | None:
        session = side.session
        kept = self._known.setdefault(session.session_id, {})
        known = kept.setdefault(side.path, Conversations())
        made: Plan | str
        if body is None:
            made = f"its body is over {self.limits.request_bytes >> 20} MiB"
        elif is_encoded(side.client.headers):
            made = "its body is compressed"
        else:
            try:
                format_ = BY_PATH[side.path]
                asked = await beside_if_large(len(body), read_request, format_, body)
                if side.client.disconnected:
                    return None
                made = make_plan(asked, known, lambda: self._fresh(session))
            except ModelFormatError:
                made = "it could not be read"
        reason = made if isinstance(made, str) else made.reason
        if reason:
            await self._say_once(
                session,
                AuditEvent.SESSION_NOT_AUGMENTED,
                f"A model request passed without Aileron's tools: {reason}",
                {"reason": reason},
            )
        if isinstance(made, str):
            return None
        if made.offer.renamed:
            names = [name for name in made.offer.renamed if _PLAIN.fullmatch(name)]
            await self._say_once(
                session,
                AuditEvent.SESSION_TOOLS_RENAMED,
                "Tools of the agent begin with aileron_: to its model, their names begin with agent_aileron_",
                {"tools": names[:_MOST_NAMES], "count": len(made.offer.renamed)},
            )
        return made

    def _fresh(self, session: Session) -> Catalogue:
        actions = self._agents.accepted_actions(session)
        if actions != self._newest_of:  # each conversation keeps its own: equal ones are kept once
            self._newest_of = actions
            self._newest = Catalogue.of(actions, self._settings.is_tool)
        return self._newest

    async def _say_once(
        self, session: Session, event: AuditEvent, sentence: str, extra: dict[str, Any]
    ) -> None:
        """Put a sentence on record and into the log, once for a session.

        Raises:
            GatewayError: it could not be put on record.
        """
        said = (session.session_id, sentence)
        if said in self._said:
            return
        self._said.add(said)
        try:
            await self._sessions.record(event, sentence, session.session_id, extra)
        except AileronError:
            self._said.discard(said)
            raise GatewayError("unavailable", UNRECORDED) from None
        _log.warning("session %s: %s.", session.session_id, sentence)
