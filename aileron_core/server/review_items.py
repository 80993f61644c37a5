"""What a device was sent of a call, which lines of it a person had on the screen, and whether an answer counts.

How a call is drawn is handed in (`ReviewDrawing`): the core draws nothing.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from aileron_core.canonical import Json, JsonObject, sha256_hex
from aileron_core.console_port.codec import to_bytes
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.devices.signed import Decision, Verdict
from aileron_core.errors import Conflict, InvalidRequest

MOST_RANGES: Final = 2_000
"""Of lines that were seen, in one answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPart:
    """A part of an item: what stands in it, as JSON, and how many lines of it are there to be seen."""

    blocks: Sequence[Json]
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What an answer does now, by the rules of the console's keys. Both are sentences."""

    why_not: str = ""
    """Why it does nothing; empty where it is offered."""
    ask: str = ""
    """What a second press says yes to; empty where the first one decides."""


class DrawnItem(Protocol):
    """One call as it was drawn."""

    @property
    def parts(self) -> Sequence[DrawnPart]:
        """One or more; the page gets the first at once, and the others as it asks for them."""
        ...

    @property
    def shown(self) -> JsonObject:
        """Return what the page shows of it besides: further members of the item."""
        ...

    def offer(self, verdict: Verdict, unseen: int, *, paused: bool, writable: bool) -> Offer:
        """Return what an answer does.

        Args:
            unseen: lines that a person has not had on the screen.
            paused: all calls are held.
            writable: the audit can be written.
        """
        ...


class ReviewDrawing(Protocol):
    """What the review page shows. Called on threads, so that agents are answered meanwhile; it changes nothing."""

    def rows(self, views: Sequence[ApprovalView]) -> Sequence[JsonObject]:
        """Return what the list shows of each call; `id`, `version` and `digest` are added to it."""
        ...

    def item(self, view: ApprovalView) -> DrawnItem: ...


@dataclass(slots=True, kw_only=True)
class SentItem:
    """The item that a device was sent last; what it answers is about this one."""

    view: ApprovalView
    drawn: DrawnItem
    body: bytes
    shown: str
    """SHA-256, hex, of `body`."""
    parts: Sequence[bytes]
    """From the second on."""
    sent_at: float = 0.0
    """Monotonic: of the item, or of the question for a second press."""
    sent_parts: set[int] = field(default_factory=lambda: {0})
    asked: int | None = None
    """How many unseen lines a second press was asked for; None where none was."""

    @classmethod
    def draw(
        cls,
        view: ApprovalView,
        drawing: ReviewDrawing,
        *,
        paused: bool,
        writable: bool,
        more: JsonObject,
    ) -> "SentItem":
        """Draw *view*; *more*: further members of the item. It may take a second: not for a loop."""
        drawn = drawing.item(view)
        first, *rest = drawn.parts
        parts = [to_bytes({"blocks": each.blocks}) for each in rest]
        offers = {
            verdict: drawn.offer(verdict, 0, paused=paused, writable=writable)
            for verdict in _VERDICTS
        }
        body = to_bytes(
            {
                **drawn.shown,
                "id": view.approval_id,
                "version": view.version,
                "digest": view.digest,
                "words": view.words,
                "blocks": first.blocks,
                "lines": first.lines,
                "parts": [
                    {"n": number, "lines": part.lines, "sha256": sha256_hex(sent)}
                    for number, (part, sent) in enumerate(zip(rest, parts, strict=True), 1)
                ],
                **{
                    verdict: {
                        "offered": not offer.why_not,
                        "why_not": offer.why_not,
                        "ask": offer.ask,
                    }
                    for verdict, offer in offers.items()
                },
                **more,
            }
        )
        return cls(view=view, drawn=drawn, body=body, shown=sha256_hex(body), parts=parts)

    def part(self, number: int) -> bytes:
        """Return a later part, which counts as sent from now on.

        Raises:
            InvalidRequest: the item has no such part.
        """
        if not 1 <= number <= len(self.parts):
            raise InvalidRequest("The item has no such part.")
        self.sent_parts.add(number)
        return self.parts[number - 1]

    def unseen(self, seen: Any) -> int:
        """Return how many lines a person has not had on the screen.

        Args:
            seen: the first and the last of each range of lines that they had, from 0, as a device says. What
                stands in a part that it was not sent counts for nothing.

        Raises:
            InvalidRequest: it is something else, or names lines that the item has not.
        """
        total = sum(part.lines for part in self.drawn.parts)
        ranges = _ranges(seen, total)
        unseen = begin = 0
        for number, part in enumerate(self.drawn.parts):
            end = begin + part.lines
            if number in self.sent_parts:
                unseen += part.lines - _covered(ranges, begin, end)
            else:
                unseen += part.lines
            begin = end
        return unseen

    def require_shown(self, decision: Decision, now: ApprovalView, rested: float) -> None:
        """Check that a decision is about this item, that the call is as it shows it, and that a person rested.

        Args:
            now: the call as it is.
            rested: seconds since it was sent.

        Raises:
            Conflict: it is not so.
        """
        about = (decision.approval, decision.digest, decision.shown)
        if about != (self.view.approval_id, self.view.digest, self.shown):
            raise Conflict("This is not what the page was sent last. Nothing was decided.")
        if (now.version, now.digest) != (self.view.version, self.view.digest):
            raise Conflict("The call changed while you answered. Nothing was decided.")
        if rested < 0:
            raise Conflict("That was too soon after the page changed. Nothing was decided.")

    def require_offered(
        self, verdict: Verdict, unseen: int, *, paused: bool, writable: bool
    ) -> str:
        """Return what a second press has to say yes to, empty for nothing.

        Raises:
            Conflict: the answer is not offered.
        """
        offer = self.drawn.offer(verdict, unseen, paused=paused, writable=writable)
        if offer.why_not:
            raise Conflict(offer.why_not)
        return offer.ask

    def acknowledges(self, signed: int, unseen: int, ask: str) -> bool:
        """Return whether a yes counts that names *signed* lines as unseen, where *unseen* are, and *ask* is asked."""
        return signed == unseen and (not ask or (self.asked is not None and unseen <= self.asked))


_VERDICTS: tuple[Verdict, ...] = ("approve", "deny")


def _ranges(seen: Any, total: int) -> list[tuple[int, int]]:
    """Return the ranges of lines as (first, one behind the last), in order and apart."""
    listed = cast("list[Any]", seen)
    if not isinstance(seen, list) or len(listed) > MOST_RANGES:
        raise InvalidRequest(f"'seen' must be a list of at most {MOST_RANGES} ranges of lines.")
    ranges: list[tuple[int, int]] = []
    for each in listed:
        ends = cast("list[Any]", each)
        if not isinstance(each, list) or [type(end) for end in ends] != [int, int]:
            raise InvalidRequest("A range in 'seen' is the numbers of its first and last line.")
        if not 0 <= ends[0] <= ends[1] < total:
            raise InvalidRequest("'seen' names lines that the item has not.")
        ranges.append((ends[0], ends[1] + 1))
    apart: list[tuple[int, int]] = []
    for first, behind in sorted(ranges):
        if apart and first <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(behind, apart[-1][1]))
        else:
            apart.append((first, behind))
    return apart


def _covered(ranges: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """Return how many of the lines from *begin* to before *end* stand in *ranges*, in order and apart."""
    covered, at = 0, max(bisect_left(ranges, (begin, 0)) - 1, 0)
    while at < len(ranges) and ranges[at][0] < end:
        first, behind = ranges[at]
        covered += max(0, min(behind, end) - max(first, begin))
        at += 1
    return covered
