"""A person's other devices on the port: how one is paired, confirmed and ended, and how it is shown."""

from dataclasses import dataclass, field
from typing import TypeAlias

from aileron_core.devices import DeviceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """A device that redeemed a link. Until a person confirmed it, it can do nothing."""

    device_id: str
    kind: DeviceKind
    words: tuple[str, ...]
    """Three, also on the device's screen; empty until it has shown its key."""
    program: str
    """The executable at the other end, as the kernel knows it; empty where that cannot be known."""
    pid: int | None
    confirmed: bool
    paired_at: float
    """Epoch seconds, of its link's redemption."""
    used_at: float
    """Epoch seconds, of its last request."""
    is_owners: bool = False
    """It was confirmed as the owner's."""
    over_ssh: bool = False
    """The program is below sshd. False: it is not, or that cannot be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeLink:
    """Make a link that pairs one device, once, within a minute; answered by `LinkMade`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmDevice:
    """A person compared these words on both screens: the device may show and decide from now on."""

    device_id: str
    words: tuple[str, ...]
    as_owners: bool = False
    """It may also do what `OwnersIntent` lists; a console alone can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndDevice:
    """End a device's pairing, or refuse it before it was confirmed; its open streams end at once."""

    device_id: str


DeviceIntent: TypeAlias = MakeLink | ConfirmDevice | EndDevice
"""Only a console takes these; no route does, and of devices one that is the owner's ends others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMade:
    """The answer to `MakeLink`; the same again, over by then, where a refused program used the link up."""

    url: str = field(repr=False)
    """The review page's address with the link's secret behind `#`: for a browser alone, never a log."""
    expires_at: float
    """Epoch seconds."""
    elsewhere: str = field(default="", repr=False)
    """The same at the first of `[review] origins`, for a device that is not on this machine; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesUpdated:
    """The devices that redeemed a link and have not ended, whole."""

    devices: tuple[DeviceView, ...] = ()
