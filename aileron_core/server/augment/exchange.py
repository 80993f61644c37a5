"""One request of an agent, from its first byte to the end of the one answer that it gets."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from starlette.types import Message, Receive

from aileron_core import tasks
from aileron_core.errors import ModelFormatError
from aileron_core.models import Format
from aileron_core.models.json_values import JsonDict, dump, objects_of
from aileron_core.models.neutral import Answer, Limits, ToolCall
from aileron_core.server.augment.catalogue import Offer
from aileron_core.server.augment.conversations import CallBatch, UnfinishedTurn
from aileron_core.server.augment.limits import AugmentLimits, beside_if_large
from aileron_core.server.augment.plans import Plan
from aileron_core.server.augment.tool_calls import Report, ToolCaller
from aileron_core.server.augment.upstream_answer import AnswerBroken, Egress
from aileron_core.server.augment.views import AnswerView, ClientAnswer, StreamView, WholeView
from aileron_core.server.gateway.augmenting import GatewaySide
from aileron_core.server.gateway.providers import GatewayError
from aileron_core.server.http_protocol import PROGRESS_SECONDS
from aileron_core.server.shares import Shares


@dataclass(slots=True, eq=False)
class RequestBody:
    """Reads one body of a session, of at most *most* bytes, and holds it while it is entered.

    It is read whole to be looked at, and received once more where it only passes.
    """

    _shares: Shares
    """Of the bytes of all requests that are being answered, with the model's answers to them."""
    _session_id: str
    _receive: Receive
    _most: int
    _replayed: bool = False
    _more: bool = True
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    """Bytes that are held for it."""
    is_gone: bool = False
    """The agent hung up before it had sent all of it."""

    def __enter__(self) -> "RequestBody":
        return self

    def __exit__(self, *_: object) -> None:
        if self.size:
            self._shares.give_back(self._session_id, self.size)

    async def read(self) -> bool:
        """Return whether all of it was read: it was sent, and is not too long.

        Raises:
            GatewayError: its session holds too much already, or nothing came for a while.
        """
        while self._more and len(self.data) <= self._most:
            try:
                async with asyncio.timeout(PROGRESS_SECONDS):
                    message = await self._receive()
            except TimeoutError:
                raise GatewayError(
                    "timeout",
                    f"Nothing more of the request arrived for {PROGRESS_SECONDS:g} seconds.",
                ) from None
            if message["type"] != "http.request":
                self.is_gone = True
                return False
            piece: bytes = message.get("body", b"")
            self.hold(len(piece))
            self.data += piece
            self._more = message.get("more_body", False)
        return not self._more and len(self.data) <= self._most

    def hold(self, size: int) -> None:
        """Count *size* more bytes that are kept until it is answered.

        Raises:
            GatewayError: its session holds too much already.
        """
        if not self._shares.fits(self._session_id, size):
            raise GatewayError(
                "too_many",
                "This session has too many large requests and answers under way. Try again when one "
                "has ended.",
            )
        self._shares.add(self._session_id, size)
        self.size += size

    async def replay(self) -> Message:
        """Receive the request from its beginning; what was read is kept no longer."""
        if self._replayed:
            return await self._receive()
        self._replayed = True
        data, self.data = bytes(self.data), bytearray()
        return {"type": "http.request", "body": data, "more_body": self._more}


CALLS_HEADER = b"aileron-calls"
"""With it, and a word, an agent asks to be told of Aileron's calls. It has to be named in `Connection`."""
_WORD = re.compile(rb"[0-9a-f]{32}")
_RUN_BY_PROVIDER = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
    }
)
_WORDS = {400: (b"Bad Request", "invalid_request_error"), 502: (b"Bad Gateway", "api_error")}


class _OverLimit(Exception):
    """The loop has to end; the message is for the agent."""


