"""Attacks on attached consoles (`aileron attach`), and on the way by which one is attached.

They come from the process that attached, over the home's socket: what is left to stop them is what a person
confirmed, and what was signed.
"""

import contextlib
import http.client
import os
from collections.abc import Generator
from typing import Any, Final

from aileron_core.canonical import Json, sha256_hex
from aileron_core.console_port.codec import to_frame
from aileron_core.console_port.devices import ConfirmDevice, EndDevice
from aileron_core.console_port.intents import (
    Accept,
    Approve,
    Deny,
    EndSession,
    Intent,
    OwnersIntent,
    SetPause,
    StopEverything,
)
from aileron_core.errors import ConsoleErrorResponse, ConsoleUnavailable
from aileron_core.home.client import HomeConnection
from aileron_tui.cli.attach import AttachedCore
from aileron_tui.cli.attacks.arena import Arena, Attack, Way, eventually, must
from aileron_tui.cli.attacks.files import plant

_INTENT: Final = "/v1/attach/intent"


class _Tapped(HomeConnection):
    """A connection that keeps what is sent on it, and can keep it back."""

    def __init__(self, arena: Arena, caught: bytearray, *, holds: bool) -> None:
        super().__init__(arena.home.path)
        self._caught, self._holds = caught, holds

    def send(self, data: Any) -> None:
        self._caught += data
        if not self._holds:
            super().send(data)

    def getresponse(self) -> http.client.HTTPResponse:
        if self._holds:
            raise OSError
        return super().getresponse()


class _Console(AttachedCore):
    """An attached console in an attacker's hands: it signs and sends what it likes."""

    def __init__(self, arena: Arena) -> None:
        self._arena, self._caught, self._holds = arena, bytearray(), False
        super().__init__(lambda _: self._tapped())
        self.words: tuple[str, ...] = ()

    def _tapped(self) -> HomeConnection:
        self._caught = bytearray()
        return _Tapped(self._arena, self._caught, holds=self._holds)

    def attach(self) -> None:
        """Ask to be attached; nobody has confirmed it."""
        self.words = self.pair()
        self.follow()

    @property
    def id(self) -> str:
        """Its device's, as the console knows it."""
        devices = self._arena.app.devices.views()
        return next(each.device_id for each in devices if each.words == self.words)

    def let_in(self, *, as_owners: bool = False) -> None:
        """Have the person confirm it; return once it was sent the waiting call, and that has rested."""
        confirm = ConfirmDevice(device_id=self.id, words=self.words, as_owners=as_owners)
        self._arena.core.submit(confirm)
        if not self.wait(30) or self.over:
            raise TimeoutError
        eventually(lambda: False, self._arena.app.devices.arm_ms / 1000 + 0.1)

    def asks(self, intent: Intent) -> str:
        """Ask for *intent*, signed as it should be; return the class of the refusal, empty for none."""
        if isinstance(intent, Approve | Deny):
            digest = self._arena.views[intent.approval_id].digest
            self._shown.setdefault(intent.approval_id, (digest, "0" * 64))
            return self.posts(intent, **self._signed(intent))
        assert isinstance(intent, OwnersIntent)
        return self.posts(intent, **self._signed_intent(intent))

    def posts(self, intent: Intent, **proof: Json) -> str:
        """Ask for *intent* in a request that is signed, whatever *proof* is."""
        try:
            self._post(_INTENT, {"intent": to_frame(intent), **proof})
        except ConsoleErrorResponse as error:
            return error.failure.class_
        return ""

    def signs(self, intent: Approve | Deny) -> Any:
        """Return a signed answer as it stands in a request."""
        return self._signed(intent)

    def catches(self, intent: Intent) -> bytes:
        """Return the request for *intent*, which does not arrive."""
        self._holds = True
        with contextlib.suppress(ConsoleUnavailable):
            self.asks(intent)
        self._holds = False
        return self.caught

    @property
    def caught(self) -> bytes:
        """The last request."""
        return bytes(self._caught).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)

    @contextlib.contextmanager
    def another_key(self) -> Generator[None]:
        """Sign with another key meanwhile, as a program that knows all but the console's."""
        own, self._key = self._key, type(self._key)()
        yield
        self._key = own


