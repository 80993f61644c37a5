"""Attacks on the keys of a real console, on a pseudo-terminal of its own: typed ahead, pasted, held down."""

import contextlib
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Generator
from typing import Any, Final

from aileron_core.clock import SystemClock
from aileron_core.errors import ConsoleErrorResponse
from aileron_core.home.client import HomeClient
from aileron_core.home.layout import Home
from aileron_tui.cli.attacks.arena import (
    APPROVALS,
    CALL,
    HOSTILE,
    RUN,
    Arena,
    Attack,
    SkippedError,
    Terminal,
    at_terminal,
    eventually,
    must,
)
from aileron_tui.cli.init import add_example

CONSOLE = (sys.executable, "-I", "-m", "aileron_tui.cli")
_ENV: Final = {"TEXTUAL_PRESS": "a,enter,a", "TERM": "xterm-256color", "COLORFGBG": "15;0"}
_PASTED: Final = (
    b"\x1b[200~a\ra\n\x1b[201~",
    b"aaaa",
    b"a\r\n",
    b"ad\ry\n",
    b"\x1b[200~a",
    b"\x1b[201~aa",
)
_ANSWERED: Final = (
    b"\x1b[1;1Ra",
    b"\x1b]11;rgb:a/a/a\x07",
    b"\x1bP>|a\x1b\\a",
    b"\x1b[?1;2ca",
    b"\x1b[Ia",
)
_APART: Final = 0.03
"""Seconds between two keys of a key that is held down."""
_REST: Final = 0.3
"""Seconds without a key after which a console may soon take the next one for a person's."""


class _Desk:
    """A console on a pseudo-terminal, with a home of its own, and an agent whose call waits there."""

    def __init__(self, arena: Arena, home: Home, terminal: Terminal) -> None:
        self.marker, self._home = arena.marker.encode(), home
        self.process, self.drawn = terminal.process, terminal.printed
        self._keyboard = terminal.keyboard
        if not eventually(lambda: self._home.daemon_file.exists() and self.drawn):
            raise TimeoutError
        self._agent, self._approval = HomeClient(self._home.path), ""
        session = {"agent": "attacker", "cwd": str(arena.folder)}
        self._token = self._agent.request("POST", "/v1/sessions", session)[1]["token"]

    def take_back(self) -> None:
        """Have the agent withdraw its call, so that none waits."""
        if self._approval:
            with contextlib.suppress(ConsoleErrorResponse):  # decided, by keys that came too slowly
                self._post(f"{APPROVALS}/{self._approval}/withdraw", {})
            self._approval = ""

    def call(self) -> None:
        """Have the agent make a call in place of its earlier one."""
        self.take_back()
        self._approval = self._post(RUN.split()[1], CALL)["approval_id"]

    def _post(self, path: str, body: object) -> Any:
        return self._agent.request("POST", path, body, token=self._token)[1]

    def show_a_call(self) -> None:
        """Return once the draft of a new call has been drawn."""
        before = len(self.drawn)
        self.call()
        if not eventually(lambda: self.marker in self.drawn[before:]):
            raise TimeoutError

    def type(self, *keys: bytes, apart: float) -> float:
        """Type *keys*, and return the longest time between two of them."""
        clock, wait, longest = SystemClock(), threading.Event(), 0.0
        at = clock.monotonic()
        for each in keys:
            os.write(self._keyboard, each)
            wait.wait(apart)
            longest, at = max(longest, clock.monotonic() - at), clock.monotonic()
        return longest

    def decides_nothing(self) -> None:
        def decided() -> set[str]:
            opened = sqlite3.connect(f"file:{self._home.database}?mode=ro", uri=True)
            calls = "SELECT state FROM runs WHERE approval_id = ?"
            with contextlib.closing(opened) as database:
                found = {state for (state,) in database.execute(calls, (self._approval,))}
            return found - {"pending", "awaiting_vault", "withdrawn"}

        eventually(decided, 1.5)
        must(not decided(), f"a call is {', '.join(decided())}")
        must(self.process.poll() is None, "the console ended")


@contextlib.contextmanager
def _desk(arena: Arena) -> Generator[_Desk]:
    home = Home(arena.folder / "desk")
    home.prepare()
    add_example(home)
    command = [*CONSOLE, "console", "--accept-installed", "--home", str(home.path)]
    with at_terminal([*command, "--route", arena.route], arena.folder, _ENV) as terminal:
        yield _Desk(arena, home, terminal)


def _typed(arena: Arena, keys: tuple[bytes, ...], held: str) -> str:
    desk = arena.once(_desk)
    desk.show_a_call()
    desk.type(*keys, apart=0.5)
    desk.decides_nothing()
    return held


def _typed_ahead(arena: Arena) -> str:
    desk = arena.once(_desk)
    desk.call()
    os.kill(desk.process.pid, signal.SIGSTOP)
    desk.type(b"a", b"\r", b"a", apart=_APART)
    os.kill(desk.process.pid, signal.SIGCONT)
    desk.decides_nothing()
    return "keys that were typed before the call was drawn decide nothing"


def _held_down(arena: Arena) -> str:
    desk = arena.once(_desk)
    for _ in range(3):
        desk.take_back()  # where a call waited, the first key would be a person's
        calling = threading.Timer(0.5, desk.call)
        calling.start()
        longest = desk.type(*[b"a"] * 80, apart=_APART)
        calling.join()
        if longest < _REST:
            desk.decides_nothing()
            return "it decides nothing until you let it go"
    raise SkippedError("this machine is too busy to press keys evenly")


def _escapes(arena: Arena) -> str:
    desk = arena.once(_desk)
    desk.show_a_call()
    sequences = [f"\x1b{each}".encode() for each in HOSTILE[:-1].split("\x1b") if each]
    sent = [each for each in (*sequences, HOSTILE[-1].encode()) if each in desk.drawn]
    must(not sent, f"the terminal was sent {sent}")
    must(b"ESC" in desk.drawn, "nothing shows that they are there")
    return "they are shown as marks"


_NO_KEYS: Final = "they are no keys of a person's"
ATTACKS = (
    Attack("keys-by-variables", "A folder's settings set variables that press keys in the console.", _typed, (), "the console drops them"),
    Attack("typed-ahead", "Keys wait in the terminal while the console stands still and a call arrives.", _typed_ahead),
    Attack("key-held-down", "You hold the key that approves, in another program as you think, while a call arrives.", _held_down),
    Attack("pasted-text", "A text with keys that approve is pasted into the terminal, marked as pasted or not.", _typed, _PASTED, _NO_KEYS),
    Attack("terminal-answers", "A program makes the terminal answer questions, with keys that approve in the answers.", _typed, _ANSWERED, _NO_KEYS),
    Attack("escapes-in-a-preview", "What the service says would write your clipboard, set the title and turn text round.", _escapes),
)  # fmt: skip