@dataclass(slots=True, eq=False)
class Exchange:
    """Asks the model, makes its calls of our tools, and asks again, until its answer is for the agent."""

    _side: GatewaySide
    _limits: AugmentLimits
    _buffered: Shares
    _plan: Callable[[bytes | bytearray | None], Awaitable[Plan | None]]
    """Makes the plan of a request's body, which is None if it is too long; None where it passes as it is."""
    _caller: Callable[[Plan, asyncio.Event, Report | None], ToolCaller]
    """Makes what runs the calls of a plan."""
    _client: ClientAnswer = field(init=False)

    def __post_init__(self) -> None:
        self._client = ClientAnswer(self._side.client)

    @property
    def client_disconnected(self) -> bool:
        return self._client.gone.is_set()

    def cut(self) -> None:
        """End both sides at once."""
        self._client.abort()

    async def run(self, receive: Receive) -> Receive | None:
        """Answer the request; return how to receive it once more where it is to pass as it is.

        Raises:
            GatewayError: there is no answer, and nothing was written yet.
        """
        self._side.client.listen(self._client)
        session_id = self._side.session.session_id
        with RequestBody(self._buffered, session_id, receive, self._limits.request_bytes) as body:
            try:
                async with asyncio.timeout(self._limits.seconds):
                    complete = await body.read()
                await asyncio.sleep(0)  # a hang-up that came with it is known before it is planned
            except TimeoutError:
                raise GatewayError(
                    "timeout", "The request did not come to its end in time."
                ) from None
            if body.is_gone or self.client_disconnected:
                return None
            plan = await self._plan(body.data if complete else None)
            if self.client_disconnected:  # or its session has ended: nothing more is sent for it
                return None
            if plan is None:
                return body.replay
            await self._answered(plan, body.hold)
            return None

    async def _answered(self, plan: Plan, hold: Callable[[int], None]) -> None:
        view = (StreamView if plan.streams else WholeView)(plan.format, plan.offer, self._client)
        over = asyncio.Event()
        caller = self._caller(plan, over, self._report(plan))
        loop = _Loop(plan, view, Egress(self._side, hold), caller, self._limits)
        self._client.on_gone = loop.keep
        running = tasks.spawn(_outcome(loop), name="augment loop")
        leaving = tasks.spawn(self._client.gone.wait(), name="augment client")
        try:
            await asyncio.wait(
                (running, leaving),
                timeout=self._limits.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            timed_out = not running.done() and not self._client.gone.is_set()
            over.set()
            leaving.cancel()
            running.cancel()
            await asyncio.wait((running,))
            self._client.on_gone = (
                None  # it has all that was read, and would live until a collection
            )
        if self._client.gone.is_set():
            return
        fault = _too_long(self._limits) if timed_out else running.result()
        if fault is not None:
            passing = self._side.passing
            passing.is_own_error = True
            passing.needs_vault = isinstance(fault, GatewayError) and fault.kind == "locked"
            self._end(view, fault)

    def _report(self, plan: Plan) -> Report | None:
        """Return what writes how a call stands into the stream, as a comment; None where nobody asked for it.

        A comment begins with the word that the agent made up in its header, which the model's server does
        not know: it cannot write such a comment.
        """
        headers = self._side.client.headers
        words = [value for name, value in headers if name.lower() == CALLS_HEADER]
        if not plan.streams or len(words) != 1 or not _WORD.fullmatch(words[0]):
            return None

        def report(said: dict[str, str]) -> None:
            if self._client.begun:
                self._client.write_now(b": %b %b\n\n" % (words[0], dump(said)))

        return report

    def _end(self, view: AnswerView, fault: Exception) -> None:
        """Tell the agent how it ended, unless it was told."""
        match fault:
            case _OverLimit():
                # 400, since SDKs repeat what they take for a fault of the server's.
                self._fail(view, str(fault), 400)
            case ModelFormatError():
                self._fail(view, fault.message, 502)
            case AnswerBroken() if self._client.begun:
                self._client.abort()
            case AnswerBroken():
                self._fail(view, f"{self._side.upstream.address} broke its answer off.", 502)
            case GatewayError() if self._client.begun:
                self._fail(view, fault.message, 502)
            case _:
                raise fault

    def _fail(self, view: AnswerView, message: str, status: int) -> None:
        reason, kind = _WORDS[status]
        if not self._client.begun:
            self._side.passing.status = status
        view.fail(message, status, reason, kind)


async def _outcome(loop: "_Loop") -> Exception | None:
    try:
        await loop.run()
    except Exception as error:  # noqa: BLE001 - the caller says it to the agent, or raises it
        return error
    return None


def _too_long(limits: AugmentLimits) -> _OverLimit:
    return _OverLimit(
        f"Aileron ended this answer: with its calls, it took longer than {limits.seconds:g} seconds. What "
        "ran, ran; an equal request goes on from there."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The calls of one answer that somebody has to make."""

    ours: tuple[ToolCall, ...] = ()
    has_agents: bool = False
    """The agent has calls to make too, so this answer goes to it."""


@dataclass(slots=True, eq=False)
class _Loop:
    _plan: Plan
    _view: AnswerView
    _egress: Egress
    _caller: ToolCaller
    _limits: AugmentLimits
    _answers: list[Answer] = field(default_factory=list[Answer])
    _hidden: list[JsonDict] = field(default_factory=list[JsonDict])
    """What stands for the answer at the model so far."""
    _ran: list[str] = field(default_factory=list[str])
    _open: tuple[UnfinishedTurn, ...] = ()
    """The turns whose calls are being made."""
    _kept: bool = False
    _calls: int = 0
    _bytes_read: int = 0

    async def run(self) -> None:
        finished = False
        try:
            await self._resume()
            while await self._turn():
                pass
            finished = not self._view.client_gone
        finally:
            if not finished:
                self.keep()

    async def _resume(self) -> None:
        """Go on from what ran for an equal request that was never answered."""
        self._open = self._plan.resume()
        hidden: list[JsonDict] = []
        ran: list[str] = []
        for turn in self._open:
            hidden += turn.items
            ran += turn.ran
            if turn.work is not None:
                batch = await asyncio.shield(turn.work)
                hidden += (*turn.open_items, *self._plan.format.results(batch.results))
                ran += batch.ran
        self._hidden, self._ran, self._open = hidden, ran, ()

    async def _turn(self) -> bool:
        """Ask the model once and make its calls; return whether it is to be asked again."""
        if len(self._answers) >= self._limits.turns:
            raise _OverLimit(
                f"Aileron ended this answer: the model was asked {self._limits.turns} times for it. What "
                "ran, ran; an equal request goes on from there."
            )
        answer = await self._ask()
        if answer is None:
            return False
        self._answers.append(answer)
        turn = read_turn(self._plan.format, answer, self._plan.offer)
        batch = CallBatch(results=(), ran=())
        if turn.ours:
            batch = await self._made(answer, turn)
        if turn.ours and not turn.has_agents:
            await self._view.next_answer()
            return True
        if answer.error is None:
            self._remember(answer, turn, batch)
        else:
            self.keep()
        await self._view.finish(self._answers)
        return False

    async def _ask(self) -> Answer | None:
        """Return the model's next answer; None where the upstream refused, which the agent was shown."""
        body = await beside_if_large(self._plan.size, self._plan.body, self._hidden)
        async with contextlib.AsyncExitStack() as stack:
            async with self._view.kept_alive(self._limits.keep_alive_seconds):
                upstream = await stack.enter_async_context(self._egress.sent(body))
                head = await upstream.whole_head()
            if not self._view.reads(head):
                if head.status == 200:  # as it is, it could show the agent calls of ours
                    raise ModelFormatError(
                        "The model's server did not stream its answer, although it was asked to."
                    )
                self.keep()
                await self._view.refuse(head, upstream)
                return None
            left = self._limits.bytes - self._bytes_read
            try:
                return await self._view.take(head, upstream, Limits(answer_bytes=left))
            except ModelFormatError:
                if upstream.count > left:
                    raise _OverLimit(
                        f"Aileron ended this answer: the model's answers to it are over {self._limits.bytes} bytes."
                    ) from None
                raise
            finally:
                self._bytes_read += upstream.count

    async def _made(self, answer: Answer, turn: Turn) -> CallBatch:
        """Make our calls of *answer*, and put turn and results behind what stands at the model."""
        self._calls += len(turn.ours)
        if self._calls > self._limits.calls:
            raise _OverLimit(
                f"Aileron ended this answer: the model made more than {self._limits.calls} calls of Aileron's "
                "tools for it. The last ones did not run."
            )
        plan = self._plan
        number = len(self._answers)
        # Without the agent's calls: whoever goes on from here has no result of theirs.
        without = "agents" if turn.has_agents else ""
        items = items_of(plan.format, plan.request, answer, plan.offer, without=without)
        if self._view.client_gone:  # what was kept for an equal request has none of this
            raise asyncio.CancelledError
        work = tasks.spawn(self._caller.make(turn.ours, number), name="augment calls")
        self._open = (UnfinishedTurn(open_items=tuple(items), work=work),)
        async with self._view.kept_alive(self._limits.keep_alive_seconds):
            batch: CallBatch = await asyncio.shield(work)
        if turn.has_agents:
            return batch
        self._ran += batch.ran
        self._hidden += [*items, *plan.format.results(batch.results)]
        self._open = ()
        return batch

    def _remember(self, answer: Answer, turn: Turn, batch: CallBatch) -> None:
        plan = self._plan
        hidden = [
            *self._hidden
        ]  # not its own: an equal request must not go on behind the answer's end
        if hidden or turn.ours:
            without = "" if turn.ours else "ours"
            hidden += items_of(plan.format, plan.request, answer, plan.offer, without=without)
        ran = (*self._ran, *(batch.ran if turn.has_agents else ()))
        plan.remember(self._answers, hidden, batch.results, ran)

    def keep(self) -> None:
        """Keep what ran for an equal request, at once: that may be there in the same turn of the event loop."""
        if self._kept or not (self._hidden or self._open):
            return
        self._kept = True
        done = UnfinishedTurn(items=tuple(self._hidden), ran=tuple(self._ran))
        self._plan.interrupted((done, *self._open) if self._hidden else self._open)


def read_turn(format_: Format, answer: Answer, offer: Offer) -> Turn:
    """Return what *answer* asks for; one that was cut short or failed asks for nothing."""
    ours = tuple(call for call in answer.calls if offer.is_ours(call.name))
    if answer.stop.kind != "tools" or not ours:
        return Turn()
    others = len(ours) < len(answer.calls) or any(
        kind not in _RUN_BY_PROVIDER for kind in _other_calls(format_.turn(answer))
    )
    return Turn(ours=ours, has_agents=others)


def items_of(
    format_: Format, request: JsonDict, answer: Answer, offer: Offer, *, without: str = ""
) -> list[JsonDict]:
    """Return *answer* as the model's history has it, whole and in order.

    Args:
        without: `ours` or `agents`: leave those calls out, of which there will be no result.
    """
    if without:
        ours = without == "ours"

        def kept(name: str) -> str | None:
            return None if offer.is_ours(name) == ours else name

        answer = format_.answer_of(format_.joined([answer], kept))
    return [item for item in format_.turn(answer) if _can_be_sent(item, request)]


def _can_be_sent(item: JsonDict, request: JsonDict) -> bool:
    """Whether the provider takes *item* back: it knows no reasoning that it neither stored nor encrypted."""
    unstored = item.get("type") == "reasoning" and request.get("store") is False
    return not unstored or bool(item.get("encrypted_content"))


def _other_calls(items: Iterable[JsonDict]) -> Iterable[str]:
    """Give the kinds of calls in *items* that are of no function."""
    for item in items:
        kind = item.get("type")
        if isinstance(kind, str) and kind.endswith("_call") and kind != "function_call":
            yield kind
        if any("function" not in call for call in objects_of(item, "tool_calls")):
            yield "custom"
        if item.get("function_call"):
            yield "custom"
