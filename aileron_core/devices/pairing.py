"""Pairs a device: a link that works once, a key that the device makes, three words on both screens.

A link alone opens nothing. The device commits to its key before it learns the console's part of the words,
or it could try keys until the words are those of another; then a person compares the words. All of it is in
memory and ends with the console. Nothing here waits or writes.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aileron_core.clock import Clock
from aileron_core.devices import DeviceKind
from aileron_core.devices.signed import MAX_NUMBER, is_key, is_signed, request_text
from aileron_core.errors import Conflict, Forbidden, NotFound, Unauthorized
from aileron_core.hash_words import three_words
from aileron_core.text import escape

LINK_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 30 * 60.0
GONE_SECONDS: Final = 60.0
"""Without a request or an open stream: the tab was closed."""
CONFIRM_SECONDS: Final = 5 * 60.0
"""How long a person has for confirming a device."""
MOST_DEVICES: Final = 4
_WORDS: Final = b"aileron pairing v1\0"
_WRONG_LINK: Final = "This link does not open anything. Make a new one in the console."
_NOT_PAIRED: Final = "This device is not paired. Pair it again in the console."


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program at the other end of a connection, as the kernel knows it."""

    pid: int | None = None
    executable: str = ""
    """Empty where it cannot be known: another user's, another machine's, macOS."""
    over_ssh: bool = False
    """It is below sshd. False: it is not, or that cannot be known."""


@dataclass(slots=True, kw_only=True, eq=False)
class Device:
    """One device that redeemed a link."""

    device_id: str
    kind: DeviceKind
    program: Program
    commitment: bytes
    link_sha256: bytes
    nonce: bytes
    paired_at: float
    """Epoch seconds."""
    used_at: float
    """Monotonic: of its last request since it was confirmed."""
    words: tuple[str, ...] = ()
    """Empty until it has shown its key."""
    point: bytes = b""
    """Its public key; empty as well until then."""
    is_being_confirmed: bool = False
    """A person has, and that is being recorded: it has its place, so that another cannot take it meanwhile."""
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_owners: bool = False
    """It was confirmed as the owner's: it may ask for more than answers."""
    console: int = 0
    """Which attached console it is, from 1; 0: a page."""
    number: int = -1
    """Of its last request."""
    streams: int = 0
    """How many it has open."""

    @property
    def name(self) -> str:
        """How decisions name it."""
        return f"attached {self.console}" if self.console else "-".join(self.words)


