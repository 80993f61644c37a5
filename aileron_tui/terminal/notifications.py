"""Notifies a person who looks elsewhere that something waits: bell, terminal notification, a command.

A notification is a count and the name of an accepted action, never text from outside: notifications
end on lock screens and in logs. Nothing decides from there. There is one in 3 seconds at most.
"""

import re
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aileron_core.clock import Clock
from aileron_core.settings import NotifySettings
from aileron_tui import words

QUIET_SECONDS = 3.0
"""At most one notification in this time; arrivals meanwhile are notified together at its end."""
COMMAND_SECONDS = 10.0
"""A command that has not ended by then is ended."""

_TERMINALS = frozenset({"iTerm.app", "WezTerm", "ghostty", "WarpTerminal", "rio"})
_TERMS = ("xterm-kitty", "xterm-ghostty", "foot", "wezterm")
_INSIDE = ("ITERM_SESSION_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR", "KITTY_WINDOW_ID")
"""Variables of terminals that take OSC 9; they are still there inside tmux, where TERM is its own."""

_PLACEHOLDER = re.compile(r"\{(?:count|action|review)\}")
_ACTION_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def wrap_for_multiplexer(sequence: str, environment: Mapping[str, str]) -> str:
    """Return *sequence* wrapped for tmux or screen where *environment* says that one is there.

    tmux hands it on where `allow-passthrough` is on, and drops it otherwise.
    """
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environment.get("STY"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence


def terminal_notifies(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal of *environment* is known to show `OSC 9` as a notification."""
    return (
        environment.get("TERM_PROGRAM") in _TERMINALS
        or environment.get("TERM", "").startswith(_TERMS)
        or any(environment.get(name) for name in _INSIDE)
    )


def osc9(text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that shows *text* as a notification, wrapped for tmux and screen."""
    printable = "".join(char for char in text if char.isprintable())
    return wrap_for_multiplexer(f"\x1b]9;{printable}\x07", environment)


@dataclass(frozen=True, slots=True)
class Notification:
    """What may be told."""

    waiting: int
    action: str
    """The name of an accepted action; empty where several came, or it is not a plain name."""

    @property
    def text(self) -> str:
        return words.terminal.calls_wait(self.waiting, self.action)


class NotificationPolicy:
    """Decides when to notify. Times are monotonic seconds; it rings nothing itself."""

    def __init__(self) -> None:
        self._told_at = float("-inf")
        self._untold: set[str] = set()

    def on_arrival(self, action: str) -> None:
        self._untold.add(action)

    def due_in(self, at: float) -> float | None:
        """Return the seconds until the next notification is due; None where there is none to give."""
        return max(0.0, self._told_at + QUIET_SECONDS - at) if self._untold else None

    def take(self, waiting: int, at: float) -> Notification | None:
        """Return the notification to send now, once; nothing while it is quiet or *waiting* is 0."""
        if self.due_in(at) != 0.0:
            return None
        names, self._untold = self._untold, set()
        if not waiting:
            return None  # all of them were answered or withdrawn meanwhile
        self._told_at = at
        name = names.pop() if len(names) == 1 else ""
        return Notification(waiting, name if _ACTION_NAME.fullmatch(name) else "")


class Notifier:
    """Rings the bell and runs the configured command. A failure here harms nothing else."""

    def __init__(
        self,
        settings: NotifySettings,
        environment: Mapping[str, str],
        *,
        bell: bool,
        ring: Callable[[], object],
        write: Callable[[str], object],
        failed: Callable[[str], object],
        command_seconds: float = COMMAND_SECONDS,
    ) -> None:
        """Take what does the work.

        Args:
            settings: `[notify]`.
            failed: called once, on another thread, with why the command failed.
        """
        self._command = settings.command
        self.runs_command = bool(settings.command)
        """Whether the command is run; a front end may withhold it."""
        self.review_url = ""
        """The address of the list of calls, once the front end knows it; it names no call and has no secret."""
        auto = settings.osc9 == "auto" and terminal_notifies(environment)
        self._shows = auto or settings.osc9 == "always"
        self._environment = environment
        self._bell = bell
        self._ring = ring
        self._write = write
        self._failed = failed
        self._seconds = command_seconds
        self._told_of_failure = False
        self._running = threading.Lock()

    def deliver(self, notice: Notification) -> None:
        """Tell it, in every way that is set, and return at once."""
        self.warn(notice.text)
        self._run_command(notice)

    def warn(self, text: str) -> None:
        """Ring, and show *text*, a sentence of ours, in the terminal's own way; no command is run."""
        if self._bell:
            self._ring()
        if self._shows:
            self._write(osc9(text, self._environment))

    def _run_command(self, notice: Notification) -> None:
        # One at a time: a command that hangs must not become many.
        if self.runs_command and self._running.acquire(blocking=False):
            command = fill_command(self._command, notice, self.review_url)
            threading.Thread(
                target=self._run, args=(command,), name="aileron-notify", daemon=True
            ).start()

    def _run(self, command: Sequence[str]) -> None:
        try:
            why = run_command(command, self._seconds)
        finally:
            self._running.release()
        if why and not self._told_of_failure:
            self._told_of_failure = True
            self._failed(words.terminal.command_failed(command[0], why))


def fill_command(command: Sequence[str], notice: Notification, review_url: str = "") -> list[str]:
    """Return *command* with `{count}`, `{action}` and `{review}` filled in, word for word; no word is split."""
    filled = {"{count}": str(notice.waiting), "{action}": notice.action, "{review}": review_url}
    return [_PLACEHOLDER.sub(lambda found: filled[found[0]], word) for word in command]


def run_command(command: Sequence[str], seconds: float = COMMAND_SECONDS) -> str:
    """Run *command* to their end without a shell; return why it failed, empty where it did not."""
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return words.terminal.took_too_long(seconds)
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or type(error).__name__
    return words.terminal.ended_with(ended.returncode) if ended.returncode else ""


class NotificationScheduler:
    """Has each arrival told once: at once where it was quiet, else when the quiet time is over."""

    def __init__(
        self,
        tell: Callable[[Notification], object],
        *,
        waiting: Callable[[], int],
        clock: Clock,
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """Take what does the work; *later* calls a function after so many seconds."""
        self._tell = tell
        self._waiting = waiting
        self._clock = clock
        self._later = later
        self._notices = NotificationPolicy()
        self._comes = False

    def on_arrival(self, action: str) -> None:
        self._notices.on_arrival(action)
        if not self._comes:
            self._look()

    def _look(self) -> None:
        self._comes = False
        at = self._clock.monotonic()
        if notice := self._notices.take(self._waiting(), at):
            self._tell(notice)
        elif seconds := self._notices.due_in(at):
            self._comes = True
            self._later(seconds, self._look)
