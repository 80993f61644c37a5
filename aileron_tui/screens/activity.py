"""View 2: what agents did, newest first."""

from typing import ClassVar

from aileron_tui.input.commands import KeyContext
from aileron_tui.input.situation import View
from aileron_tui.screens.listing import ListScreen

__all__ = ["ActivityScreen"]


class ActivityScreen(ListScreen):
    """One row for each call. It follows the newest until the cursor moves."""

    VIEW: ClassVar[View] = "activity"
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ("activity", "filter", "stop")
