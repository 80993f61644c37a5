"""View 4: actions and connectors: what is ready, not accepted, in error.

`python -m aileron_tui.screens.library` shows it on fixtures.
"""

from typing import ClassVar

from aileron_tui.input.commands import KeyContext
from aileron_tui.input.situation import View
from aileron_tui.screens.listing import ListScreen

__all__ = ["LibraryScreen"]


class LibraryScreen(ListScreen):
    """One row for each file in the home. A file is accepted, or its acceptance withdrawn, where its facts stand."""

    VIEW: ClassVar[View] = "library"
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ("library", "filter", "stop")


if __name__ == "__main__":
    from aileron_tui.screens.demo import show

    raise SystemExit(show("library"))
