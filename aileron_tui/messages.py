"""The console's own messages: from the core, and from widgets to screens."""

from collections.abc import Callable
from dataclasses import dataclass

from textual.message import Message

from aileron_core.console_port.events import CoreEvent


class CoreEventArrived(Message):
    """An event of the core, which it published on its own thread."""

    def __init__(self, event: CoreEvent) -> None:
        super().__init__()
        self.event = event


@dataclass
class DocumentClicked(Message):
    """The document was clicked, at a link where *href* is not empty."""

    href: str


class SizeChanged(Message):
    """A widget got another size: what it shows must be laid out anew."""


@dataclass
class RowClicked(Message):
    """A row of a list was clicked."""

    row: int
    list_id: str | None


@dataclass
class PieceClicked(Message):
    """A piece of a line was clicked that names an action."""

    action: str


@dataclass
class CommandRequested(Message):
    """A key asked for an application-wide command: another view, help, quit."""

    action: str


@dataclass
class Painted(Message):
    """A screen was written to the terminal; *then* is called once the terminal has drawn it."""

    callback: Callable[[], None]


class CoreEventsReady(Message):
    """Events of the core are queued."""


@dataclass
class NotificationFailed(Message):
    """A configured notification failed; reported once, in a sentence of the console's own."""

    reason: str


class SettleDue(Message):
    """A press may have had its silence. It goes by the application's queue, behind every key."""


@dataclass
class PagerRequested(Message):
    """A text, as it is drawn, is to be read in the pager; *name* is ours, or empty."""

    text: str
    name: str
