"""View 4: actions and connectors: what is ready, held back, in error."""

from typing import ClassVar

from aileron_tui.input.commands import KeyContext
from aileron_tui.input.situation import View
from aileron_tui.screens.listing import ListScreen

__all__ = ["LibraryScreen"]


class LibraryScreen(ListScreen):
    """One row for each file in the home. A file is taken in or held back where its facts stand."""

    VIEW: ClassVar[View] = "library"
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ("library", "filter", "stop")
