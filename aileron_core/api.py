"""The core as a library: one home, agents' calls and a person's answers, in the process that imports it.

What `__all__` names is stable; of every other module nothing is promised. See docs/library.md.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aileron_core.app import App, AppOptions
from aileron_core.canonical import Json
from aileron_core.connectors.protocol import Route
from aileron_core.console_port.events import (
    ApprovalUpdated,
    AuditVerified,
    CoreEvent,
    RecordsRead,
)
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import AileronError, Conflict, NotFound
from aileron_core.home.layout import Home
from aileron_core.library.accepted_settings import load_policy
from aileron_core.server.agent_api import AgentApi, CallAnswer
from aileron_core.server.bodies import ResultBody
from aileron_core.sessions.model import Session
from aileron_core.settings import load_settings
from aileron_core.vault.secret import Secret

__all__ = [
    "AileronError",
    "ApprovalView",
    "AuditVerified",
    "CallAnswer",
    "Core",
    "CoreEvent",
    "CoreSession",
    "RecordsRead",
    "ResultBody",
    "Route",
    "Secret",
    "open_core",
]

_DAY = 86_400.0


@asynccontextmanager
async def open_core(
    home: Path,
    *,
    accept_installed: bool = False,
    routes: Sequence[Route] = (),
    passphrase: Secret | None = None,
) -> AsyncGenerator["Core"]:
    """Open a home, with its `config.toml` and `policy.toml`, for as long as the context lasts.

    No console can have it open meanwhile, and nothing listens for agents: their calls are made by `CoreSession.call`.

    Args:
        accept_installed: accept what is installed in the home unseen.
        routes: hosts whose requests go elsewhere, for tests.
        passphrase: unlocks the vault at the start; overwritten then.

    Raises:
        AileronError: the home is locked, foreign or damaged, or one of the two files cannot be used.
    """
    found = Home(home)
    options = AppOptions(
        routes=tuple(routes),
        accept_installed=accept_installed,
        settings=load_settings(found.config),
        policy=load_policy(found.policy),
        passphrase=passphrase,
    )
    async with App.open(found, options) as app:
        yield Core(app)


class Core:
    """An open home, for the loop that opened it. Whoever holds this answers as the person."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._agents = AgentApi(app)

    @asynccontextmanager
    async def session(self, agent: str, label: str = "") -> AsyncGenerator["CoreSession"]:
        """Open an agent's session under these names, and end it at last; what it asked for then still waits."""
        opened = await self._app.session_service.open(
            agent=agent,
            label=label,
            cwd=str(Path.cwd()),
            claimed_pid=None,
            peer_pid=os.getpid(),
            ttl=_DAY,
        )
        try:
            yield CoreSession(self._agents, opened.session)
        finally:
            await self._app.session_service.end(opened.session.session_id, "its program ended it")

    def waiting(self) -> tuple[ApprovalView, ...]:
        """Return the calls that nobody has answered, in order of arrival."""
        return tuple(view for view in self._app.publisher.approvals() if view.ended_at is None)

    async def preview(self, approval_id: str) -> ApprovalView:
        """Return a call once it can be answered: once its service has said what will happen, or did not.

        Raises:
            NotFound: there is no such call.
        """
        changed = asyncio.Event()
        stop = self.subscribe(lambda event: isinstance(event, ApprovalUpdated) and changed.set())
        try:
            while True:
                changed.clear()
                view = self._view(approval_id)
                if view.state != "pending" or (view.digest and view.preview.status != "fetching"):
                    return view
                await changed.wait()
        finally:
            stop()

    async def approve(self, approval_id: str, digest: str) -> None:
        """Say yes to exactly what has this `ApprovalView.digest`; it runs in the background.

        Raises:
            NotFound: there is no such call.
            Conflict: it was answered, its preview is not there yet, or it is no longer what has this digest.
        """
        await self._app.console.carry_out(Approve(approval_id=approval_id, digest=digest))

    async def deny(self, approval_id: str, digest: str, reason: str = "") -> None:
        """Say no to what has this digest; the agent reads *reason*, 2,000 characters at most.

        Raises:
            NotFound: there is no such call.
            Conflict: it was answered, or it is no longer what has this digest.
        """
        if self._view(approval_id).digest != digest:
            raise Conflict("The call changed while you answered. Nothing was decided.")
        await self._app.console.carry_out(Deny(approval_id=approval_id, reason=reason))

    def subscribe(self, listener: Callable[[CoreEvent], object]) -> Callable[[], None]:
        """Have *listener* called at once with every later event, and return what stops that.

        One that raises is dropped, and the log says where it failed.
        """
        return self._app.events.subscribe(listener)

    async def audit(self, before_seq: int | None = None, limit: int = 500) -> RecordsRead:
        """Return at most *limit* records (1,000 at most) before *before_seq*, or the newest.

        Raises:
            Unavailable: the database cannot be read.
        """
        return await self._app.audit.page(before_seq, limit)

    async def verify(self) -> AuditVerified:
        """Verify the record whole: its chain, its heads, and the rows that it is about.

        Raises:
            Conflict: it is being verified already.
            Unavailable: the database cannot be read.
        """
        return await self._app.audit.verify()

    def _view(self, approval_id: str) -> ApprovalView:
        run = self._app.registry.by_approval(approval_id)
        if run is None:
            raise NotFound(f"This core has no call {approval_id[:80]!r}.")
        return self._app.publisher.view(run)


@dataclass(frozen=True, slots=True)
class CoreSession:
    """An agent's side of an open home."""

    _agents: AgentApi
    _session: Session

    async def call(self, action: str, args: Json, *, key: str | None = None) -> CallAnswer:
        """Call an action: what runs without a person runs to its end, the rest is `pending_approval`.

        Args:
            key: calls with the same one are the same call.

        Raises:
            AileronError: it was refused, and nothing ran.
        """
        return await self._agents.run(self._session, action, args, idempotency_key=key)

    async def result(self, approval_id: str, *, wait: float = 0.0) -> ResultBody:
        """Return how one of this session's own calls stands, after its end or after *wait* seconds.

        Raises:
            NotFound: it is none of this session's.
        """
        return await self._agents.result(self._session, approval_id, wait=wait)

    async def withdraw(self, approval_id: str, reason: str = "") -> ResultBody:
        """Take back one of this session's own calls that still waits.

        Raises:
            NotFound: it is none of this session's.
            Conflict: it has begun or ended.
        """
        return await self._agents.withdraw(self._session, approval_id, reason)
