"""The link that pairs a device, from the key that asks for it until it is redeemed or over; and the paired devices."""

from collections.abc import Hashable

from aileron_core.console_port.devices import DeviceView, LinkMade
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView


class Pairing:
    """What the console knows of its devices. Times are epoch seconds."""

    def __init__(self, devices: tuple[DeviceView, ...]) -> None:
        self.devices = devices
        self.browser: bool | None = None
        """Whether the link was opened in a browser here; None while that is not known."""
        self._link: LinkMade | None = None
        self._page = ""

    def ask(self, call: ApprovalView | None) -> None:
        """A link was asked for: to the page of *call* while that waits, else to the list of what does."""
        self._link, self.browser = None, None
        waits = call is not None and call.state in WAITING_STATES and call.approval_id
        self._page = f"/{call.approval_id}" if call is not None and waits else ""

    def on_link(self, link: LinkMade) -> None:
        if (
            self._link is None
            or link.url == self._link.url
            or link.expires_at > self._link.expires_at
        ):
            self._link = link  # else the end of an earlier one

    @property
    def is_made(self) -> bool:
        """The core answered, and no device has redeemed the link yet; its time may be over."""
        return self._link is not None

    def seconds_left(self, now: float) -> float:
        """Return for how long the link can still be redeemed."""
        return max(0.0, self._link.expires_at - now) if self._link is not None else 0.0

    def address(self, now: float) -> str:
        """Return the address to open here; empty where no link can be redeemed."""
        return self._to_page(self._link.url) if self._link and self.seconds_left(now) else ""

    def remote_address(self, now: float) -> str:
        """Return the same from another machine; empty where the person listed no origin for it."""
        return self._to_page(self._link.elsewhere) if self._link and self.seconds_left(now) else ""

    def code(self, now: float) -> str:
        """Return what stands in a QR code: an address as short as can be, so to the list of what waits."""
        return (
            (self._link.elsewhere or self._link.url)
            if self._link and self.seconds_left(now)
            else ""
        )

    def _to_page(self, url: str) -> str:
        return url.replace("#", f"{self._page}#", 1)

    def device(self, device_id: str | None) -> DeviceView | None:
        return next((each for each in self.devices if each.device_id == device_id), None)

    def version(self, device_id: str | None) -> tuple[Hashable, ...]:
        """Return what a person must look at anew when it differs, where a link or a device is asked about."""
        device = self.device(device_id)
        if device is None:
            return (self.is_made,)
        return (device.device_id, device.words, device.program, device.pid, device.confirmed)

    def update(self, devices: tuple[DeviceView, ...]) -> DeviceView | None:
        """Take the devices, whole; return one that has come since, and that nobody has confirmed."""
        known = {each.device_id for each in self.devices}
        came = [each for each in devices if each.device_id not in known]
        if any(each.kind == "page" for each in came):
            self._link = None
        self.devices = devices
        return next((each for each in came if not each.confirmed), None)
