"""How one request of an agent is answered: what goes to the model, and what is remembered of it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from aileron_core.models import OPENAI_RESPONSES, Format
from aileron_core.models.format import write_body
from aileron_core.models.json_values import JsonDict
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
from aileron_core.server.augment.requests import AgentRequest, going_on_from, thread_of, with_offer

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
