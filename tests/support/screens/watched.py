"""What a test reads of a console, with a terminal or without."""

from typing import TypeVar

from aileron_core.console_port.intents import Intent
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from tests.support.frozen_clock import FrozenClock
from tests.support.screens.port import RecordingPort

T = TypeVar("T", bound=Intent)


class Watched:
    """One console: what it shows, what it asked the core for."""

    port: RecordingPort
    clock: FrozenClock

    @property
    def model(self) -> Model:
        raise NotImplementedError

    @property
    def lines(self) -> list[str]:
        raise NotImplementedError

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def keys(self) -> str:
        return self.lines[-1]

    @property
    def status_line(self) -> str:
        return self.lines[-2]

    @property
    def row(self) -> str:
        return next(line for line in self.lines if line.startswith("▌"))

    @property
    def selected(self) -> str | None:
        return self.model.queue.selected

    @property
    def waiting(self) -> list[str]:
        return [item.key for item in self.model.queue.items]

    @property
    def armed(self) -> bool:
        return Situation(self.model, self.clock.now(), self.clock.monotonic()).armed

    @property
    def drawn(self) -> bool:
        """Whether rest alone is missing until a key would count."""
        arming, version = self.model.arming, self.model.screen_version
        return arming.seconds_until_armed(version, self.clock.monotonic()) is not None

    def asked(self, *kinds: type[T]) -> list[T]:
        return [each for each in self.port.intents if isinstance(each, kinds)]
