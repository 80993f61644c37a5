"""How one request of an agent is answered: whether it is augmented, what goes to the model, what is remembered. Pure.

What an agent does not know is put back into its history, where it happened.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

from aileron_core.models import ANTHROPIC_MESSAGES, OPENAI_RESPONSES, Format
from aileron_core.models.format import write_body
from aileron_core.models.json_values import JsonDict, object_of, parse_object
from aileron_core.models.neutral import Answer, ToolResult
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.conversations import (
    Conversations,
    HiddenTurn,
    KnownResponse,
    UnfinishedTurn,
)
from aileron_core.server.augment.digests import (
    HistoryDigest,
    ReadHistory,
    ReadItem,
    digest_of,
    is_of_model,
)

_THINKING = ("thinking", "redacted_thinking")
_RECORD = (
    "Record by Aileron of tool calls that the next message was made from. They have no other place in "
    "this conversation any more:"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedHistory:
    """A history as the model gets it."""

    items: tuple[JsonDict, ...]
    catalogue: Catalogue | None = None
    """What the conversation began with; None for a new one."""


def placed_history(
    format_: Format,
    own: ReadHistory,
    known: Conversations,
    *,
    sent: Sequence[JsonDict] | None = None,
    before: Iterable[ToolResult] = (),
) -> PlacedHistory:
    """Return the history *own* with each hidden turn in its place.

    Args:
        own: as the agent sent it.
        sent: the same items, as they go to the model, where tools were renamed.
        before: results that the provider waits for first.
    """
    placing = _Placing(format_, own, known, tuple(before))
    for number, item in enumerate(own.items):
        placing.add(
            item,
            item.value if sent is None else sent[number],
            is_last=number == len(own.items) - 1,
        )
    return placing.result()


@dataclass(slots=True)
class _Run:
    """Items of the model's that follow each other."""

    begin: int
    """Where it begins in what goes out."""
    digest: HistoryDigest = field(default_factory=HistoryDigest)
    lost: HiddenTurn | None = None
    """It was made from this, and stands where that does not fit."""


class _Placing:
    def __init__(
        self,
        format_: Format,
        own: ReadHistory,
        known: Conversations,
        waiting: tuple[ToolResult, ...],
    ) -> None:
        self._format = format_
        self._known = known
        self._out: list[JsonDict] = []
        self._now = HistoryDigest(own.seed).value
        """Digest of the agent's history as far as it was added."""
        self._begins = {self._now: 0}
        """Such a digest -> where what follows it begins in what goes out."""
        self._waiting = waiting
        self._run: _Run | None = None
        self._told: set[int] = set()
        """The lost turns that have a record; each gets one, however often its answer is repeated."""
        self._catalogue: Catalogue | None = None

    def add(self, item: ReadItem, sent: JsonDict, *, is_last: bool) -> None:
        if not is_of_model(item.value):
            self._end_run()
        self._put(sent)
        self._now = item.digest
        self._place(item)
        self._begins.setdefault(self._now, len(self._out))
        if not is_last:  # an equal request is a new conversation, unless it goes on with one
            self._catalogue = self._known.frozen(self._now) or self._catalogue

    def result(self) -> PlacedHistory:
        self._end_run()
        self._out += self._format.results(self._waiting) if self._waiting else []
        return PlacedHistory(items=tuple(self._out), catalogue=self._catalogue)

    def _put(self, sent: JsonDict) -> None:
        """Add an item, with the results that have to come before what is in it."""
        if self._waiting:
            waiting, self._waiting = self._format.results(self._waiting), ()
            joined = _joined(waiting, sent)
            self._out += waiting if joined is None else ()
            sent = joined or sent
        self._out.append(sent)

    def _place(self, item: ReadItem) -> None:
        if not item.units and not is_of_model(item.value):
            return  # an empty message of the agent's: the digest is still that of the answer before it
        hidden = self._known.hidden(self._now)
        if hidden is not None and hidden.before in self._begins:
            del self._out[self._begins[hidden.before] :]
            self._out += hidden.items
            self._waiting = hidden.results
            self._run = None
        elif self._known.has_hidden and is_of_model(item.value):
            self._run = self._run or _Run(len(self._out) - 1)
            self._run.digest.add(item.units)
            if not item.units:
                return  # an item that says nothing (reasoning) is no sign of an answer that said nothing
            self._run.lost = self._known.hidden_alone(self._run.digest.value) or self._run.lost

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is None or run.lost is None or id(run.lost) in self._told:
            return
        self._told.add(id(run.lost))
        told = [item for each in self._out[run.begin :] if (item := _without_thinking(each))]
        record = "\n".join((_RECORD, *(f"- {line}" for line in run.lost.ran)))
        self._out[run.begin :] = [self._format.user(record), *told]
        self._begins[self._now] = len(self._out)


