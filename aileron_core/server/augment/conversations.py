"""What one session's model was told that its agent does not know: kept in memory, bounded, found by digests."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from aileron_core.models.format import write_body
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import ToolResult
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.limits import MemoryLimits

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenTurn:
    """What stands at the model in the place of one answer that the agent saw."""

    before: str
    """Digest of the agent's history up to the answer."""
    items: tuple[JsonDict, ...]
    results: tuple[ToolResult, ...] = ()
    """Of our calls in the last turn, where the agent has calls of that turn to make: they go beside its results."""
    ran: tuple[str, ...] = ()
    """What ran, a line each, for a history in which it has no place any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownResponse:
    """What `previous_response_id`, or `previous_message_id`, has to say at the provider, for one that the agent knows."""

    last_id: str
    catalogue: Catalogue
    offer: Offer
    """Under which names our tools are known there."""
    results: tuple[ToolResult, ...] = ()
    """Of our calls in it, which the provider waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBatch:
    """What became of the calls of one turn."""

    results: tuple[ToolResult, ...]
    ran: tuple[str, ...]
    """A line each, without anything of its arguments or output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedTurn:
    """What ran for a request whose answer the agent never had whole: an equal request goes on from there."""

    items: tuple[JsonDict, ...] = ()
    """Turns and results."""
    ran: tuple[str, ...] = ()
    open_items: tuple[JsonDict, ...] = ()
    """One more turn, whose calls had begun."""
    work: "asyncio.Task[CallBatch] | None" = None


@dataclass(slots=True)
class _Bounded(Generic[_T]):
    """The newest values by key, as many and as large as fit, and one at least."""

    limits: MemoryLimits
    values: OrderedDict[str, tuple[_T, int]] = field(
        default_factory=OrderedDict[str, tuple[_T, int]]
    )
    size: int = 0

    def put(self, key: str, value: _T, size: int = 0) -> None:
        self.pop(key)
        self.values[key] = (value, size)
        self.size += size
        while len(self.values) > 1 and (
            len(self.values) > self.limits.entries or self.size > self.limits.bytes
        ):
            _, (_, dropped) = self.values.popitem(last=False)
            self.size -= dropped

    def get(self, key: str) -> _T | None:
        found = self.values.get(key)
        if found is None:
            return None
        self.values.move_to_end(key)
        return found[0]

    def pop(self, key: str) -> _T | None:
        found = self.values.pop(key, None)
        if found is None:
            return None
        self.size -= found[1]
        return found[0]


class Conversations:
    """The hidden part of one session's conversations. Each key is a digest, or the id of a response."""

    def __init__(self, limits: MemoryLimits | None = None) -> None:
        limits = limits or MemoryLimits()
        self._turns = _Bounded[HiddenTurn](limits)
        self._alone = _Bounded[HiddenTurn](limits)
        self._catalogues = _Bounded[Catalogue](limits)
        self._responses = _Bounded[KnownResponse](limits)
        self._unfinished = _Bounded[tuple[UnfinishedTurn, ...]](limits)

    def hide(self, *, after: str, alone: str, turn: HiddenTurn) -> None:
        """Keep *turn* for histories whose digest is *after* once they have the answer that the agent saw.

        Args:
            alone: digest of that answer without what came before it.
        """
        size = _size(turn.items) + _results_size(turn.results)
        self._turns.put(after, turn, size)
        self._alone.put(alone, turn, size)

    @property
    def has_hidden(self) -> bool:
        """Whether any turn is kept."""
        return bool(self._alone.values)

    def hidden(self, digest: str) -> HiddenTurn | None:
        return self._turns.get(digest)

    def hidden_alone(self, digest: str) -> HiddenTurn | None:
        return self._alone.get(digest)

    def freeze(self, digest: str, catalogue: Catalogue) -> None:
        """Keep *catalogue* for all that begins with the history of this digest."""
        self._catalogues.put(digest, catalogue)

    def frozen(self, digest: str) -> Catalogue | None:
        return self._catalogues.get(digest)

    def know(self, response_id: str, response: KnownResponse) -> None:
        names = sum(len(own) + len(there) for own, there in response.offer.renamed.items())
        self._responses.put(response_id, response, _results_size(response.results) + 2 * names)

    def response(self, response_id: str) -> KnownResponse | None:
        return self._responses.get(response_id)

    def interrupt(self, digest: str, turns: tuple[UnfinishedTurn, ...]) -> None:
        """Keep what was begun, behind what an equal request began beside it: what both did is told."""
        turns = (*self.resume(digest), *turns)
        size = sum(_size((*turn.items, *turn.open_items)) for turn in turns)
        self._unfinished.put(digest, turns, size)

    def has_begun(self, digest: str) -> bool:
        """Return whether something was begun for a request with this whole history."""
        return self._unfinished.get(digest) is not None

    def resume(self, digest: str) -> tuple[UnfinishedTurn, ...]:
        """Take what was begun for a request with this whole history, the oldest first."""
        return self._unfinished.pop(digest) or ()


def _size(items: tuple[JsonDict, ...]) -> int:
    return sum(len(write_body(item)) for item in items)


def _results_size(results: tuple[ToolResult, ...]) -> int:
    return sum(len(result.text) for result in results)
