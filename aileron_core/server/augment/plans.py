"""How one request of an agent is answered: what goes to the model, and what is remembered of it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from aileron_core.models import ANTHROPIC_MESSAGES, OPENAI_RESPONSES, Format
from aileron_core.models.format import write_body
from aileron_core.models.json_values import JsonDict, object_of
from aileron_core.models.neutral import Answer, ToolResult
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.conversations import (
    Conversations,
    HiddenTurn,
    KnownResponse,
    UnfinishedTurn,
)
from aileron_core.server.augment.digests import HistoryDigest, digest_of
from aileron_core.server.augment.placing import placed_history
from aileron_core.server.augment.requests import unaugmented_reason, with_offer

_MOST_ID = 1024
_RENAMED = "tools of its agent begin with aileron_, so its model sees them as agent_aileron_ and what follows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request as the model gets it, without what this request itself will add."""

    format: Format
    request: JsonDict
    items: tuple[JsonDict, ...]
    """Its history; `request` has the agent's."""
    offer: Offer = field(default_factory=Offer)
    catalogue: Catalogue = field(default_factory=Catalogue)
    digest: HistoryDigest
    """Of the agent's own history."""
    unfinished: UnfinishedTurn | None = None
    known: Conversations = field(repr=False)
    note: str = ""
    """What is to be said once, a clause; empty if nothing."""

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
        is_kept = self.format is OPENAI_RESPONSES or bool(_thread(self.format, self.request))
        if is_kept and _is_id(first) and _is_id(last):
            response = KnownResponse(
                last_id=last, catalogue=self.catalogue, offer=self.offer, results=results
            )
            self.known.know(first, response)

    def interrupted(self, unfinished: UnfinishedTurn) -> None:
        """Keep what ran, for an equal request."""
        self.known.interrupt(self.digest.value, unfinished)


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _MOST_ID


def make_plan(
    format_: Format, request: JsonDict, known: Conversations, fresh: Callable[[], Catalogue]
) -> Plan | str:
    """Return how *request* is answered, or why it passes as it is.

    Args:
        fresh: returns our tools as they are now, for a new conversation.

    Raises:
        ModelFormatError: it is not of the format.
    """
    reason = unaugmented_reason(format_, request)
    seed = _earlier_answer(format_, request)
    response = known.response(seed) if seed else None
    if reason is not None and response is None:
        return reason
    results = response.results if response is not None else ()
    if response is not None:
        request = _going_on_from(format_, request, response.last_id)
    own = format_.history(request)
    if reason is not None and response is not None:
        return Plan(
            format=format_,
            request=request,
            items=(*format_.results(results), *own),
            catalogue=response.catalogue,
            digest=HistoryDigest(seed).extended(own),
            known=known,
            note=reason,
        )
    placed = placed_history(format_, own, own, known, seed=seed, before=results)
    unfinished = known.begun(placed.digest.value)
    catalogue = (
        placed.catalogue
        or (response.catalogue if response is not None else None)
        or (known.frozen(placed.digest.value) if unfinished is not None else None)
        or fresh()
    )
    if response is not None and _thread(format_, request) and not request.get("tools"):
        # The provider has the tools of the conversation's beginning: a list of ours alone could replace them.
        offer, changed = response.offer, request
    else:
        offer = _offer(format_, request, catalogue)
        changed = with_offer(format_, request, offer)
    if offer.renamed:
        sent = format_.history(changed)
        placed = placed_history(format_, own, sent, known, seed=seed, before=results)
    known.freeze(placed.digest.value, catalogue)
    known.resume(placed.digest.value)  # last: what is refused above must not lose it
    return Plan(
        format=format_,
        request=changed,
        items=placed.items,
        offer=offer,
        catalogue=catalogue,
        digest=placed.digest,
        unfinished=unfinished,
        known=known,
        note=_RENAMED if offer.renamed else "",
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


def _thread(format_: Format, request: JsonDict) -> JsonDict:
    """Return how the provider of Messages keeps the conversation; empty where it does not."""
    return object_of(request, "thread") if format_ is ANTHROPIC_MESSAGES else {}


def _earlier_answer(format_: Format, request: JsonDict) -> str:
    """Return the id of the answer that *request* goes on from, if the provider keeps its conversation."""
    thread = _thread(format_, request)
    named = thread.get("previous_message_id") if thread else request.get("previous_response_id")
    return named if isinstance(named, str) else ""


def _going_on_from(format_: Format, request: JsonDict, answer_id: str) -> JsonDict:
    """Return *request* with another id in the place of the one that it goes on from."""
    if thread := _thread(format_, request):
        return {**request, "thread": {**thread, "previous_message_id": answer_id}}
    return {**request, "previous_response_id": answer_id}