def _joined(waiting: Sequence[JsonDict], item: JsonDict) -> JsonDict | None:
    """Return *item* with our results in it, where the format has those of one turn in one message."""
    if len(waiting) != 1 or waiting[0].get("role") != "user" or item.get("role") != "user":
        return None
    content = item.get("content")
    own = [{"type": "text", "text": content}] if isinstance(content, str) else content
    ours = waiting[0].get("content")
    if not isinstance(own, list) or not isinstance(ours, list):
        return None
    return {**item, "content": [*cast("list[Any]", ours), *cast("list[Any]", own)]}


def _without_thinking(item: JsonDict) -> JsonDict | None:
    """Return *item* without thinking that was put together from several turns; None if it is nothing else."""
    if item.get("type") == "reasoning":
        return None
    content = item.get("content")
    if not isinstance(content, list):
        return item
    blocks = cast("list[Any]", content)
    kept = [block for block in blocks if not _is_thinking(block)]
    return item if len(kept) == len(blocks) else {**item, "content": kept} if kept else None


def _is_thinking(block: object) -> bool:
    return isinstance(block, dict) and cast("JsonDict", block).get("type") in _THINKING


MOST_PARTS = 20_000
"""Messages, parts of them and tools: each takes time, for its digest and its place, however small it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A request as it came."""

    format: Format
    value: JsonDict
    """Neither it nor anything in it may be changed."""
    reason: str | None
    """Why it passes without our tools, as a clause; None where it gets them."""
    earlier: str
    """The id of the answer that it goes on from, if the provider keeps its conversation."""
    history: ReadHistory
    size: int
    """Bytes that it came in."""


def read_request(format_: Format, body: bytes | bytearray) -> AgentRequest:
    """Read *body*, which takes about 10 ms for each MB.

    Raises:
        ModelFormatError: it is not of the format.
    """
    value = parse_object(body, "the request to the model")
    reason = unaugmented_reason(format_, value)
    answer = _earlier_answer(format_, value)
    own = format_.history(value) if reason is None or answer else []
    if _parts_of(own, value) > MOST_PARTS:
        reason, answer, own = (
            f"it has over {MOST_PARTS} messages, parts of them and tools",
            "",
            [],
        )
    return AgentRequest(
        format=format_,
        value=value,
        reason=reason,
        earlier=answer,
        history=ReadHistory.of(own, answer),
        size=len(body),
    )


def unaugmented_reason(format_: Format, request: JsonDict) -> str | None:
    """Return why *request* passes without our tools, as a clause; None where it gets them.

    Raises:
        ModelFormatError: it is not of the format.
    """
    if request.get("background"):
        return "it runs in the background (`background`)"
    if request.get("conversation"):
        return "its conversation is stored at the provider (`conversation`)"
    count = request.get("n")
    if isinstance(count, int) and count > 1:
        return "it asks for several answers (`n`)"
    if request.get("functions") is not None:
        return "it uses `functions`, which cannot be mixed with tools"
    if format_.tool_choice(request) == "forced":
        return "it forces a tool (`tool_choice`)"
    return None


def with_offer(format_: Format, request: JsonDict, offer: Offer) -> JsonDict:
    """Return *request* with our tools after its own; all else stays where and as it is.

    Raises:
        ModelFormatError: it is not of the format.
    """
    changed = format_.renamed(request, offer.renamed) if offer.renamed else request
    return format_.with_tools(changed, offer.tools) if offer.tools else changed


def _parts_of(own: Sequence[JsonDict], request: JsonDict) -> int:
    lists = [each.get(key) for each in own for key in ("content", "tool_calls", "output")]
    return len(own) + sum(
        len(cast("list[Any]", each))
        for each in (*lists, request.get("tools"))
        if isinstance(each, list)
    )


def thread_of(format_: Format, request: JsonDict) -> JsonDict:
    """Return how the provider of Messages keeps the conversation; empty where it does not."""
    return object_of(request, "thread") if format_ is ANTHROPIC_MESSAGES else {}


def going_on_from(format_: Format, request: JsonDict, answer_id: str) -> JsonDict:
    """Return *request* with another id in the place of the one that it goes on from."""
    if thread := thread_of(format_, request):
        return {**request, "thread": {**thread, "previous_message_id": answer_id}}
    return {**request, "previous_response_id": answer_id}


def _earlier_answer(format_: Format, request: JsonDict) -> str:
    thread = thread_of(format_, request)
    named = thread.get("previous_message_id") if thread else request.get("previous_response_id")
    return named if isinstance(named, str) else ""


