"""The call that the present page is about: what the core said of it, and the screen in which it was decided."""

from collections.abc import Sequence
from math import inf

from aileron_core.console_port.events import CallRead
from aileron_core.console_port.intents import ReadCall
from aileron_core.console_port.view_models import FINAL_STATES, CallView, DecidedScreenView
from aileron_tui.draw.blocks import COMPACT_GUTTER, Block, Layout
from aileron_tui.draw.call_page import Parts, call_parts
from aileron_tui.draw.header import item_head, warnings_beyond_head
from aileron_tui.draw.text import Line
from aileron_tui.items import Item
from aileron_tui.state.decision_screens import RECORDED_SECONDS, DecisionScreen, DecisionScreens
from aileron_tui.state.document_cache import (
    DocumentCache,
    IdentityKey,
    LayoutOptions,
    is_large,
)

CallPage = tuple[tuple[Line, ...], Layout]
"""Head and document."""
REST_SECONDS = 0.15
"""So long the cursor rests on a row before the call beside it is read."""


class OpenedCall:
    """One call, read once it is opened and anew after each of its records."""

    def __init__(self, screens: DecisionScreens) -> None:
        self._screens = screens
        self._until = inf
        self._stale: bool = False
        self._asked = ""
        """Of which run the last reading is, until it is answered."""
        self._rests_since: float | None = None
        """Monotonic seconds; None while no rest is waited for."""
        self.reads = 0
        """How many answers came."""
        self.run_id: str = ""
        """Empty: no call is opened."""
        self.call: CallView | None = None
        """None until it was read, and where there is none."""

    def open(self, run_id: str, until: float = inf) -> None:
        """Turn to the call of *run_id*; its screen is the last one before *until*, epoch seconds."""
        self._until = until
        if run_id != self.run_id:
            self.run_id = run_id
            self.call = None
            self._stale, self._rests_since = bool(run_id), None

    @property
    def screen(self) -> DecisionScreen | None:
        """The screen in which it was decided; None where that is not kept, or cannot be read."""
        if (screen := self._screens.find(self.run_id or None, self._until)) is not None:
            return screen
        kept = self._kept_screen()
        if kept is None or kept.approval is None:
            return None
        return DecisionScreen(at=kept.at, item=Item(key=self._key, approval=kept.approval))

    @property
    def _key(self) -> str:
        return f"opened {self.run_id}"

    def _kept_screen(self) -> DecidedScreenView | None:
        """Return what the core has of the last decision before the time that was asked for."""
        kept = reversed(self.call.screens) if self.call is not None else ()
        return next((each for each in kept if each.at < self._until + RECORDED_SECONDS), None)

    def next_read(self, at: float = 0.0, *, beside: bool = False) -> ReadCall | None:
        """Return what is to be asked of the core at *at*, monotonic seconds.

        *beside* a list only once the cursor rests there, and when the reading before it was answered.
        """
        if not self._stale:
            return None
        if beside:
            self._rests_since = at if self._rests_since is None else self._rests_since
            if self._asked or self.rest_left(at):
                return None
        self._stale, self._asked = False, self.run_id
        return ReadCall(run_id=self.run_id)

    def rest_left(self, at: float) -> float:
        """Return for how long the cursor still has to rest, seconds."""
        if not self._stale or self._rests_since is None:
            return 0.0
        return max(0.0, self._rests_since + REST_SECONDS - at)

    def on_refused(self) -> None:
        self._asked = ""

    def on_read(self, event: CallRead) -> None:
        if event.run_id == self._asked:
            self._asked = ""
        if event.run_id == self.run_id:
            self.call = event.call
            self.reads += 1

    def on_change(self, run_id: str | None) -> None:
        """Have it read again once something about *run_id* has changed."""
        self._stale = self._stale or (bool(self.run_id) and run_id == self.run_id)

    def page(
        self,
        cache: DocumentCache,
        options: LayoutOptions,
        now: float,
        *,
        record: Sequence[Block] = (),
        as_decided: bool = True,
    ) -> CallPage | None:
        """Return the page of the call; None where it is not read yet, or there is none.

        Args:
            record: the opened record as it is stored, for the end of the page.
            as_decided: the screen of the decision is shown where it is kept, else the call as it is now.
        """
        call, screen = self.call, self.screen if as_decided else None
        if call is None:
            return None
        view, at, file_changed = call.approval, now, False
        if screen is not None and screen.item.approval is not None:
            view, at, file_changed = screen.item.approval, screen.at, screen.file_changed
        compact = options.gutter == COMPACT_GUTTER
        item = Item(key=self._key, approval=view)
        warnings = cache.warnings(item, file_changed=file_changed)
        beyond = warnings_beyond_head(warnings, options.width, compact=compact)

        def make() -> Parts:
            return call_parts(
                call,
                now,
                shown=view if screen is not None else None,
                shown_at=at,
                not_shown=kept.problem if (kept := self._kept_screen()) is not None else "",
                context=screen.context if screen is not None else (),
                record=record,
                warnings=beyond,
                unfold=options.unfold,
                keys=cache.outcome_keys,
            )

        # While a call is not over, its page shows how long that has been so.
        second = 0 if call.approval.state in FINAL_STATES else int(now)
        key = (IdentityKey(call), IdentityKey(view), tuple(record), tuple(beyond), second)
        look = call.approval.look
        looked = look.preview.fields if look is not None else ()
        large = is_large(view, (*call.result, *looked))
        head = item_head(item, warnings, at, options.width, compact=compact)
        return head, cache.parts(key, make, options, large=large)
