"""Where answers arrive: a person's yes and no, an agent's withdrawal, the deadline, the result."""

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Any

from aileron_core import tasks
from aileron_core.approval import rows
from aileron_core.approval.model import RunRow
from aileron_core.approval.transitions import FINAL, Event, State
from aileron_core.clock import Clock
from aileron_core.errors import AileronError, Conflict, NotFound
from aileron_core.gate.carrying import Carrier
from aileron_core.gate.held import Held, RunBook
from aileron_core.gate.journal import Journal, Naming
from aileron_core.gate.looking import Lookout
from aileron_core.gate.pause import Pause
from aileron_core.gate.ports import GateSettings
from aileron_core.storage.database import Database

__all__ = ["Desk"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Decisions on runs that wait. At most one wins; the next is told which."""

    book: RunBook
    journal: Journal
    lookout: Lookout
    carrier: Carrier
    database: Database
    clock: Clock
    settings: GateSettings
    pause: Pause

    async def approve(self, approval_id: str, digest: str, *, unseen_lines: int = 0) -> None:
        """Take a person's yes to exactly *digest*, durably, and carry it out in the background.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it was answered, is still being looked at, or is not what the person saw.
        """
        held = self._held(approval_id)
        async with held.turn:
            self._require_waiting(held)
            self.pause.require_answers()
            if held.row.state is State.AWAITING_VAULT:
                raise Conflict("It waits for the vault. Nothing was decided.")
            if held.loaded is None:
                raise Conflict(
                    f"The action {held.row.action} is not accepted any more. {held.nothing_ran}; deny it, "
                    "or take the action in again and have the agent ask anew."
                )
            if held.look.status == "fetching" or held.row.digest is None:
                raise Conflict("Still looking. Nothing was decided.")
            if digest != held.row.digest:
                raise Conflict("It changed while you answered. Nothing was decided.")
            if self._is_late(held):
                await self._expire(held)
                raise Conflict(
                    f"Its deadline has passed. {held.nothing_ran}.",
                    details={"outcome": "expired"},
                )
            drift, held.drift = held.drift, None
            try:
                await self.journal.move(
                    held,
                    Event.APPROVE,
                    Naming.APPROVED,
                    f"A person approved {held.row.action}",
                    {"unseen_lines": unseen_lines, "preview": held.look.status},
                    decided_at=self.clock.now(),
                    decided_by="person",
                    note="",
                )
            except AileronError:
                held.drift = drift
                raise
        tasks.spawn(self._carry(held), name=f"carry {held.row.run_id}")

    async def _carry(self, held: Held) -> None:
        await self.carrier.carry_out(held)
        if held.is_final:
            self.book.finished(held)

    async def deny(self, approval_id: str, reason: str) -> None:
        """Take a person's no; during a recheck it wins.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it was answered or has begun.
        """
        held = self._held(approval_id)
        async with held.turn:
            self._require_open(held)
            await self._end(
                held,
                Event.DENY,
                Naming.DENIED,
                f"A person denied {held.row.action}",
                reason=self._reason(reason),
                decided_at=self.clock.now(),
                decided_by="person",
            )

    async def withdraw(self, session_id: str, approval_id: str, reason: str) -> RunRow:
        """Take the requester's withdrawal of its own approval and return the run.

        The answer tells the agent how it ended, so an equal call from then on asks anew.

        Raises:
            NotFound: unknown, or another session's.
            Conflict: it has begun or ended.
        """
        return await tasks.uninterrupted(
            self._withdraw(session_id, approval_id, reason), name=f"withdraw {approval_id}"
        )

    async def _withdraw(self, session_id: str, approval_id: str, reason: str) -> RunRow:
        held = self.book.approval(approval_id)
        if held is None or held.row.session_id != session_id:
            row = await self._stored(session_id, approval_id)
            raise _too_late(row)
        async with held.turn:
            self._require_open(held)
            await self._end(
                held,
                Event.WITHDRAW,
                Naming.WITHDRAWN,
                f"The agent withdrew {held.row.action}",
                reason=self._reason(reason),
                delivered=True,
            )
            self.book.delivered(held)
        return held.row

    async def refresh(self, approval_id: str) -> None:
        """Fetch the preview again.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it does not wait for an answer any more.
        """
        held = self._held(approval_id)
        self._require_waiting(held)
        if held.loaded is not None:
            await self.lookout.refresh(held)

    async def look_again(self, approval_id: str) -> None:
        """Look through the preview op at what came of a run whose outcome nobody knows (DESIGN 5).

        Raises:
            NotFound: no such approval in this console.
            Conflict: its outcome is known, or there is nothing to look through.
        """
        held = self._held(approval_id)
        if held.row.state is not State.UNKNOWN:
            raise Conflict("Its outcome is no open question. Nothing was asked.")
        if not held.can_look_again:
            raise Conflict("There is no preview op to look through. Look at the service itself.")
        await self.carrier.look_again(held)

    async def result(self, session_id: str, approval_id: str, wait: float) -> RunRow:
        """Return the run of this approval, after its end or after *wait* seconds.

        Raises:
            NotFound: unknown, or another session's.
        """
        held = self.book.approval(approval_id)
        if held is None or held.row.session_id != session_id:
            return await self._stored(session_id, approval_id)
        if not held.is_final and wait > 0:
            try:
                async with asyncio.timeout(wait):
                    await held.ended.wait()
            except TimeoutError:
                pass
        return held.row

    async def deliver(self, approval_id: str | None) -> None:
        """Note that the agent was told the end of this approval."""
        held = self.book.approval(approval_id) if approval_id else None
        if held is None or not held.is_final or held.row.delivered:
            return
        await tasks.uninterrupted(self._deliver(held), name=f"deliver {approval_id}")

    async def _deliver(self, held: Held) -> None:
        async with held.turn:
            if held.row.delivered:
                return
            self.book.delivered(held)
            try:
                await self.journal.amend(
                    held, Naming.DELIVERED, "The agent was told", delivered=True
                )
            except AileronError as error:
                _log.warning("delivery is not on record: %s", type(error).__name__)

    async def sweep(self) -> None:
        """End what is past its deadline. Called every second; holds over restarts and suspends."""
        for held in self.book:
            # While it is checked, the carrier looks at the deadline itself, before the effect.
            if not held.waits or not self._is_late(held):
                continue
            async with held.turn:
                if held.waits:
                    await self._expire(held)

    def forget(self, before: float) -> None:
        """Drop from memory the arguments of runs that ended before *before*, as their rows did."""
        for held in self.book:
            if held.row.ended_at is not None and held.row.ended_at < before:
                held.row = replace(held.row, args=None, progress=None)

    async def _expire(self, held: Held) -> None:
        await self._end(
            held, Event.EXPIRE, Naming.EXPIRED, f"Nobody answered {held.row.action} in time"
        )

    async def _end(
        self, held: Held, event: Event, named: tuple[str, str], summary: str, **changes: Any
    ) -> None:
        await self.journal.move(held, event, named, summary, ended_at=self.clock.now(), **changes)
        self.book.finished(held)

    def _reason(self, text: str) -> str | None:
        # Half of a character pair cannot be stored.
        return text[: self.settings.reason_characters].encode(errors="replace").decode() or None

    def _is_late(self, held: Held) -> bool:
        return held.row.expires_at is not None and held.row.expires_at <= self.clock.now()

    def _held(self, approval_id: str) -> Held:
        held = self.book.approval(approval_id)
        if held is None:
            raise NotFound(f"No approval {approval_id} waits in this console.")
        return held

    def _require_waiting(self, held: Held) -> None:
        if not held.waits:
            raise _too_late(held.row)

    def _require_open(self, held: Held) -> None:
        if held.row.state not in (State.PENDING, State.AWAITING_VAULT, State.CHECKING):
            raise _too_late(held.row)

    async def _stored(self, session_id: str, approval_id: str) -> RunRow:
        row = await self.database.read(lambda connection: rows.by_approval(connection, approval_id))
        if row is None or row.session_id != session_id:
            raise NotFound(f"There is no approval {approval_id} of this session.")
        return row


def _too_late(row: RunRow) -> Conflict:
    outcome = str(row.state)
    what = "was answered" if row.state in FINAL or row.state is State.CHECKING else "has begun"
    return Conflict(
        f"{row.approval_id} {what} already: {outcome}. Nothing changed.",
        details={"outcome": outcome},
    )
