"""Runs that wait for the vault or for an account: put there, and let go on once it is unlocked or bound."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from aileron_core import tasks
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import AileronError, Conflict, NotFound
from aileron_core.runs.interfaces import Accounts
from aileron_core.runs.live_run import LiveRun, NonceSource, PreviewResult, random_nonce
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.standing import StandingAnswers
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunEvent, RunState

_log = logging.getLogger(__name__)

WAITS = {
    "locked": "the vault",
    "settings": "a person to accept the settings",
    "unbound": "an account",
    "choice": "a person to pick an account",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountWaits:
    """Moves runs between waiting for an account and waiting for a person, or running.

    `resume` runs an ungated run that has its accounts now. `refusal` says why a run must not go on, because
    what was accepted did not verify once the vault was unlocked, and `refuse` ends it so.
    """

    accounts: Accounts
    registry: RunRegistry
    store: RunStore
    standing: StandingAnswers
    look_first: Callable[[LiveRun], Coroutine[Any, Any, None]]
    clock: Clock
    refusal: Callable[[LiveRun], AileronError | None]
    refuse: Callable[[LiveRun, AileronError], Coroutine[Any, Any, None]]
    resume: Callable[[LiveRun], Coroutine[Any, Any, None]]
    nonce_of: NonceSource = random_nonce
    _sweeping: asyncio.Lock = field(default_factory=asyncio.Lock)

    def changed(self) -> None:
        """Look at every waiting run again: the vault was locked or unlocked, or an account changed."""
        tasks.spawn(self.sweep(), name="look at accounts again")

    async def sweep(self, runs: Iterable[LiveRun] | None = None) -> None:
        """Give every waiting run its accounts, or those of *runs*, or put it where it waits for them."""
        async with self._sweeping:
            for run in self.registry if runs is None else runs:
                try:
                    await self._look(run)
                except AileronError as error:
                    _log.error("%s waits on: %s", run.row.run_id, type(error).__name__)

    async def choose(
        self,
        approval_id: str,
        connector: str,
        binding: str,
        *,
        remember: bool,
        hand: Hand = CONSOLE,
    ) -> None:
        """Take a person's choice among the accounts that count for *connector*, for this call.

        Args:
            remember: for later calls of the action too, as long as its file is this one.
            hand: with which they chose.

        Raises:
            NotFound: no such call in this console.
            Conflict: it waits for no such choice.
            VaultLocked, StorageUnavailable, OSError: it could not be remembered; nothing was picked.
        """
        run = self.registry.by_approval(approval_id)
        if run is None:
            raise NotFound(f"No approval {approval_id} waits in this console.")
        async with run.lock:
            need = run.account_need
            if (
                run.row.state is not RunState.AWAITING_VAULT
                or need is None
                or need.connector != connector
                or binding not in {each.name for each in need.candidates}
            ):
                raise Conflict("This call does not wait for that choice any more. Nothing changed.")
            if remember and run.resolved is not None:
                resolved = run.resolved
                await self.accounts.remember(
                    binding, resolved.connectors.values(), connector, resolved.file, hand
                )
            run.account_choices[connector] = binding
        async with self._sweeping:
            await self._look(run, hand)

    async def _look(self, run: LiveRun, hand: Hand = CONSOLE) -> None:
        if run.admission is not None and run.row.approval_id is not None:
            with suppress(AileronError):  # it is being written, with what counted a moment ago
                await asyncio.shield(run.admission)
        if run.resolved is None or not run.is_waiting:
            return
        async with run.lock:
            if not run.is_waiting:
                return
            connectors, need = self.accounts.assign(
                run.resolved.connectors, run.account_choices, run.resolved.file
            )
            resolved = replace(run.resolved, connectors=connectors)
            if run.row.state is RunState.PENDING:
                if (
                    need is not None
                    or resolved.consented_accounts != run.resolved.consented_accounts
                ):
                    await self._wait(run, need)
                if need is not None or run.row.state is RunState.PENDING:
                    return
            elif need is not None:
                if need != run.account_need:
                    run.account_need = need
                    self.store.notify(run)
                return
            if (error := self.refusal(run)) is not None:
                tasks.spawn(self.refuse(run, error), name=f"refuse {run.row.run_id}")
                return
            run.resolved = resolved
            if run.row.gated:
                await self._ask(run, hand)
                return
            run.account_need = None
            self.store.notify(run)
        tasks.spawn(self.resume(run), name=f"resume {run.row.run_id}")

    async def _wait(self, run: LiveRun, need: AccountNeed | None) -> None:
        """Have a run that a person could have answered wait for its accounts; what was shown is void."""
        before = run.preview, run.drift
        run.account_need, run.drift = need, None
        run.preview = PreviewResult(status="none", fetched_at=self.clock.now())
        try:
            await self.store.transition(
                run,
                RunEvent.NEED_VAULT,
                AuditEvent.RUN_NEEDS_ACCOUNT,
                f"{run.row.action_name} waits for {WAITS[need.reason if need else 'locked']}",
                need_members(need),
                digest=None,
                words=None,
            )
        except AileronError:
            run.account_need, (run.preview, run.drift) = None, before
            raise

    async def _ask(self, run: LiveRun, hand: Hand) -> None:
        """Put a run that has its accounts before a person."""
        assert run.resolved is not None
        run.nonce = self.nonce_of(run.row)
        digest, words = None, None
        now = self.clock.now()
        preview = PreviewResult(status="fetching" if run.has_preview else "none", fetched_at=now)
        if not run.has_preview:
            digest, words = run.consent(preview)
        before, run.preview = (run.preview, run.account_need), preview
        run.account_need = None
        run.is_tried, run.was_listed = self.standing.try_once(run), True
        try:
            await self.store.transition(
                run,
                RunEvent.ASK,
                AuditEvent.RUN_HAS_ACCOUNT,
                f"{run.row.action_name} waits for a person",
                {"accounts": list[Json](run.resolved.accounts), **hand.mark()},
                digest=digest,
                words=words,
            )
        except AileronError:
            run.preview, run.account_need = before
            run.is_tried = False
            raise
        if run.has_preview or run.is_tried:
            tasks.spawn(self.look_first(run), name=f"preview {run.row.run_id}")


def need_members(need: AccountNeed | None) -> dict[str, Json]:
    """Return what a record says of *need*."""
    if need is None:
        return {}
    return {"needs": need.reason, "connector": need.connector, "kind": need.kind}
