"""Making a model's calls of our tools: each goes to the gate as its session's, and comes back as a result."""

import asyncio
from collections.abc import Sequence
from typing import cast

from aileron_core.canonical import JsonObject
from aileron_core.errors import AileronError, Failure, InvalidArguments, ModelFormatError
from aileron_core.models.neutral import ToolCall, ToolResult
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.conversations import CallBatch
from aileron_core.server.bodies import PendingBody
from aileron_core.server.error_responses import failure_from
from aileron_core.server.tool_results import (
    CHECK_ACTION_STATUS,
    WITHDRAW_ACTION,
    approval_result,
    error_result,
    parse_status_query,
    run_result,
    withdrawal_result,
)
from aileron_core.server.tool_results import ToolResult as FullResult
from aileron_core.sessions.model import Session


class ToolCaller:
    """Makes calls in the name of one session.

    Args:
        hold_seconds: how long a call is held for a person.
        over: set once nobody waits for a decision any more; what runs still runs to its end.
        exchange: names the request that the calls belong to; no other has this name.
    """

    def __init__(
        self,
        agents: AgentApi,
        session: Session,
        catalogue: Catalogue,
        offer: Offer,
        *,
        hold_seconds: float,
        over: asyncio.Event,
        exchange: str,
    ) -> None:
        self._agents = agents
        self._session = session
        self._actions = catalogue.actions
        self._offer = offer
        self._hold_seconds = hold_seconds
        self._over = over
        self._exchange = exchange

    async def make(self, calls: Sequence[ToolCall], turn: int) -> CallBatch:
        """Make *calls* side by side; one that waits for a person is held, then answered as pending."""
        made = await asyncio.gather(
            *(
                self._made(call, f"{self._exchange}-{turn}-{number}")
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
            return await self._answered(self._offer.names[call.name], arguments, key)
        except ModelFormatError as error:
            return error_result(InvalidArguments(error.message).to_failure())
        except Exception as error:  # noqa: BLE001 - the edge to the agent
            return error_result(failure_from(error))

    async def _answered(self, tool: str, arguments: JsonObject, key: str) -> FullResult:
        if tool == CHECK_ACTION_STATUS:
            query = parse_status_query(arguments, may_wait=True)
            body = await self._agents.result(
                self._session,
                query.approval_id,
                wait=float(query.wait_seconds),
                gone=self._over,
            )
            return approval_result(body)
        if tool == WITHDRAW_ACTION:
            query = parse_status_query(arguments, may_wait=False)
            return withdrawal_result(await self._agents.withdraw(self._session, query.approval_id))
        answer = await self._agents.run(
            self._session, self._actions[tool], arguments, idempotency_key=key
        )
        if isinstance(answer, Failure) or answer["status"] == "completed":
            return run_result(answer)
        return await self._held(answer)

    async def _held(self, pending: PendingBody) -> FullResult:
        try:
            body = await self._agents.result(
                self._session, pending["approval_id"], wait=self._hold_seconds, gone=self._over
            )
        except AileronError:  # the console cannot say now; the request stands all the same
            return run_result(pending)
        return approval_result(body, pending)

    def _text(self, result: FullResult) -> str:
        text = "\n".join(str(part["text"]) for part in result["content"])
        if result.get("structuredContent", {}).get("status") == "pending_approval":
            # All of it is ours; it names a tool that may have another name here.
            for name, own in self._offer.names.items():
                if own == CHECK_ACTION_STATUS and name != own:
                    text = text.replace(own, name)
        return text


def _line(call: ToolCall, result: FullResult) -> str:
    content = result.get("structuredContent", {})
    status = content.get("status", "completed")
    approval = content.get("approval_id")
    waits = f" (approval_id {approval})" if status == "pending_approval" and approval else ""
    return f"{call.name}: {status}{waits}"