_MOST_ID = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request as the model gets it, without what this request itself will add."""

    format: Format
    request: JsonDict
    items: tuple[JsonDict, ...]
    """Its history; `request` has the agent's."""
    size: int
    """Bytes of the agent's request."""
    offer: Offer = field(default_factory=Offer)
    catalogue: Catalogue = field(default_factory=Catalogue)
    digest: HistoryDigest
    """Of the agent's own history."""
    known: Conversations = field(repr=False)
    reason: str = ""
    """Why our tools are not added, as a clause; empty where they are."""

    @property
    def streams(self) -> bool:
        return self.format.streams(self.request)

    def body(self, hidden: Sequence[JsonDict]) -> bytes:
        """Return the bytes of the request, with *hidden* after its history."""
        items = (*self.items, *hidden)
        return write_body(self.format.with_history(self.request, items))

    def remember(
        self,
        answers: Sequence[Answer],
        hidden: Sequence[JsonDict],
        results: tuple[ToolResult, ...],
        ran: tuple[str, ...],
    ) -> None:
        """Keep what the agent does not see of *answers*, which are one answer to it.

        Args:
            hidden: what stands for it at the model, to its end.
            results: of our calls in the last answer, where the agent goes on with its own.
        """
        shown = self.format.answer_of(self.format.joined(answers, self.offer.shown))
        seen = self.format.turn(shown)
        after = self.digest.extended(seen).value
        self.known.freeze(after, self.catalogue)
        if hidden:
            turn = HiddenTurn(
                before=self.digest.value, items=tuple(hidden), results=results, ran=ran
            )
            self.known.hide(after=after, alone=digest_of(seen), turn=turn)
        first, last = (answer.body.get("id") for answer in (answers[0], answers[-1]))
        is_kept = self.format is OPENAI_RESPONSES or bool(thread_of(self.format, self.request))
        if is_kept and _is_id(first) and _is_id(last):
            response = KnownResponse(
                last_id=last, catalogue=self.catalogue, offer=self.offer, results=results
            )
            self.known.know(first, response)

    def resume(self) -> tuple[UnfinishedTurn, ...]:
        """Take what ran for an equal request that was never answered whole."""
        return self.known.resume(self.digest.value)

    def interrupted(self, turns: tuple[UnfinishedTurn, ...]) -> None:
        """Keep what ran, for an equal request."""
        self.known.interrupt(self.digest.value, turns)


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _MOST_ID


def make_plan(
    asked: AgentRequest, known: Conversations, fresh: Callable[[], Catalogue]
) -> Plan | str:
    """Return how *asked* is answered, or why it passes as it is.

    Args:
        fresh: returns our tools as they are now, for a new conversation.

    Raises:
        ModelFormatError: it is not of the format.
    """
    format_, request, own = asked.format, asked.value, asked.history
    response = known.response(asked.earlier) if asked.earlier else None
    if asked.reason is not None and response is None:
        return asked.reason
    results = response.results if response is not None else ()
    if response is not None:
        request = going_on_from(format_, request, response.last_id)
    # The provider has those of the conversation's beginning: a list of ours alone could replace them.
    keeps_tools = bool(thread_of(format_, request)) and not request.get("tools")
    if asked.reason is not None and response is not None:
        return Plan(
            format=format_,
            request=request,
            size=asked.size,
            items=(*format_.results(results), *(item.value for item in own.items)),
            offer=response.offer if keeps_tools else Offer(),
            catalogue=response.catalogue,
            digest=own.digest,
            known=known,
            reason=asked.reason,
        )
    placed = placed_history(format_, own, known, before=results)
    catalogue = (
        placed.catalogue
        or (response.catalogue if response is not None else None)
        or (known.frozen(own.digest.value) if known.has_begun(own.digest.value) else None)
        or fresh()
    )
    if response is not None and keeps_tools:
        offer, changed = response.offer, request
    else:
        offer = _offer(format_, request, catalogue)
        changed = with_offer(format_, request, offer)
    if offer.renamed:
        placed = placed_history(format_, own, known, sent=format_.history(changed), before=results)
    known.freeze(own.digest.value, catalogue)
    return Plan(
        format=format_,
        request=changed,
        size=asked.size,
        items=placed.items,
        offer=offer,
        catalogue=catalogue,
        digest=own.digest,
        known=known,
    )


def _offer(format_: Format, request: JsonDict, catalogue: Catalogue) -> Offer:
    """Return our tools beside those of *request*."""
    names = format_.tool_names(request)
    offer = catalogue.offer(names)
    if not offer.renamed:
        return offer
    # What is no function (a custom tool, one that the provider defines) keeps its name.
    kept = {*offer.renamed} & {*format_.tool_names(format_.renamed(request, offer.renamed))}
    return catalogue.offer(names, kept=kept) if kept else offer