@contextlib.contextmanager
def _attached(arena: Arena) -> Generator[_Console]:
    console = _Console(arena)
    console.attach()
    try:
        yield console
    finally:
        console.close()
        eventually(lambda: console.over)


@contextlib.contextmanager
def _confirmed(arena: Arena) -> Generator[_Console]:
    arena.shown()
    with _attached(arena) as console:
        console.let_in()
        yield console


def _answers(arena: Arena) -> tuple[Approve, Deny]:
    view = arena.shown()
    approve = Approve(approval_id=view.approval_id, digest=view.digest)
    return approve, Deny(approval_id=view.approval_id, reason="no")


def _unconfirmed(arena: Arena) -> str:
    with _attached(arena) as console:
        must(not console.wait(1.5), "it is shown what your console shows")
        for intent in (*_answers(arena), SetPause(paused=False), StopEverything()):
            told = console.asks(intent)
            must(
                told == "unauthorized", f"{type(intent).__name__} was answered {told or 'with yes'}"
            )
        itself = to_frame(ConfirmDevice(device_id=console.id, words=console.words, as_owners=True))
        arena.refused((400,), "POST /v1/intents", itself, way="home")
    return "it is told nothing, and each request gets 401 until you compared its words"


def _as_agent(arena: Arena) -> str:
    fixed = {"commitment": "0" * 64}
    ways: tuple[tuple[str, Way], ...] = (("", "port"), (arena.agent["token"], "port"), ("", "own"))
    for token, way in ways:
        arena.refused((401, 403), "POST /v1/attach", fixed, token=token, way=way)
    mine = arena.session(pid=os.getpid())
    try:
        arena.refused((403,), "POST /v1/attach", fixed, way="home")
    finally:
        arena.ask(f"POST /v1/sessions/{mine['session_id']}/end", way="home")
    return "a session's program is refused on each way, also on that of your own programs"


def _foreign_key(arena: Arena) -> str:
    console = arena.once(_confirmed)
    for intent in _answers(arena):
        with console.another_key():
            told, proof = console.asks(intent), console.signs(intent)
        must(told == "unauthorized", f"a request was answered {told or 'with yes'}")
        told = console.posts(intent, **proof)
        must(told == "invalid_request", f"an answer was answered {told or 'with yes'}")
    return "neither a request nor an answer counts by another key"


def _altered(arena: Arena) -> str:
    console = arena.once(_confirmed)
    approve, deny = _answers(arena)
    said = console.catches(deny)
    another = deny.approval_id[:-1] + ("1" if deny.approval_id.endswith("0") else "0")
    changes = (
        (b'"reason":"no"', b'"reason":"on"'),
        (b'"verdict":"deny"', b'"verdict":"approve"'),
        (deny.approval_id.encode(), another.encode()),
        (b"attach/intent", b"attach/events"),
        (b"Aileron-Number: ", b"Aileron-Number: 9"),
    )
    for before, after in changes:
        must(before in said, "the answer could not be caught")
        _, _, body = (altered := said.replace(before, after)).partition(b"\r\n\r\n")
        _, _, was = said.partition(b"\r\n\r\n")
        lengths = (b"Content-Length: %d" % len(was), b"Content-Length: %d" % len(body))
        for way in ("home", "process"):
            told = arena.send(altered.replace(*lengths), way).status
            must(told == 401, f"{before.decode()} was changed, and answered with {told}")
    more = console.signs(approve)
    more["decision"]["unseen"] = 1
    told = console.posts(
        Approve(approval_id=approve.approval_id, digest=approve.digest, unseen_lines=1), **more
    )
    must(
        told == "invalid_request",
        f"another number of unseen lines was answered {told or 'with yes'}",
    )
    return "the signature covers all of it, and each change gets 401"


