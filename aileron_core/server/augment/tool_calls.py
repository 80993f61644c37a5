"""Making a model's calls of our tools: each goes to the gate as its session's, and comes back as a result."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from aileron_core.canonical import JsonObject
from aileron_core.errors import AileronError, Failure, InvalidArguments, ModelFormatError
from aileron_core.models.neutral import ToolCall, ToolResult
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.conversations import CallBatch
from aileron_core.server.bodies import PendingBody, ResultBody
from aileron_core.server.error_responses import failure_from
from aileron_core.server.tool_results import (
    CHECK_ACTION_STATUS,
    WITHDRAW_ACTION,
    approval_result,
    error_result,
    own_part,
    parse_status_query,
    plain_text,
    run_result,
    status_of,
    withdrawal_result,
)
from aileron_core.server.tool_results import ToolResult as FullResult
from aileron_core.sessions.model import Session

Report: TypeAlias = Callable[[dict[str, str]], None]
_LONGEST = 24 * 3600.0
"""Seconds: the request that it is held for ends before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """Makes calls in the name of one session."""

    agents: AgentApi
    session: Session
    catalogue: Catalogue
    offer: Offer
    hold_seconds: float
    """How long a call is held for a person, unless it is reported."""
    over: asyncio.Event
    """Set once nobody waits for a decision any more; what runs still runs to its end."""
    exchange: str
    """Names the request that the calls belong to; no other has this name."""
    report: Report | None
    """Is told of each call how it stands. Then a person is there to see it: a call is held until it is
    decided, and withdrawn where nobody waits for it any more."""

    async def make(self, calls: Sequence[ToolCall], turn: int) -> CallBatch:
        """Make *calls* side by side; one that waits for a person is held, then answered as pending."""
        made = await asyncio.gather(
            *(
                self._made(call, f"{self.exchange}-{turn}-{number}")
                for number, call in enumerate(calls)
            )
        )
        results = [
            ToolResult(call_id=call.id, text=self._text(result), is_error=bool(result["isError"]))
            for call, result in zip(calls, made, strict=True)
        ]
        ran = [_line(call, result) for call, result in zip(calls, made, strict=True)]
        return CallBatch(results=tuple(results), ran=tuple(ran))

    async def _made(self, call: ToolCall, key: str) -> FullResult:
        try:
            arguments = cast("JsonObject", call.parsed_arguments())
            return await self._answered(self.offer.names[call.name], arguments, key)
        except ModelFormatError as error:
            return error_result(InvalidArguments(error.message).to_failure())
        except Exception as error:  # noqa: BLE001 - the edge to the agent
            return error_result(failure_from(error))

    async def _answered(self, tool: str, arguments: JsonObject, key: str) -> FullResult:
        if tool == CHECK_ACTION_STATUS:
            query = parse_status_query(arguments, may_wait=True)
            body = await self.agents.result(
                self.session,
                query.approval_id,
                wait=float(query.wait_seconds),
                gone=self.over,
            )
            return approval_result(body)
        if tool == WITHDRAW_ACTION:
            query = parse_status_query(arguments, may_wait=False)
            return withdrawal_result(await self.agents.withdraw(self.session, query.approval_id))
        action = self.catalogue.actions[tool]
        self._tell(key, action, "unknown")  # until more is known of it
        try:
            answer = await self.agents.run(self.session, action, arguments, idempotency_key=key)
        except Exception as error:
            failure = failure_from(error)
            self._tell(key, action, status_of(failure.class_), failure.audit_id)
            raise
        if isinstance(answer, Failure):
            self._tell(key, action, status_of(answer.class_), answer.audit_id)
            return run_result(answer)
        if answer["status"] == "completed":
            self._tell(key, action, answer["status"], answer["audit_id"])
            return run_result(answer)
        self._tell(key, action, answer["status"], answer["approval_id"])
        body = await self._held(answer)
        if body is None:
            return run_result(answer)
        self._tell(key, action, body["status"], body["audit_id"])
        return approval_result(body, answer)

    async def _held(self, pending: PendingBody) -> ResultBody | None:
        """Return how a call ended that waits for a person, or that it waits; None where that cannot be said."""
        id_, is_reported = pending["approval_id"], self.report is not None
        body: ResultBody | None = None
        with contextlib.suppress(AileronError):  # the request stands all the same
            wait = _LONGEST if is_reported else self.hold_seconds
            body = await self.agents.result(self.session, id_, wait=wait, gone=self.over)
        if is_reported and (body is None or body["status"] == pending["status"]):
            with contextlib.suppress(AileronError):  # it was decided at this moment
                body = await self.agents.withdraw(
                    self.session, id_, "Nobody waits for it any more."
                )
        return body

    def _tell(self, call: str, action: str, status: str, id_: str | None = None) -> None:
        if self.report is not None:
            self.report({"call": call, "action": action, "status": status, "id": id_ or ""})

    def _text(self, result: FullResult) -> str:
        text = plain_text(result)
        if own_part(result).get("status") == "pending_approval":
            # All of it is ours; it names a tool that may have another name here.
            for name, own in self.offer.names.items():
                if own == CHECK_ACTION_STATUS and name != own:
                    text = text.replace(own, name)
        return text


def _line(call: ToolCall, result: FullResult) -> str:
    content = own_part(result)
    status = content.get("status", "completed")
    approval = content.get("approval_id")
    waits = f" (approval_id {approval})" if status == "pending_approval" and approval else ""
    return f"{call.name}: {status}{waits}"