@dataclass(slots=True, kw_only=True)
class Pairings:
    """The links and the devices of one start of a console."""

    clock: Clock
    changed: Callable[[], object]
    """Called whenever a device is there, shows its key, is confirmed, or ends."""
    start: str = field(default_factory=lambda: secrets.token_hex(16))
    """Names this start: what was signed for another is worth nothing here."""
    _links: dict[bytes, float] = field(default_factory=dict[bytes, float])
    """SHA-256 of a link's secret, and until when it works (monotonic)."""
    _devices: dict[str, Device] = field(default_factory=dict[str, Device])
    _consoles: int = 0
    """How many consoles were attached."""

    def make_link(self) -> str:
        """Return the secret of a new link, 32 hexadecimal digits; it works once, for a minute."""
        secret = secrets.token_hex(16)
        self._links[_hashed(secret)] = self.clock.monotonic() + LINK_SECONDS
        return secret

    def require_link(self, secret: str) -> None:
        """Check that a link of this secret waits, and that there is room. Nothing is used up.

        Raises:
            Forbidden: no such link waits.
            Conflict: there are as many devices as there may be.
        """
        if self._links.get(_hashed(secret), 0.0) <= self.clock.monotonic():
            raise Forbidden(_WRONG_LINK)
        self._require_room()

    def _require_room(self, besides: int = 0) -> None:
        if len(self._devices) - besides >= MOST_DEVICES:
            raise Conflict(
                f"{MOST_DEVICES} devices are paired, and no more can be. End one in the console first."
            )

    def use_up(self, secret: str) -> None:
        """End a link, as `require_link` accepted it.

        Raises:
            Forbidden: another request was first.
        """
        if self._links.pop(_hashed(secret), None) is None:
            raise Forbidden(_WRONG_LINK)

    def redeem(self, secret: str, commitment: bytes, program: Program) -> Device:
        """Use a link up for a page that has fixed its key.

        Args:
            commitment: SHA-256 of the key's point and 32 random bytes.

        Raises:
            Forbidden, Conflict: as of `require_link`.
        """
        self.require_link(secret)
        self.use_up(secret)
        return self._add("page", program, commitment, _hashed(secret))

    def attach(self, commitment: bytes, program: Program, *, several: bool) -> Device:
        """Take a console that has fixed its key. It came over the home's socket, so it needs no link.

        Args:
            several: it takes nobody's place before it is confirmed, so others may ask beside it (`make_way`).

        Raises:
            Conflict: there are as many devices as there may be, or one that came so waits to be confirmed:
                no program may fill the places of others, nor hide among many.
        """
        for each in () if several else self._waiting():
            raise Conflict(
                f"Process {each.program.pid} ({escape(each.program.executable)}) asks to be attached already. "
                "Confirm or refuse it first, or end that process."
            )
        if not several:
            self._require_room()
        self._consoles += 1
        return self._add("console", program, commitment, _hashed(""), console=self._consoles)

    def _waiting(self) -> list[Device]:
        """Return the consoles that ask to be attached, the first one first."""
        consoles = [each for each in self._devices.values() if each.kind == "console"]
        return [e for e in consoles if not (e.confirmed.is_set() or e.is_being_confirmed)]

    def make_way(self) -> Device | None:
        """End the console that has asked longest, where as many ask as there may be; return it."""
        waiting = self._waiting()
        return self.end(waiting[0].device_id) if len(waiting) >= MOST_DEVICES else None

    def asking(self, words: tuple[str, ...]) -> Device:
        """Return the console of these words, which asks to be attached.

        Raises:
            NotFound: there is none.
            Conflict: there are as many devices as there may be.
        """
        found = next((each for each in self._waiting() if words and each.words == words), None)
        if found is None:
            raise NotFound("No console of these words asks to be attached. Compare them again.")
        self._require_room(besides=len(self._waiting()))
        return found

    def _add(
        self,
        kind: DeviceKind,
        program: Program,
        commitment: bytes,
        link_sha256: bytes,
        *,
        console: int = 0,
    ) -> Device:
        device = Device(
            device_id=f"dev-{secrets.token_hex(8)}",
            kind=kind,
            console=console,
            program=program,
            commitment=commitment,
            link_sha256=link_sha256,
            nonce=secrets.token_bytes(16),
            paired_at=self.clock.now(),
            used_at=self.clock.monotonic(),
        )
        self._devices[device.device_id] = device
        self.changed()
        return device

    def reveal(self, device_id: str, point: bytes, random: bytes) -> Device:
        """Take the key that the device committed to; its words are known from then on.

        Raises:
            Unauthorized: there is no such device, or it has a key, or this is not it: then the pairing is over.
        """
        device = self._devices.get(device_id)
        if device is None or device.point:
            raise Unauthorized(_NOT_PAIRED)
        committed = hashlib.sha256(point + random).digest()
        if not hmac.compare_digest(committed, device.commitment) or not is_key(point):
            self.end(device_id)
            raise Unauthorized(_NOT_PAIRED)
        # Each part has a length of its own, so nothing has to stand between them.
        said = (self.start.encode(), device.link_sha256, device.nonce, device_id.encode())
        device.words = three_words(
            hashlib.sha256(b"".join((_WORDS, *said, point, random))).digest()
        )
        device.point = point
        self.changed()
        return device

    def find(self, device_id: str) -> Device:
        """Return a device.

        Raises:
            NotFound: it has ended, or never was.
        """
        device = self._devices.get(device_id)
        if device is None:
            raise NotFound("That device is gone. Nothing changed.")
        return device

    def require_words(self, device_id: str, words: tuple[str, ...]) -> Device:
        """Return a device whose words a person saw.

        Raises:
            NotFound: there is no such device.
            Conflict: its words are others, or not known yet.
        """
        device = self.find(device_id)
        if not device.words or device.words != words:
            raise Conflict("The device shows other words. It was not confirmed.")
        return device

    def confirm(self, device: Device, *, as_owners: bool = False) -> None:
        """Let *device* show and decide from now on, if it has not ended meanwhile."""
        if self._devices.get(device.device_id) is device:
            device.is_owners = as_owners
            device.used_at = self.clock.monotonic()
            device.confirmed.set()
            self.changed()

    def authenticate(
        self,
        device_id: str,
        number: int,
        signature: bytes,
        path: str,
        body: bytes,
        *,
        peer: int | None = None,
    ) -> Device:
        """Return the device that signed a POST request, confirmed or not, and use its number up.

        Args:
            peer: the process at the other end of the home's socket; None: a page's request, over TCP.

        Raises:
            Unauthorized: no such device signed it, or it was sent before.
        """
        device = self._devices.get(device_id)
        if device is None or not device.point or not device.number < number <= MAX_NUMBER:
            raise Unauthorized(_NOT_PAIRED)
        # A console is the process that attached, and no other: its key is of no use elsewhere.
        if (device.kind == "console") != (peer is not None) or peer not in (
            None,
            device.program.pid,
        ):
            raise Unauthorized(_NOT_PAIRED)
        text = request_text(self.start, "POST", path, number, body)
        if not is_signed(device.point, signature, text):
            raise Unauthorized(_NOT_PAIRED)
        device.number = number
        if device.confirmed.is_set():
            device.used_at = self.clock.monotonic()
        return device

    def require_confirmed(self, device: Device) -> None:
        """Check that a person has confirmed *device*, and that it has not ended.

        Raises:
            Unauthorized: it is not so.
        """
        if not device.confirmed.is_set() or device.ended.is_set():
            raise Unauthorized(_NOT_PAIRED)

    def end(self, device_id: str) -> Device | None:
        """End a pairing at once, with its open streams; return the device, if there was one."""
        device = self._devices.pop(device_id, None)
        if device is not None:
            device.ended.set()
            self.changed()
        return device

    def end_all(self) -> tuple[Device, ...]:
        """End every link and every pairing, and return the devices."""
        self._links.clear()
        return tuple(device for each in tuple(self._devices) if (device := self.end(each)))

    def devices(self) -> tuple[Device, ...]:
        return tuple(self._devices.values())

    def sweep(self) -> tuple[Device, ...]:
        """Forget links that are over; end the devices that are gone or idle, and return them."""
        now = self.clock.monotonic()
        self._links = {each: until for each, until in self._links.items() if until > now}
        over = [each for each in self._devices.values() if now - each.used_at > _patience(each)]
        return tuple(device for each in over if (device := self.end(each.device_id)))


def _patience(device: Device) -> float:
    """Return after how many seconds without a request *device* ends."""
    if not device.confirmed.is_set():
        return CONFIRM_SECONDS
    return IDLE_SECONDS if device.streams else GONE_SECONDS


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
