"""The operations of an agent's session, as values: the one way from an agent to the gate.

The HTTP routes and the MCP server both call `AgentApi`; each only reads requests and writes answers.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from aileron_core.actions.model import Action
from aileron_core.app import App
from aileron_core.canonical import Json
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.console_port.events import CoreEvent, LibraryUpdated
from aileron_core.errors import Conflict, Failure, NotFound, Unauthorized
from aileron_core.ids import APPROVAL_ID
from aileron_core.runs.gate import Call
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.server.bodies import (
    ActionBody,
    ActionsBody,
    CompletedBody,
    PendingBody,
    ResultBody,
    action_body,
    load_error,
)
from aileron_core.server.responses import completed_body, pending_body, result_body
from aileron_core.sessions.model import Session
from aileron_core.tasks import spawn
from aileron_core.tracing.spans import RemoteSpan

Claims: TypeAlias = tuple[tuple[str, str], ...]
"""(our label, the client's text), bounded; the text is as hostile as any."""

_MOST = 8
_LONGEST = 512
"""Characters of one text; of a longer one the beginning is kept, and how long it was."""
CallAnswer: TypeAlias = CompletedBody | PendingBody | Failure
"""`Failure`: an ungated run that failed after it was put on record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientClaims:
    """What a client claims about itself, and about one call."""

    client: Claims = ()
    call: Claims = ()
    parent: RemoteSpan | None = None
    """Of the call, in the client's own trace."""


NO_CLAIMS = ClientClaims()


def bounded_claims(texts: Mapping[str, str]) -> Claims:
    """Return the first eight of *texts*, each as it can be put on record."""
    return tuple((label, _bounded(text)) for label, text in list(texts.items())[:_MOST])


def _bounded(text: str) -> str:
    # A lone surrogate is not text, and could not be put on record.
    whole = text.encode("utf-8", "backslashreplace").decode()
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[:_LONGEST]}… ({len(whole)} characters)"


