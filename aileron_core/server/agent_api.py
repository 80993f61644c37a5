"""The operations of an agent's session, as values: the one way from an agent to the gate.

The HTTP routes and the MCP server both call `AgentApi`; each only reads requests and writes answers.
A run becomes the body of a route here: what an agent is told of a call.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from aileron_core.actions.model import Action, is_builtin
from aileron_core.app import App
from aileron_core.canonical import Json
from aileron_core.clock import rfc3339
from aileron_core.console.device_service import LINK_KEY
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.console_port.events import CoreEvent, LibraryUpdated
from aileron_core.errors import Conflict, Failure, NotFound, Unauthorized
from aileron_core.ids import APPROVAL_ID
from aileron_core.runs.account_waits import WAITS
from aileron_core.runs.gate import Call
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.server.bodies import (
    ActionBody,
    ActionsBody,
    AgentStatus,
    CompletedBody,
    EditedBody,
    FailureBody,
    PendingBody,
    ResultBody,
    action_body,
    load_error,
)
from aileron_core.sessions.model import Session
from aileron_core.tasks import spawn
from aileron_core.tracing.spans import RemoteSpan


def agent_status(row: RunRecord) -> AgentStatus:
    """Return the state as an agent may know it: pending until it is final."""
    return cast("AgentStatus", str(row.state)) if row.state in FINAL else "pending_approval"


def completed_body(row: RunRecord, *, of_server: bool = False) -> CompletedBody:
    """Return what a run returned; *of_server*: as a tool of an MCP server."""
    output, steps = _outputs(row)
    body: CompletedBody = {"status": "completed", "audit_id": row.run_id, "output": output}
    if steps is not None:
        body["steps"] = steps
    if is_builtin(row.action):
        body["action"] = row.action
    if of_server:
        body["of_server"] = True
    if row.words:
        body["digest_words"] = row.words
    if (edited := _edited(row)) is not None:
        body["edited_by_person"] = edited
    return body


def _edited(row: RunRecord) -> EditedBody | None:
    """Return what a person changed; of a call that they did not approve, the agent learns nothing of that."""
    approved = row.state in FINAL - {RunState.DENIED} and row.decided_by is not None
    if not approved or row.args is None or not row.edited_names:
        return None
    return {"changed": row.edited_names, "args": row.args}


def _outputs(row: RunRecord) -> tuple[Json, Mapping[str, Json] | None]:
    """Return what the run returned, and each step's own output where there are several."""
    outputs = row.output or {}
    steps = outputs.get("steps")
    if not isinstance(steps, Mapping) or len(steps) < 2:
        steps = None
    return outputs.get("output"), steps


def waits_for(row: RunRecord, need: AccountNeed | None) -> str:
    """Return what an open call waits for; *need*: why it cannot begin yet."""
    if row.state is RunState.AWAITING_VAULT:
        return WAITS[need.reason if need is not None else "locked"]
    return "a person's approval" if row.gated else "its end"


def pending_body(
    row: RunRecord,
    url: str,
    *,
    attached: bool,
    need: AccountNeed | None = None,
    link_key: str = LINK_KEY,
    is_listed: bool = True,
) -> PendingBody:
    """Return who must decide, where, and what to do meanwhile.

    Args:
        attached: the call was attached to an approval that was asked for before.
        need: why it cannot begin yet.
        link_key: the console's key that pairs a browser.
        is_listed: a person is asked; else that depends on what its preview shows.
    """
    assert row.approval_id is not None
    review = f"{url}/review/{row.approval_id}"
    what = waits_for(row, need)
    return {
        "status": "pending_approval",
        "approval_id": row.approval_id,
        "review_url": review,
        "message": _pending_message(row, review, what, link_key, attached=attached)
        if is_listed
        else f"Aileron looks at what {row.action_name} would do; a person may have to approve it. Call "
        "check_action_status with this approval_id until it has ended.",
        "audit_id": row.run_id,
        "expires_at": None if row.expires_at is None else rfc3339(row.expires_at),
        "waits_for": what,
    }


def _pending_message(
    row: RunRecord, review: str, what: str, link_key: str, *, attached: bool
) -> str:
    again = "The same call is already open, so this is its approval. " if attached else ""
    if row.state in FINAL:
        return (
            f"{again}It has ended. Call check_action_status with this approval_id to get its "
            "result."
        )
    if row.state is RunState.AWAITING_VAULT:
        return (
            f"{again}{row.action_name} waits for {what}, in the Aileron console. "
            f"{'A person has to approve it after that' if row.gated else 'Then it runs without approval'}. "
            f"Tell the user: it waits there as {row.approval_id} ({review}). Then call "
            "check_action_status with this approval_id until it has ended."
        )
    return (
        f"{again}A person must approve {row.action_name} in the Aileron console before it runs. "
        f"Tell the user that it waits there as {row.approval_id}, where the key {link_key} lets a browser "
        f"decide it too ({review}, or run `aileron open approval {row.approval_id}`). Then call "
        "check_action_status with this approval_id until it has ended."
    )


def result_body(
    row: RunRecord, need: AccountNeed | None = None, *, of_server: bool = False
) -> ResultBody:
    """Return how an approval stands; *need*: why it cannot begin yet, *of_server*: as of `completed_body`."""
    assert row.approval_id is not None
    body: ResultBody = {
        "status": agent_status(row),
        "approval_id": row.approval_id,
        "action": row.action,
        "audit_id": row.run_id,
        "requested_at": rfc3339(row.requested_at),
        "expires_at": None if row.expires_at is None else rfc3339(row.expires_at),
    }
    if row.progress is not None:
        body["completed_steps"] = list(row.progress.steps)
    if row.state is RunState.COMPLETED:
        body["output"], steps = _outputs(row)
        if steps is not None:
            body["steps"] = steps
        if of_server:
            body["of_server"] = True
    elif row.state is RunState.DENIED:
        body["reason"] = row.reason
    elif row.state in (RunState.FAILED, RunState.UNKNOWN):
        body["failure"] = cast("FailureBody", row.failure.to_json()) if row.failure else None
    if row.state not in FINAL:
        body["waits_for"] = waits_for(row, need)
    elif row.words:
        body["digest_words"] = row.words
    if (edited := _edited(row)) is not None:
        body["edited_by_person"] = edited
    return body


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
