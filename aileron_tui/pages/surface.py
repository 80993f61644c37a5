"""What a page needs of whatever shows it: a screen of Textual, or a test."""

from collections.abc import Callable
from typing import Literal, Protocol

from aileron_tui.draw.text import Line

Area = Literal[
    "topbar", "banner", "sidehead", "sidefoot", "decidedhead", "head", "gap", "rail", "empty",
    "sentence", "listhead", "detail", "guide", "status", "keys", "question", "panelkeys",
]  # fmt: skip
"""A place for lines; documents and lists have panes."""
Place = Literal["document", "field", "area", "secret", "nothing"]
"""Where what is typed goes."""


class TextField(Protocol):
    """The line in which a person types what may be seen."""

    @property
    def value(self) -> str: ...

    def ask(self, text: str, placeholder: str, limit: int) -> None:
        """Begin with *text*; at most *limit* characters can be typed."""
        ...

    def put(self, text: str) -> None:
        """Put *text* there, the cursor behind it."""
        ...

    def edits_by(self, key: str, *, printable: bool) -> bool:
        """Return whether *key* types something, or edits what was typed."""
        ...


class Surface(Protocol):
    """Shows one page. Sizes are in cells."""

    @property
    def is_ready(self) -> bool:
        """Its areas are there: a closing screen outlives them by a moment."""
        ...

    @property
    def is_current(self) -> bool:
        """It is the present view, perhaps below help or the palette."""
        ...

    @property
    def is_uncovered(self) -> bool:
        """Nothing stands over it."""
        ...

    @property
    def lacks_letters(self) -> bool:
        """Some letters cannot be drawn here."""
        ...

    @property
    def field(self) -> TextField: ...

    @property
    def area(self) -> TextField: ...

    def arrange_as(self, **classes: bool) -> None:
        """Take the arrangement that *classes* name; the stylesheet says what each does."""
        ...

    def show(self, area: Area, *rows: Line) -> None:
        """Show *rows* in *area*."""
        ...

    @property
    def rail_size(self) -> tuple[int, int]: ...

    def set_rows(self, pane: Literal["queue", "decided"], rows: int | None) -> None:
        """Make the list *rows* high; None: as high as the stylesheet says."""
        ...

    def focus_on(self, place: Place) -> None:
        """Let *place* have what is typed."""
        ...

    def after_paint(self, callback: Callable[[], None]) -> None:
        """Call *callback* once all that was drawn so far is on screen."""
        ...

    def wake_in(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call *callback* in *seconds*, in place of what was to be called before."""
        ...

    def settle_in(self, seconds: float) -> None:
        """Have `Page.settle` called in *seconds*, behind every key that has arrived by then."""
        ...

    def redraw_soon(self) -> None:
        """Have the page drawn again. Safe on any thread."""
        ...

    def request(self, command: str) -> None:
        """Have the application do *command*: another view, help, quit."""
        ...

    def copy(self, text: str) -> None:
        """Copy *text*, as it is drawn, to the clipboard."""
        ...

    def read_in_pager(self, text: str, name: str) -> None:
        """Show *text*, as it is drawn, in the person's pager; *name* is ours, or empty."""
        ...

    def open_link(self, url: str) -> None:
        """Open an address that a person was shown whole in the browser; *url* is all ASCII."""
        ...
