"""What front ends ask of the core: a snapshot of everything, and to carry out a person's intents."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, TypeAlias

from aileron_core.audit.events import AuditEvent
from aileron_core.clock import Clock
from aileron_core.console.account_commands import AccountCommands
from aileron_core.console.address import ConsoleAddress
from aileron_core.console.audit_reader import AuditReader
from aileron_core.console.call_reader import CallReader
from aileron_core.console.device_service import DeviceService
from aileron_core.console.grants import GrantCommands
from aileron_core.console.history_reader import HistoryReader
from aileron_core.console.publisher import EventPublisher
from aileron_core.console.records import ConsoleRecords, StorageMonitor
from aileron_core.console.vault_service import VaultService, Way
from aileron_core.console.view_mapping import records_from
from aileron_core.console_port.account_intents import AccountIntent, ModelKeyIntent
from aileron_core.console_port.account_views import AccountRefused
from aileron_core.console_port.devices import ConfirmDevice, EndDevice, MakeLink
from aileron_core.console_port.events import (
    CoreEvent,
    IntentRefused,
    PauseChanged,
    Snapshot,
    VaultRefused,
)
from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Acknowledge,
    AllowHost,
    Approve,
    ChooseAccount,
    CommandIntent,
    CountCalls,
    Deny,
    EditCall,
    EndSession,
    ExportAudit,
    Intent,
    MarkReadBackSeen,
    ReadApprovals,
    ReadCall,
    ReadHistory,
    ReadRecord,
    ReadRecords,
    ReadStanding,
    RefetchPreview,
    RefreshPreview,
    ReleaseServer,
    RemoveFile,
    SetPause,
    StandingIntent,
    StopEverything,
    StopRun,
    UndoRun,
    VaultIntent,
    VerifyAudit,
    WithdrawAcceptance,
)
from aileron_core.credentials.model_keys import ModelKeys
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import AileronError, NotFound, StorageUnavailable
from aileron_core.events import EventBus
from aileron_core.hash_words import two_words
from aileron_core.history.sealed_screens import SealedScreens
from aileron_core.home.layout import Home
from aileron_core.library.home_library import HomeLibrary
from aileron_core.runs import ApprovalService
from aileron_core.runs.account_waits import AccountWaits
from aileron_core.runs.emergency_stop import EmergencyStop
from aileron_core.runs.outcomes import OutcomeService
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.transitions import RunState
from aileron_core.runs.undo import UndoService
from aileron_core.sessions.service import SessionService
from aileron_core.storage.database import Database

_CallIntent: TypeAlias = (
    Approve | Deny | EditCall | RefreshPreview | RefetchPreview | Acknowledge | ChooseAccount | StopRun | UndoRun
)  # fmt: skip
_ReadIntent: TypeAlias = (
    ReadCall | ReadHistory | CountCalls | ReadRecords | ReadRecord | VerifyAudit | ExportAudit
)
_OtherIntent: TypeAlias = (
    MarkReadBackSeen | Accept | AcceptSuite | WithdrawAcceptance | RemoveFile | SetPause
    | ReleaseServer | StopEverything | EndSession | AllowHost | MakeLink | ConfirmDevice | EndDevice | ReadApprovals
)  # fmt: skip
_log = logging.getLogger(__name__)
_MOST_NEEDS: Final = 50
"""Calls of which `status` says what they wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleService:
    """The core's side of the console port, on the core's own loop."""

    version: str
    home: Home
    routes: tuple[str, ...]
    """`host:port -> address:port`, from `--route`."""
    accepted_installed: bool
    inspects_models: bool
    address: ConsoleAddress
    events: EventBus[CoreEvent]
    publisher: EventPublisher
    storage: StorageMonitor
    records: ConsoleRecords
    database: Database
    clock: Clock
    registry: RunRegistry
    approvals: ApprovalService
    outcomes: OutcomeService
    account_waits: AccountWaits
    accounts: AccountCommands
    model_keys: ModelKeys
    library: HomeLibrary
    sessions: SessionService
    pause: PauseSwitch
    emergency_stop: EmergencyStop
    audit: AuditReader
    calls: CallReader
    history: HistoryReader
    undo: UndoService
    devices: DeviceService
    grants: GrantCommands
    screens: SealedScreens
    vault: VaultService

    # Reading

    async def snapshot(self, records: int = 500) -> Snapshot:
        """Return everything that a front end draws first; events published after it are later than it."""
        found = await self.database.read(lambda connection: records_from(connection, records))
        approvals, more = self.publisher.first_approvals()
        standing = self.grants.updated()
        return Snapshot(
            version=self.version,
            home=str(self.home.path),
            url=self.address.url,
            routes=self.routes,
            accepted_installed=self.accepted_installed,
            inspects_models=self.inspects_models,
            approvals=approvals,
            approvals_remaining=more,
            sessions=self.publisher.sessions(),
            not_accepted=self.library.not_accepted(),
            problems=self.library.problems_and_alarms(),
            actions_ready=len(self.library.ready()),
            records=found,
            head_words=two_words(self.database.head.hash),
            health=self.storage.health,
            library=self.library.items(),
            settings_accepted=self.library.settings_accepted,
            paused_at=self.pause.paused_since,
            vault=self.vault.status(),
            accounts=self.accounts.accounts(),
            devices=self.devices.views(),
            grants=standing.grants,
            rules=standing.rules,
        )

    def status(self) -> dict[str, Any]:
        """Return what `aileron status` shows."""
        vault = self.vault.status()
        return {
            "running": True,
            "url": self.address.url,
            "pid": os.getpid(),
            "version": self.version,
            "pending": sum(
                1
                for run in self.registry
                if run.row.approval_id and not run.is_final and not run.is_in_background
            ),
            "sessions": len(self.sessions.registry.all()),
            "devices": [
                {
                    "words": list(each.words),
                    "kind": each.kind,
                    "program": each.program,
                    "pid": each.pid,
                    "confirmed": each.confirmed,
                }
                for each in self.devices.views()
            ],
            "account_needs": list(islice(self._account_needs(), _MOST_NEEDS)),
            "vault": vault.state,
            "unattended": vault.unattended,
            "link_key": self.devices.link_key,
        }

    def _account_needs(self) -> Iterator[dict[str, str]]:
        for run in self.registry:
            need = run.account_need
            if need is not None and run.row.state is RunState.AWAITING_VAULT:
                yield {
                    "approval_id": run.row.approval_id or "",
                    "reason": need.reason,
                    "connector": need.connector,
                    "kind": need.kind,
                    "problem": need.problem,
                    "command": need.command,
                }

    # Intents

    async def submit(self, intent: Intent, hand: Hand = CONSOLE) -> None:
        """Carry out *intent*; `IntentRefused` is published if it did nothing. *hand*: with which it decides."""
        try:
            await self.carry_out(intent, hand)
        except AileronError as error:
            if isinstance(error, StorageUnavailable):
                self.storage.report_failure(error.message)
            self.refuse(intent, error.message)
        except OSError as error:
            self.refuse(intent, f"It could not be written: {error.strerror}. Nothing changed.")
        except Exception as error:  # noqa: BLE001 - the task's edge: a key that does nothing must say so
            _log.error("an intent ended with %s", type(error).__name__)
            self.refuse(
                intent,
                "Aileron had an internal error. Nothing changed. Run `aileron logs` to see where.",
            )

    def refuse(self, intent: Intent, message: str) -> None:
        """Publish that *intent* did nothing."""
        if isinstance(intent, AccountIntent):
            self.events.publish(AccountRefused(message=message))
            return
        about = getattr(intent, "approval_id", "") or getattr(intent, "call_id", "")
        self.events.publish(IntentRefused(call_id=about, message=message))

    async def carry_out(self, intent: Intent, hand: Hand = CONSOLE) -> None:
        """Carry out *intent* for the console, and publish what answers it. *hand*: with which it decides.

        Raises:
            AileronError: it did nothing, or only a part; the message is written for the person.
        """
        if isinstance(intent, AccountIntent):
            await self.accounts.carry_out(intent, self.events, hand)
            return
        if isinstance(intent, VaultIntent | ModelKeyIntent):
            await self._about_the_vault(intent, hand)
            return
        if isinstance(intent, _CallIntent):
            await self._about_a_call(intent, hand)
            return
        if isinstance(intent, _ReadIntent):
            self.events.publish(await self._read(intent))
            return
        if isinstance(intent, StandingIntent):
            await self.grants.carry_out(intent)
            return
        await self._about_the_rest(intent, hand)

    async def _about_the_rest(self, intent: _OtherIntent, hand: Hand) -> None:
        match intent:
            case MarkReadBackSeen():
                await self.outcomes.mark_seen(intent.run_id)
            case Accept() | AcceptSuite() | WithdrawAcceptance() | RemoveFile():
                successions = self.library.successions()
                try:
                    await self._about_a_file(intent, hand)
                finally:  # where some files of a suite were gone, the others are accepted
                    await self.accounts.follow(successions, hand)
            case ReleaseServer():
                self.library.release_server(intent.name)
            case SetPause():
                await self._set_pause(hand, on=intent.paused)
            case StopEverything():
                await self._stop_everything(hand)
            case EndSession() | AllowHost():
                await self._about_a_session(intent, hand)
            case MakeLink() | ConfirmDevice() | EndDevice():
                await self.devices.carry_out(intent, hand)
            case ReadApprovals():
                await self.publisher.publish_approvals_after(
                    intent.requested_at, intent.run_id, self.events
                )

    async def _about_the_vault(self, intent: VaultIntent | ModelKeyIntent, hand: Hand) -> None:
        """Carry out *intent*; `VaultRefused` says what did not work, and quotes nothing."""
        try:
            answer = await self.answer(intent, "console", hand)
        except (AileronError, OSError) as error:
            if isinstance(error, StorageUnavailable):
                self.storage.report_failure(error.message)
            answer = _vault_refusal(error)
        if answer is not None:
            self.events.publish(answer)

    async def answer(
        self, intent: CommandIntent, way: Way, hand: Hand = CONSOLE
    ) -> CoreEvent | None:
        """Carry out *intent*, given in this *way*; return what it says to who asked, and publish what changed.

        Raises:
            AileronError, OSError: it did nothing; the message is written for the person.
        """
        if isinstance(intent, VaultIntent):
            return await self.vault.answer(intent, way, hand)
        if isinstance(intent, AccountIntent):
            return await self.accounts.answer(intent)
        if isinstance(intent, RemoveFile):
            return await self.library.remove(intent.kind, intent.file)
        if isinstance(intent, ReadStanding):
            return self.grants.listed()
        return await self.model_keys.answer(intent)

    async def _about_a_call(self, intent: _CallIntent, hand: Hand) -> None:
        approvals = self.approvals
        match intent:
            case Approve() | Deny():
                await self.decide(intent, hand)
            case EditCall():
                await approvals.edit(intent.approval_id, intent.digest, intent.args)
            case RefreshPreview():
                await approvals.refresh(intent.approval_id)
            case RefetchPreview():
                await self.outcomes.look_again(intent.call_id)
            case Acknowledge():
                await self.outcomes.acknowledge(intent.call_id, intent.looked_at)
            case ChooseAccount():
                await self.account_waits.choose(
                    intent.approval_id,
                    intent.connector,
                    intent.binding,
                    remember=intent.remember,
                    hand=hand,
                )
            case UndoRun():
                await self.undo.undo(intent.run_id)
            case StopRun():
                await approvals.stop(intent.run_id)

    async def decide(self, intent: Approve | Deny, hand: Hand = CONSOLE) -> None:
        """Approve or deny with *hand*, then keep what was shown.

        Raises:
            AileronError: nothing was decided; the message is written for the person.
        """
        run, at = self.registry.by_approval(intent.approval_id), self.clock.now()
        on_screen = isinstance(intent, Approve) or intent.on_screen
        shown = self.publisher.view(run) if run is not None and on_screen else None
        if isinstance(intent, Approve):
            await self.approvals.approve(
                intent.approval_id,
                intent.digest,
                unseen_lines=intent.unseen_lines,
                grant=intent.grant,
                hand=hand,
            )
        else:
            await self.approvals.deny(
                intent.approval_id, intent.reason, grant=intent.grant, hand=hand
            )
        if shown is None or (isinstance(intent, Approve) and shown.digest != intent.digest):
            return
        approved = isinstance(intent, Approve)
        reason = "" if isinstance(intent, Approve) else intent.reason
        self.grants.past.note(shown, at, approved=approved, reason=reason)
        shown = replace(shown, inputs=())  # the same values as `arguments`, which are read
        try:
            await self.screens.keep(shown, "approved" if approved else "denied", at)
        except StorageUnavailable as error:  # the decision itself is on record
            self.storage.report_failure(error.message)

    async def _about_a_file(
        self, intent: Accept | AcceptSuite | WithdrawAcceptance | RemoveFile, hand: Hand
    ) -> None:
        match intent:
            case AcceptSuite():
                await self.library.accept_suite(
                    intent.suite_id,
                    intent.files,
                    by="person",
                    run_seconds=dict(intent.run_seconds),
                    signed_with=dict(intent.signed_with),
                    hand=hand,
                )
            case WithdrawAcceptance():
                await self.library.withdraw_acceptance(intent.kind, intent.name, intent.digest)
            case RemoveFile():
                await self.library.remove(intent.kind, intent.file)
            case Accept(kind=kind, name=name):
                await self.library.accept(
                    kind,
                    name,
                    intent.digest,
                    by="person",
                    run_seconds=intent.run_seconds,
                    signed_with=intent.signed_with,
                    hand=hand,
                )
                if kind == "settings":
                    await self.account_waits.sweep()
                if kind == "preview":
                    self.approvals.refresh_previews_refused(name)

    async def _read(self, intent: _ReadIntent) -> CoreEvent:
        match intent:
            case ReadCall():
                return await self.calls.read(intent.run_id)
            case ReadHistory():
                return await self.history.read(intent.query, intent.start, intent.limit)
            case CountCalls():
                return await self.history.count(intent.hours)
            case ReadRecords():
                return await self.audit.page(intent.before_seq, intent.limit)
            case ReadRecord():
                return await self.audit.record(intent.seq)
            case VerifyAudit():
                return await self.audit.verify()
            case ExportAudit():
                return await self.audit.export()

    async def _set_pause(self, hand: Hand, *, on: bool) -> None:
        """Hold all calls, at once; or let them go on, once that is on record."""
        if on == (self.pause.paused_since is not None):
            return
        if not on:
            await self.records.record_by_person(
                AuditEvent.CONSOLE_RESUMED, "A person resumed all calls", hand
            )
            self.pause.resume()
            self.events.publish(PauseChanged(paused_at=None))
            self.grants.changed()
            return
        self.pause.pause(self.clock.now())
        self.events.publish(PauseChanged(paused_at=self.pause.paused_since))
        self.grants.changed()
        try:
            await self.records.record_by_person(
                AuditEvent.CONSOLE_PAUSED, "A person put all calls on hold", hand
            )
        except StorageUnavailable as error:
            raise StorageUnavailable(
                f"All calls are on hold, but that could not be recorded: {error.message}"
            ) from error

    async def _stop_everything(self, hand: Hand) -> None:
        """Stop what runs and waits, whatever becomes of the record that devices ended, which they do first."""
        self.grants.standing.grants.end_where(lambda _: True, "a person stopped everything")
        try:
            await self.devices.end_all("a person stopped everything", by="person", hand=hand)
        finally:
            self.events.publish(await self.emergency_stop.stop_everything(hand))

    async def _about_a_session(self, intent: EndSession | AllowHost, hand: Hand) -> None:
        if isinstance(intent, AllowHost):
            await self.sessions.allow_host(intent.session_id, intent.host)
        elif not await self.sessions.end(
            intent.session_id, "a person ended it", by="person", hand=hand
        ):
            raise NotFound("That session has already ended. Nothing changed.")


def _vault_refusal(error: AileronError | OSError) -> VaultRefused:
    if isinstance(error, OSError):
        return VaultRefused(message=f"The vault could not be written: {error.strerror}.")
    wait = error.details.get("wait_seconds", 0)
    return VaultRefused(message=error.message, wait_seconds=float(wait))
