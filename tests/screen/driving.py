"""Drives the real application through Pilot, on a clock that the test owns."""

from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

from textual.pilot import Pilot

from aileron_core.console_port import ApprovalView, NotAcceptedView, Snapshot
from aileron_tui.app import AileronApp
from aileron_tui.state.situation import situation_of
from aileron_tui.widgets.document import Document
from tests.screen.fake_port import RecordingPort
from tests.support.screens.calls import approval, snapshot

NOW = 1_791_468_120.0  # 2026-10-08 14:02:00 UTC
_TYPED = {
    " ": "space", ":": "colon", ">": "greater_than_sign", "/": "slash", "<": "less_than_sign",
    '"': "quotation_mark", "-": "minus",
}  # fmt: skip
PATIENCE = 30.0
STUCK_SECONDS = 2.0


class OwnedClock:
    """Stands still until the test moves it."""

    def __init__(self) -> None:
        self._now, self._at = NOW, 1000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._at

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._at += seconds


def app_on(clock: OwnedClock, port: RecordingPort, **options: Any) -> AileronApp:
    """Return the App on the test's clock alone: how late a busy machine handles a key is not on it."""
    app = AileronApp(port, clock=clock, **options)
    app._pressed_at = lambda _: clock.monotonic()
    return app


class Console:
    """One running console: what it shows, what it asked the core for."""

    def __init__(self, app: AileronApp, port: RecordingPort, clock: OwnedClock) -> None:
        self.app, self.port, self.clock = app, port, clock
        self.pilot: Pilot[int]

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def keys(self) -> str:
        return self.lines[-1]

    @property
    def voice(self) -> str:
        return self.lines[-2]

    @property
    def selected(self) -> str | None:
        assert self.app._model is not None
        return self.app._model.queue.selected

    @property
    def armed(self) -> bool:
        model = self.app._model
        assert model is not None
        return situation_of(model, self.clock.now(), self.clock.monotonic()).armed

    @property
    def drawn(self) -> bool:
        """Whether rest alone is missing until a key would count."""
        model = self.app._model
        assert model is not None
        return (
            model.arming.seconds_until_armed(model.screen_version, self.clock.monotonic())
            is not None
        )

    async def until(self, holds: Callable[[], bool], what: str = "") -> None:
        deadline = monotonic() + PATIENCE
        while not holds():
            assert monotonic() < deadline, f"never came: {what}\n{self.text}"
            await self.pilot.pause(0.01)

    async def shows(self, text: str) -> None:
        await self.until(lambda: text in self.text, text)

    async def rest(self, seconds: float = 2.0) -> None:
        """Let the person rest, long enough for a slow machine, and wait until the screen knows."""
        await self.pilot.pause()
        self.clock.advance(seconds)
        stands_since = monotonic()

        def rested() -> bool:
            nonlocal stands_since
            if self.drawn and not self.armed and monotonic() - stands_since > STUCK_SECONDS:
                # A slow machine drew it only after the clock had moved: it must move once more.
                self.clock.advance(seconds)
                stands_since = monotonic()
            return self.armed

        await self.until(rested, "armed")
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until what is in view counts as seen and everything was drawn."""

        stands_since = monotonic()

        def seen() -> bool:
            nonlocal stands_since
            if monotonic() - stands_since > STUCK_SECONDS:
                # A slow machine drew it only after the clock had moved: it must move once more.
                self.clock.advance(0.15)
                stands_since = monotonic()
            model = self.app._model
            assert model is not None
            page = self.app._screens[model.view]
            if not page.is_current or model.too_small or not model.document_shown:
                return True
            in_view = range(*page.query_one("#document", Document).in_view)
            return model.reading.over or not model.reading.unseen_rows() & frozenset(in_view)

        await self.until(seen, "seen")
        self.app.draw_all()
        await self.pilot.pause()

    async def read_all(self) -> None:
        """Read to the end, a pane at a time, each for long enough."""
        await self.rest()
        while "not seen yet" in self.voice:
            before = self.voice
            await self.pilot.press("space")
            await self.rest()
            await self.until(lambda b=before: self.voice != b, "read on")

    async def press(self, *keys: str) -> None:
        """Press keys in one breath: the clock stands still between them."""
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type *text* at a person's pace, some time after what asked for it was opened."""
        await self.pilot.pause()
        self.clock.advance(0.1)
        for char in text:
            await self.pilot.press(_TYPED.get(char, char))
            self.clock.advance(0.1)
        await self.pilot.pause()

    async def go(self, key: str, text: str) -> None:
        """Press one key at rest and wait until *text* is shown."""
        self.clock.advance(0.5)
        await self.press_alone(key)
        await self.shows(text)

    @property
    def row(self) -> str:
        """The selected row of a list."""
        return next(line for line in self.lines if line.startswith("▌"))

    async def press_alone(self, key: str) -> None:
        """Press one key, and be silent after it."""
        await self.pilot.press(key)
        self.clock.advance(0.03)
        await self.pilot.pause(0.1)


def start(
    *views: ApprovalView, held: tuple[NotAcceptedView, ...] = (), **changes: object
) -> Snapshot:
    """Return a snapshot with exactly *views*."""
    return replace(snapshot(NOW), approvals=views, not_accepted=held, **changes)


def mail(number: int = 1, **changes: object) -> ApprovalView:
    return approval(number, NOW, **changes)


def short(number: int = 1, **changes: object) -> ApprovalView:
    """A mail that fits any screen, so that it is read as soon as it is drawn."""
    view = mail(number)
    brief = replace(view.preview, fields=view.preview.fields[:3])
    return replace(view, **{"preview": brief, **changes})


@asynccontextmanager
async def console(
    state: Snapshot, size: tuple[int, int] = (120, 36), *, answers: bool = False, **options: Any
):
    """Run a console. *answers*: what is asked of the core happens. *options*: the App's."""
    clock = OwnedClock()
    port = RecordingPort(state, clock=clock, answers=answers)
    app = app_on(clock, port, **options)
    shown = Console(app, port, clock)
    async with app.run_test(size=size) as pilot:
        shown.pilot = pilot
        await pilot.pause()
        yield shown
    port.close()
