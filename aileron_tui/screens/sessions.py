"""View 5: who is at work."""

from typing import ClassVar

from aileron_tui.input.commands import KeyContext
from aileron_tui.input.situation import View
from aileron_tui.screens.listing import ListScreen

__all__ = ["SessionsScreen"]


class SessionsScreen(ListScreen):
    """One row for each open session; opened, what the kernel saw of it against what it claims."""

    VIEW: ClassVar[View] = "sessions"
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ("sessions", "filter", "stop", "end")