class AgentApi:
    """The agents' side of *app*. A session that has ended can withdraw, and nothing else.

    Attributes:
        draining: set once the server is stopping; from then on nothing waits for a person.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self.draining = asyncio.Event()

    def authenticate(self, token: str) -> Session | None:
        return self._app.sessions.authenticate(token)

    def session(self, session_id: str) -> Session | None:
        """Return the session with this id, if it is open."""
        return self._app.sessions.get(session_id)

    def list_actions(
        self, session: Session | None = None, claims: ClientClaims = NO_CLAIMS
    ) -> ActionsBody:
        """Return the accepted actions, and what is wrong with the others.

        Args:
            session: who asks; None for the person's own command line.
            claims: what its client claims about itself.

        Raises:
            Unauthorized: the session has ended.
        """
        if session is not None:
            self._require_open(session)
            self._note_client(session, claims)
        return {
            "items": [action_body(action) for action in self.accepted_actions(session)],
            "load_errors": [load_error(problem) for problem in self._app.library.problems()],
        }

    def accepted_actions(self, session: Session | None) -> tuple[Action, ...]:
        """Return what *session* can call, its own tools first."""
        tools = self._app.session_library.tools(session.session_id) if session is not None else ()
        # An action that was accepted since the launch does not push out a tool of the session's.
        own = {action.tool_name for action in tools}
        ready = self._app.library.ready()
        return (*tools, *(action for action in ready if action.tool_name not in own))

    def action(self, name: str) -> ActionBody:
        """Return one accepted action.

        Raises:
            NotFound: there is none of this name.
        """
        for action in self._app.library.ready():
            if action.name == name:
                return action_body(action)
        raise NotFound(
            f"There is no accepted action {name[:80]!r}. `aileron action list` lists all action files."
        )

    def watch_actions(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call *changed* whenever what sessions have as tools differs; return a function that stops it."""
        known = self._accepted()

        def on_event(event: CoreEvent) -> None:
            nonlocal known
            if isinstance(event, LibraryUpdated) and (now := self._accepted()) != known:
                known = now
                changed()

        return self._app.events.subscribe(on_event)

    def _accepted(self) -> tuple[tuple[str, str], ...]:
        library = self._app.library
        actions = tuple((action.name, action.sha256) for action in library.ready())
        if not any(session.terms.plugin_tools for session in self._app.sessions.all()):
            return actions
        connectors = (each.identity for each in library.accepted_connectors())
        return (*actions, *((each.ref, each.hash) for each in connectors))

    async def run(
        self,
        session: Session,
        action: str,
        args: Json,
        *,
        idempotency_key: str | None = None,
        claims: ClientClaims = NO_CLAIMS,
    ) -> CallAnswer:
        """Run an action to its end; one that a person has to approve is left pending.

        A cancelled caller does not stop the run.

        Raises:
            AileronError: it was refused (`Gate.run` has the list); nothing ran.
        """
        self._require_open(session)
        self._note_client(session, claims)
        call = Call(
            session=session,
            action=action,
            args=args,
            idempotency_key=idempotency_key,
            claims=(*claims.client, *claims.call),
            parent=claims.parent,
        )
        answer = await self._app.gate.run(call)
        row = answer.row
        if row.state is RunState.COMPLETED:
            await self._app.approvals.mark_delivered(row.approval_id)
            return completed_body(row, of_server=self._app.library.is_server_tool(row.action))
        if row.approval_id is not None:
            run = self._app.registry.by_approval(row.approval_id)
            return pending_body(
                row,
                self._app.address.url,
                attached=answer.attached,
                need=self._need(row),
                link_key=self._app.devices.link_key,
                is_listed=run is None or not run.is_in_background,
            )
        if row.failure is None:
            raise Conflict(
                f"{row.run_id} ended as {row.state}, and its details have been deleted. Nothing ran "
                "again. To call the action again, use a new idempotency key.",
                details={"outcome": str(row.state)},
            )
        return row.failure

    async def result(
        self,
        session: Session,
        approval_id: str,
        *,
        wait: float = 0.0,
        gone: asyncio.Event | None = None,
        deliver: bool = True,
    ) -> ResultBody:
        """Return the state of one of the session's own approvals.

        Args:
            wait: seconds to wait for its end; less if the server is stopping.
            gone: set once the client has disconnected, which ends the wait too.
            deliver: whether a final result that is returned counts as delivered to the agent.

        Raises:
            Unauthorized: the session has ended.
            NotFound: unknown, or another session's.
        """
        self._require_open(session)
        _check_id(approval_id)
        row = await self._app.approvals.wait_for_result(session.session_id, approval_id, 0)
        if row.state not in FINAL and wait > 0:
            row = await self._wait(row, session, approval_id, wait, gone or asyncio.Event())
        connected = gone is None or not gone.is_set()
        if row.state in FINAL and deliver and connected:
            await self._app.approvals.mark_delivered(approval_id)
        of_server = self._app.library.is_server_tool(row.action)
        return result_body(row, self._need(row), of_server=of_server)

    def _need(self, row: RunRecord) -> AccountNeed | None:
        run = self._app.registry.by_approval(row.approval_id) if row.approval_id else None
        return run.account_need if run is not None else None

    async def _wait(
        self,
        row: RunRecord,
        session: Session,
        approval_id: str,
        seconds: float,
        gone: asyncio.Event,
    ) -> RunRecord:
        """Return the run once it has ended, or in its present state once something else ends the wait."""
        approvals = self._app.approvals
        end = spawn(
            approvals.wait_for_result(session.session_id, approval_id, seconds),
            name="wait for a decision",
        )
        others = [spawn(event.wait(), name="end of a wait") for event in (gone, self.draining)]
        with self._app.publisher.waiters.waiting(approval_id):
            try:
                await asyncio.wait([end, *others], return_when=asyncio.FIRST_COMPLETED)
                return end.result() if end.done() else row
            finally:
                for task in (end, *others):
                    task.cancel()

    async def withdraw(self, session: Session, approval_id: str, reason: str = "") -> ResultBody:
        """Withdraw one of the session's own approvals, also once it has ended: nobody waits for it then.

        Raises:
            NotFound: unknown, or another session's.
            Conflict: it has begun or ended.
        """
        _check_id(approval_id)
        row = await self._app.approvals.withdraw(session.session_id, approval_id, reason)
        return result_body(row)

    def _require_open(self, session: Session) -> None:
        # Checked again each time: a held call outlives the check at the start of its request.
        if self.session(session.session_id) is None:
            raise Unauthorized("This session has ended.")

    def _note_client(self, session: Session, claims: ClientClaims) -> None:
        if claims.client:
            self._app.session_service.set_claims(session.session_id, claims.client)


def _check_id(approval_id: str) -> None:
    if not APPROVAL_ID.fullmatch(approval_id):
        raise NotFound(f"This session has no approval {approval_id[:40]}.")
