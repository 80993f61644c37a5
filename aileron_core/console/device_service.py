"""Pairing, confirming and ending devices: on record, and published to front ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.audit.owners import OWNERS_REQUESTS
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.console.address import ConsoleAddress
from aileron_core.console.records import ConsoleRecords
from aileron_core.console_port.devices import (
    ConfirmDevice,
    DeviceIntent,
    DevicesUpdated,
    DeviceView,
    EndDevice,
    LinkMade,
    MakeLink,
)
from aileron_core.console_port.events import CoreEvent
from aileron_core.devices import CONSOLE, Hand
from aileron_core.devices.pairing import LINK_SECONDS, Device, Pairings, Program
from aileron_core.devices.signed import SignedIntent
from aileron_core.errors import AileronError, Forbidden, NotFound, StorageUnavailable
from aileron_core.events import EventBus
from aileron_core.sessions.processes import (
    Holders,
    is_ancestor,
    is_below_sshd,
    pids_at,
    read_process,
)
from aileron_core.sessions.registry import SessionRegistry

LINK_KEY: Final = "O"
"""With which a console makes a link, where a person gave that no key of their own."""
Address: TypeAlias = tuple[str, int]
_OF_A_SESSION: Final = "A program of an agent's session tried to pair a device"
_HIDDEN: Final = "A program of yours that hides its connection tried to pair a device"


class DeviceService:
    """The devices of this console, and what a person does with them.

    Args:
        origins: where the review page is served besides the console's own address (`[review] origins`).
        arm_ms: how long an item rests before an answer counts.
        link_key: the key that makes a link in the console.
        has_console: a person sits before this process, and confirms devices there.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        events: EventBus[CoreEvent],
        records: ConsoleRecords,
        address: ConsoleAddress,
        sessions: SessionRegistry,
        origins: Callable[[], Sequence[str]],
        arm_ms: Callable[[], int],
        link_key: Callable[[], str],
        has_console: bool,
    ) -> None:
        self._clock = clock
        self._events = events
        self._records = records
        self._address = address
        self._sessions = sessions
        self._origins = origins
        self._arm_ms = arm_ms
        self._link_key = link_key
        self.has_console = has_console
        self.pairings = Pairings(clock=clock, changed=self._changed)

    @property
    def origins(self) -> tuple[str, ...]:
        """Every origin that the review page may have."""
        return (self._address.url, *self._origins())

    @property
    def hosts(self) -> frozenset[str]:
        """The Host headers of requests for the review page."""
        elsewhere = (each.removeprefix("https://") for each in self._origins())
        return self._address.hosts.union(elsewhere)

    @property
    def arm_ms(self) -> int:
        return self._arm_ms()

    @property
    def link_key(self) -> str:
        return self._link_key()

    # A person's intents

    async def carry_out(self, intent: DeviceIntent, hand: Hand = CONSOLE) -> None:
        """Carry out *intent*, of a person at a console; *hand*: which one.

        Raises:
            AileronError: it did nothing; the message is written for the person.
        """
        match intent:
            case MakeLink():
                self._make_link()
            case ConfirmDevice():
                device = self.pairings.require_words(intent.device_id, intent.words)
                as_owners = intent.as_owners and device.kind == "console"
                await self._confirm(device, how="by its words", as_owners=as_owners)
            case EndDevice():
                device = self.pairings.end(intent.device_id)
                if device is None:
                    raise NotFound("That device is gone already. Nothing changed.")
                await self._record_end(device, "a person ended it", by="person", hand=hand)

    async def confirm_with_passphrase(
        self, words: tuple[str, ...], check: Callable[[], Awaitable[object]]
    ) -> None:
        """Confirm the console of these words at a server without one, as *check* finds the passphrase right.

        Raises:
            Forbidden: there is a console to confirm it in.
            NotFound: no console of these words asks.
            Conflict: there are as many devices as there may be.
            AileronError: of *check*.
        """
        if self.has_console:
            raise Forbidden("Confirm this console in the one that is open.")
        self.pairings.asking(words)
        await check()
        device = self.pairings.asking(words)
        await self._confirm(device, how="with the vault's passphrase", as_owners=True)

    async def _confirm(self, device: Device, *, how: str, as_owners: bool) -> None:
        owners = ", as the owner's" if as_owners else ""
        summary = f"A person confirmed a device {how}{owners}: {device.name}"
        device.is_being_confirmed = True
        try:
            await self._record(AuditEvent.DEVICE_PAIRED, summary, device, {"owners": as_owners})
        finally:
            device.is_being_confirmed = False
        device = self.pairings.require_words(device.device_id, device.words)
        self.pairings.confirm(device, as_owners=as_owners)

    async def record_asked(self, device: Device, signed: SignedIntent, kind: str) -> Hand:
        """Record what a person asks for with *device*, if it has not ended; return the hand with which it is done.

        Raises:
            StorageUnavailable: it could not be recorded.
        """
        if not device.ended.is_set():
            await self._records.record(
                AuditEvent.DEVICE_ASKED,
                f"A person asked with {device.name} to {OWNERS_REQUESTS[kind].says}",
                extra=_asked(device, signed, kind),
            )
        return Hand(name=device.name, proof={"asked": signed.signature.hex()})

    def unrecorded_hand(self, device: Device, signed: SignedIntent, kind: str) -> Hand:
        """Return the hand of what is done though `record_asked` failed: the records of what comes of it say it."""
        proof = {"asked": signed.signature.hex(), "unrecorded": _asked(device, signed, kind)}
        return Hand(name=device.name, proof=proof)

    def _make_link(self) -> None:
        self._publish_link(self.pairings.make_link(), self._clock.now() + LINK_SECONDS)

    def _publish_link(self, secret: str, expires_at: float) -> None:
        fragment = f"/review#{secret}"
        elsewhere = next(iter(self._origins()), "")
        self._events.publish(
            LinkMade(
                url=self._address.url + fragment,
                elsewhere=elsewhere and elsewhere + fragment,
                expires_at=expires_at,
            )
        )

    # What a device does

    async def redeem(
        self, secret: str, commitment: bytes, client: Address | None, server: Address | None
    ) -> Device:
        """Use a link up for a device whose request came from *client*.

        Raises:
            Forbidden: no such link waits; or it is a program of a session or one that may be, as it hides: then the
                link is used up.
            Conflict: there are as many devices as there may be.
            StorageUnavailable: a refusal could not be recorded.
        """
        self.pairings.require_link(secret)
        holders = Holders()
        if client is not None and server is not None:
            holders = await asyncio.to_thread(pids_at, client, server)
        is_of_a_session = any(self._is_of_a_session(pid) for pid in holders.pids)
        if is_of_a_session or not (holders.seen or holders.pids):
            self.pairings.use_up(secret)
            self._publish_link(secret, self._clock.now())
            extra = {"pids": sorted(holders.pids)}
            summary = _OF_A_SESSION if is_of_a_session else _HIDDEN
            await self._records.record(
                AuditEvent.DEVICE_REFUSED, summary, by="aileron", extra=extra
            )
            raise Forbidden(f"{summary}. It was refused, and the link is used up.")
        program = _program(holders.pids) if holders.seen else Program()
        return self.pairings.redeem(secret, commitment, program)

    async def attach(self, commitment: bytes, pid: int) -> Device:
        """Take a console, the process *pid* at the other end of the home's socket.

        Raises:
            Forbidden: it is a program of a session.
            Conflict: as of `Pairings.attach`.
            StorageUnavailable: a refusal could not be recorded.
        """
        if self._is_of_a_session(pid):
            await self._records.record(
                AuditEvent.DEVICE_REFUSED, _OF_A_SESSION, by="aileron", extra={"pids": [pid]}
            )
            raise Forbidden("A program of an agent's session cannot attach a console.")
        several = not self.has_console  # each is confirmed by a passphrase of its own
        if several and (over := self.pairings.make_way()) is not None:
            await self._record_end(over, "others asked after it")
        return self.pairings.attach(commitment, _program(frozenset({pid})), several=several)

    async def leave(self, device: Device) -> None:
        """End a console's pairing, as its stream has ended: nothing else of it is left."""
        if self.pairings.end(device.device_id) is not None:
            await self._record_end(device, "it was closed, or did not read")

    def _is_of_a_session(self, pid: int) -> bool:
        owners = (session.pid for session in self._sessions.all())
        return any(owner is not None and is_ancestor(owner, pid) for owner in owners)

    async def reveal(self, device_id: str, point: bytes, random: bytes) -> Device:
        """Take the key that a device committed to.

        Raises:
            Unauthorized: there is no such device, or this is not its key: then the pairing is over.
        """
        before = self.pairings.devices()
        try:
            return self.pairings.reveal(device_id, point, random)
        except AileronError:
            for each in before:
                if each.ended.is_set():
                    await self._record_end(each, "it showed another key than it had fixed")
            raise

    # Ends

    async def end_all(self, why: str, *, by: Actor = "aileron", hand: Hand = CONSOLE) -> None:
        """End every link and device at once, then record it.

        Raises:
            StorageUnavailable: they have ended; it could not be recorded.
        """
        await self._record_ends(self.pairings.end_all(), why, by=by, hand=hand)

    async def sweep(self) -> None:
        """End the devices that are gone or idle. Called every half second."""
        await self._record_ends(self.pairings.sweep(), "it was not used any more")

    async def _record_ends(
        self,
        ended: Sequence[Device],
        why: str,
        *,
        by: Actor = "aileron",
        hand: Hand = CONSOLE,
    ) -> None:
        """Record each of these ends, also after one that could not be."""
        failed: StorageUnavailable | None = None
        for device in ended:
            try:
                await self._record_end(device, why, by=by, hand=hand)
            except StorageUnavailable as error:
                failed = error
        if failed is not None:
            raise failed

    async def _record_end(
        self, device: Device, why: str, *, by: Actor = "aileron", hand: Hand = CONSOLE
    ) -> None:
        if device.confirmed.is_set():
            event, summary = AuditEvent.DEVICE_ENDED, f"The device {device.name} ended: {why}"
        else:
            event, summary = AuditEvent.DEVICE_REFUSED, f"A device was not confirmed: {why}"
        asked = {"asked_by": hand.name, **hand.proof} if hand.proof else {}
        await self._record(event, summary, device, asked, by=by)

    async def _record(
        self,
        event: AuditEvent,
        summary: str,
        device: Device,
        more: Mapping[str, Any] | None = None,
        *,
        by: Actor | None = None,
    ) -> None:
        program = device.program
        extra: dict[str, Any] = {"device": device.device_id, "kind": device.kind, **(more or {})}
        extra |= {"hand": device.name, "words": list(device.words)}
        extra |= {"device_key": device.point.hex()}
        extra |= {"pid": program.pid, "executable": program.executable}
        await self._records.record(event, summary, by=by, extra=extra)

    # Views

    def views(self) -> tuple[DeviceView, ...]:
        now, monotonic = self._clock.now(), self._clock.monotonic()
        return tuple(
            DeviceView(
                device_id=each.device_id,
                kind=each.kind,
                words=each.words,
                program=each.program.executable,
                pid=each.program.pid,
                confirmed=each.confirmed.is_set(),
                paired_at=each.paired_at,
                used_at=now - (monotonic - each.used_at),
                is_owners=each.is_owners,
                over_ssh=each.program.over_ssh,
            )
            for each in self.pairings.devices()
        )

    def _changed(self) -> None:
        self._events.publish(DevicesUpdated(devices=self.views()))


def _asked(device: Device, signed: SignedIntent, kind: str) -> dict[str, Json]:
    named = {"device": device.device_id, "hand": device.name, "intent": kind}
    return {**named, **signed.to_record()}


def _program(pids: frozenset[int]) -> Program:
    """Return the program that holds a connection; of several processes the oldest, which started the others."""
    if not pids:
        return Program()
    process = read_process(min(pids))
    return Program(
        pid=min(pids),
        executable=process.executable if process else "",
        over_ssh=is_below_sshd(min(pids)),
    )
