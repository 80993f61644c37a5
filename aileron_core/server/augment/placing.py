"""Putting what an agent does not know back into its history, where it happened. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from aileron_core.models import Format
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import ToolResult
from aileron_core.server.augment.catalogue import Catalogue
from aileron_core.server.augment.conversations import Conversations, HiddenTurn
from aileron_core.server.augment.digests import HistoryDigest, ReadHistory, ReadItem, is_of_model

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