def _raised(arena: Arena) -> str:
    console = arena.once(_confirmed)
    approve, deny = _answers(arena)
    said = console.signs(deny)
    raised = {**said["decision"], "verdict": "approve", "reason": sha256_hex(b"")}
    told = [
        console.posts(approve, **said),
        console.posts(deny, **console.signs(approve)),
        console.posts(approve, **{**said, "decision": raised}),
    ]
    must(set(told) == {"invalid_request"}, "a no was taken as a yes")
    return "the answer that was signed is the one that counts"


def _replayed(arena: Arena) -> str:
    with _attached(arena) as console:
        console.let_in(as_owners=True)
        _pause(arena, paused=True)
        must(not console.asks(SetPause(paused=False)), "its own request was refused")
        said = console.caught
        _wait_paused(arena, paused=False)
        _pause(arena, paused=True)
        for way in ("home", "process"):
            told = arena.send(said, way).status
            must(told == 401, f"it was answered with {told}")
        must(_is_paused(arena), "the calls that you held go on")
    _pause(arena, paused=False)
    return "each number counts once, and only from the process that attached"


def _is_paused(arena: Arena) -> bool:
    return arena.app.pause.paused_since is not None


def _pause(arena: Arena, *, paused: bool) -> None:
    """Have the person put all calls on hold, or let them go on."""
    arena.core.submit(SetPause(paused=paused))
    _wait_paused(arena, paused=paused)


def _wait_paused(arena: Arena, *, paused: bool) -> None:
    if not eventually(lambda: _is_paused(arena) == paused):
        raise TimeoutError


def _owners(arena: Arena) -> str:
    console, digest = arena.once(_confirmed), plant(arena)
    _pause(arena, paused=True)
    waits = lambda: [each for each in arena.app.library.not_accepted() if each.digest == digest]  # noqa: E731
    if not eventually(waits):
        raise TimeoutError
    asked: tuple[Intent, ...] = (
        SetPause(paused=False),
        Accept(kind="action", name=waits()[0].name, digest=digest),
        EndSession(session_id=arena.other["session_id"]),
        EndDevice(device_id=console.id),
        StopEverything(),
    )
    for intent in asked:
        told = console.asks(intent)
        must(told == "forbidden", f"{type(intent).__name__} was answered {told or 'with yes'}")
    must(_is_paused(arena), "the calls that you held go on")
    must(waits(), "the file is accepted")
    return f"none of {len(asked)} is taken from one that you did not confirm as yours"


def _after_its_end(arena: Arena) -> str:
    arena.shown()
    with _attached(arena) as console:
        console.let_in()
        late = [console.catches(each) for each in _answers(arena)]
        arena.core.submit(EndDevice(device_id=console.id))
        devices = arena.app.devices.views
        eventually(lambda: console.words not in [each.words for each in devices()], 5)
        told = [arena.send(each, way).status for each in late for way in ("home", "process")]
        must(set(told) == {401}, f"answers that were under way were answered with {told}")
        must(console.asks(_answers(arena)[0]) == "unauthorized", "a new answer was taken")
    return "what was under way gets 401, as does what it signs afterwards"


ATTACKS = (
    Attack("attach-unconfirmed", "A program of your account attaches a console, and looks and answers before you confirmed it.", _unconfirmed),
    Attack("attach-as-agent", "An agent attaches a console: by its token, its socket, and as a program of your account.", _as_agent),
    Attack("attach-foreign-key", "A program answers in the name of a confirmed console, with a key of its own.", _foreign_key),
    Attack("attach-altered", "An answer is changed between the attached console and the server.", _altered),
    Attack("attach-raised-verdict", "A no that you signed on an attached console is passed off as a yes.", _raised),
    Attack("attach-replayed", "What let the calls go on is sent again after you held them.", _replayed),
    Attack("attach-owners", "A console that you confirmed for answering lets calls go on, accepts a file and stops everything.", _owners),
    Attack("attach-after-its-end", "An answer of a confirmed console arrives after you ended it.", _after_its_end),
)  # fmt: skip
