"""From a person's yes to the end of the effect: recheck, then run, with the connector held alone."""

import logging
from dataclasses import dataclass, replace
from typing import Literal

from aileron_core.actions.model import Action
from aileron_core.approval.transitions import Event, State
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.errors import AileronError, Conflict, Paused, StorageUnavailable
from aileron_core.execution.executor import Ending, Executor, RunPlan
from aileron_core.gate.held import Drift, Held, Look
from aileron_core.gate.journal import Journal, Naming
from aileron_core.gate.locks import ConnectorLocks
from aileron_core.gate.looking import Lookout
from aileron_core.gate.pause import Pause
from aileron_core.gate.ports import Library

__all__ = ["Carrier", "finish"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recheck:
    verdict: Literal["holds", "differs", "conflict"]
    look: Look
    why: str = ""


class Carrier:
    """Carries an approved run out, or brings it back to the person with what has changed."""

    def __init__(
        self,
        *,
        executor: Executor,
        journal: Journal,
        lookout: Lookout,
        library: Library,
        locks: ConnectorLocks,
        clock: Clock,
        pause: Pause,
    ) -> None:
        self._executor = executor
        self._journal = journal
        self._lookout = lookout
        self._library = library
        self._locks = locks
        self._clock = clock
        self._pause = pause

    async def carry_out(self, held: Held) -> None:
        """Recheck *held* as the last thing before its effect, then run it; never raises for a failure."""
        try:
            async with self._locks.using(held.lock_keys(), alone=True):
                if await self._confirm(held):
                    await self._run(held)
        except StorageUnavailable:
            await self._back(held, "The audit could not be written, so nothing ran.")
        except Paused as held_up:
            await self._back(held, held_up.message)
        except AileronError as error:
            _log.error("carrying out %s failed with %s", held.row.run_id, type(error).__name__)
            await self._back(held, f"Nothing ran: {error.message}")

    async def _confirm(self, held: Held) -> bool:
        found = await self._recheck(held)
        async with held.turn:
            if held.row.state is not State.CHECKING:
                return False  # denied, expired or withdrawn while it was checked
            if held.row.expires_at is not None and held.row.expires_at <= self._clock.now():
                await self._expire(held)
                return False
            if found.verdict == "conflict":
                await self._conflict(held, found.why)
                return False
            if found.verdict == "differs":
                await self._differs(held, found.look, Event.DIFFERS)
                return False
            await self._journal.move(
                held, Event.HOLDS, Naming.RECHECKED, "What the person saw still holds"
            )
            self._pause.require_starts()
            await self._journal.move(
                held, Event.START, Naming.STARTED, f"Started {held.row.action}"
            )
            return True

    async def _recheck(self, held: Held) -> _Recheck:
        """Compare everything that the digest covers with what is there now."""
        assert held.loaded is not None
        async with (
            held.turn
        ):  # else a write of our own, on disk and not yet in memory, is taken for another's
            edited = held.tampered.union(await self._journal.compare(held))
        if edited:
            columns = ", ".join(sorted(edited))
            why = f"another program changed this run in the database ({columns})"
            return _Recheck(verdict="conflict", look=held.look, why=why)
        if changed := await self._library.changed_since(held.loaded):
            return _Recheck(verdict="conflict", look=held.look, why=changed)
        look = await self._lookout.fetch(held)
        digest, _ = held.consent(look)
        if digest != held.row.digest:
            return _Recheck(verdict="differs", look=look)
        return _Recheck(verdict="holds", look=look)

    async def _conflict(self, held: Held, why: str) -> None:
        error = Conflict(
            f"Nothing ran: {why} after it was shown for approval. Ask again.",
            details={"outcome": "failed"},
        )
        held.outcome = f"Nothing ran: {why} after you looked."
        await self._journal.move(
            held,
            Event.CONFLICT,
            Naming.CONFLICT,
            f"Nothing ran: {why}",
            failure=error.to_failure(held.row.run_id),
            ended_at=self._clock.now(),
        )

    async def _expire(self, held: Held) -> None:
        """End a run whose deadline passed between the yes and the effect; the digest covers it."""
        await self._journal.move(
            held,
            Event.EXPIRE,
            Naming.EXPIRED,
            f"The deadline of {held.row.action} passed before it began",
            ended_at=self._clock.now(),
        )

    async def _differs(self, held: Held, look: Look, event: Event) -> None:
        before, drift, words = held.look, held.drift, held.row.words
        digest, new_words = held.consent(look)
        held.drift = Drift(before=before, after=look, words_before=words)
        held.look = look
        # Once it has begun, only what is written leads on.
        write = self._journal.insist if event is Event.ASK_AGAIN else self._journal.move
        try:
            await write(
                held,
                event,
                Naming.DRIFTED,
                "Nothing ran: what would happen is not what was seen",
                {"digest_before": held.row.digest},
                digest=digest,
                words=new_words,
                decided_at=None,
                decided_by=None,
            )
        except AileronError:
            # What stands on the screen must be what the digest on record covers.
            held.look, held.drift = before, drift
            raise

    async def _run(self, held: Held) -> None:
        assert held.loaded is not None
        assert held.row.args is not None
        latest: list[_Recheck] = []

        async def still_holds() -> bool:
            try:
                found = await self._recheck(held)
            except AileronError as error:
                # It has begun: from here there is no way back, only an end on record.
                why = f"it could not be checked again ({error.class_})"
                found = _Recheck(verdict="conflict", look=held.look, why=why)
            latest.append(found)
            return found.verdict == "holds"

        plan = RunPlan(
            action=held.loaded.action, args=held.row.args, connectors=held.loaded.connectors
        )
        ending = await self._executor.run(plan, before_retry=still_holds)
        async with held.turn:
            if ending.kind != "differs":
                await finish(self._journal, held, ending, self._clock.now())
            elif latest[-1].verdict == "differs" and _may_begin_anew(plan.action, ending):
                await self._differs(held, latest[-1].look, Event.ASK_AGAIN)
            else:
                again = _not_repeated(latest[-1].why, ending, held.row.run_id)
                await finish(self._journal, held, again, self._clock.now())

    async def _back(self, held: Held, note: str) -> None:
        """Return to the person: the yes is void. Goes on until it is durable."""
        async with held.turn:
            event = {State.CHECKING: Event.UNDO, State.APPROVED: Event.RECOVER}.get(held.row.state)
            if event is not None:
                await self._journal.insist(
                    held, event, Naming.UNDONE, note, note=note, decided_at=None, decided_by=None
                )


def _may_begin_anew(action: Action, ending: Ending) -> bool:
    """Whether a second yes, which runs every step from the first, repeats only what may be repeated."""
    return all(step.idempotent is True for step in action.steps if step.id in ending.steps)


def _not_repeated(why: str, ending: Ending, run_id: str) -> Ending:
    """Return the end of a run whose step failed and could not be tried again."""
    reason = why or "what it would do differs now, and a step that must not run twice has run"
    failure = Conflict(
        f"A step failed and was not repeated: {reason}. Look at the service before you ask again.",
        details={"outcome": "failed", "completed_steps": list(ending.steps)},
    ).to_failure(run_id)
    return replace(ending, kind="failed", failure=failure)


async def finish(journal: Journal, held: Held, ending: Ending, now: float) -> None:
    """Write how a run ended. It has happened, so this goes on until it is durable."""
    extra: dict[str, Json] = {"steps": list(ending.steps)}
    if ending.last_status is not None:
        extra["status"] = ending.last_status
    action = held.row.action
    if ending.kind == "completed":
        await journal.insist(
            held,
            Event.COMPLETE,
            Naming.COMPLETED,
            f"{action} completed",
            extra,
            output={"output": ending.output, "steps": dict(ending.steps)},
            ended_at=now,
        )
        return
    assert ending.failure is not None
    unknown = ending.kind == "unknown"
    held.outcome = ending.failure.message
    await journal.insist(
        held,
        Event.LOSE if unknown else Event.FAIL,
        Naming.UNKNOWN if unknown else Naming.FAILED,
        f"{action}: outcome unknown" if unknown else f"{action} failed: {ending.failure.class_}",
        {**extra, "class": ending.failure.class_},
        failure=replace(ending.failure, audit_id=held.row.run_id),
        ended_at=now,
    )
