"""A canary of each kind of credential in a real console, on a terminal: nothing but the requests has it."""

import contextlib
import dataclasses
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.core.connectors.test_credentials_on_the_wire import reading
from tests.core.runs.test_canaries import KINDS, MANIFEST, PASSPHRASE, SECRET, TOKEN, leaked
from tests.process.attended import ScreenConsole
from tests.process.test_memory import dumping
from tests.support.authorization_server import CANARY, AuthorizationServer, authorization_server
from tests.support.scripted_guest import FQN, furnish_guest
from tests.support.server_harness import ROOT
from tests.support.tls_service import Request
from tests.support.variants import variants

ENTRY = ROOT / "tests" / "process" / "oauth_console.py"


class Processes(threading.Thread):
    """Reads the command line and the environment of every process of this machine, again and again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.found: set[str] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.1):
            for process in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ"):
                    if process.name != str(os.getpid()):
                        with suppress(OSError):  # it has just ended, or is another user's
                            self._look(process, name)

    def _look(self, process: Path, name: str) -> None:
        if where := secrets_in((process / name).read_bytes()):
            self.found.add(f"{process / name}: {where}")

    def end(self) -> set[str]:
        self._ended.set()
        self.join()
        return self.found


def secrets_in(data: bytes) -> list[str]:
    """Return which secrets are in *data*; every one that the authorization server gives begins alike."""
    text = data.decode("latin-1")
    given = re.findall(rf"{CANARY}-(?:access|refresh|code)-\w+", text)
    return [*leaked(text), *given]


class EchoedConsole(ScreenConsole):
    """A console on a terminal, begun by *words*."""

    def __init__(self, home: Path, words: tuple[str, ...]) -> None:
        self.home, self._words, self._terminal = home, list(words), {}
        self.stderr = home.parent / "console.stderr"
        self.start()


@dataclasses.dataclass
class WatchedPlace:
    """A home, its console on a terminal, and the service that it asks."""

    home: Path
    kind: str
    server: AuthorizationServer
    console: "EchoedConsole"
    answered: list[bytes]
    """All that the console answered over HTTP."""

    def bind(self) -> None:
        body = {"connector_hash": FQN, "identity": "work", "account": "ana@example.com"}
        proof = {"passphrase": PASSPHRASE}
        if self.kind != "oauth2":
            body |= {"secret": SECRET, **({} if self.kind == "api_key" else {"user": "ana"})}
            body |= {"session_token": TOKEN} if self.kind == "aws_sigv4" else {}
            self.ask("BindAccount", {**body, **proof})
            return
        del body["account"]
        begun = self.ask("BeginLogin", {**body, **proof})["LoginUpdated"]["login"]
        assert self.server.browse(begun["url"]) == 200
        login = {"login_id": begun["login_id"]}
        self.ask("WaitForLogin", login)
        self.ask("FinishLogin", {**login, "account": ""})

    def ask(self, intent: str, fields: dict[str, str]) -> Any:
        answer = self.console.ask(intent, **fields)
        assert answer.status == 200, answer.raw
        self.answered.append(answer.raw)
        return answer.json

    def call(self, action: str, token: str) -> bytes:
        answer = self.console.run(action, {}, token)
        self.answered.append(answer.raw)
        return answer.raw


@pytest.fixture(params=variants(KINDS, 2))
def watched_place(request: pytest.FixtureRequest, folder: Path) -> Iterator[WatchedPlace]:
    kind = str(request.param)
    for name in ("server", "home", "cores"):
        (folder / name).mkdir(mode=0o700)
    with authorization_server(folder / "server") as server:
        known = server.answer

        def echo(asked: Request) -> object:
            """Answer a connector with all that it sent but what differs by the second."""
            if not asked.path.startswith("/x"):
                return known(asked)
            headers = {n: v for n, v in asked.headers.items() if n != "x-amz-date"}
            return {"done": "; ".join(f"{n}={v}" for n, v in headers.items())}

        server.service.answer = echo
        wanted = {"url": f"{server.base}/x", "credential": kind}
        more = f'[capabilities.credential]\nkind = "{kind}"\n{MANIFEST[kind]}'
        more = server.manifest() if kind == "oauth2" else more
        furnish_guest(
            folder / "home", [], [server.service.place], more=more, module=reading(wanted)
        )
        port, certificate = str(server.service.port), str(folder / "server" / "both.pem")
        words = (sys.executable, "-I", str(ENTRY), port, certificate, "console")
        words += ("--home", str(folder / "home"), "--accept-installed")
        with contextlib.closing(
            EchoedConsole(folder / "home", dumping(folder / "cores", *words))
        ) as console:
            yield WatchedPlace(folder / "home", kind, server, console, [])


VIEWS = (
    (b"2", "Newest first"),
    (b"3", "records"),
    (b"4", "3 ready"),
    (b"5", "1 session open"),
    (b"1", "ana@example.com"),
)


def test_the_canary_is_on_no_screen_and_in_no_file_process_or_core_dump(
    watched_place: WatchedPlace,
) -> None:
    """The console's terminal, byte by byte, is all that its screens ever showed, and every snapshot of one."""
    processes = Processes()
    processes.start()
    watched_place.ask("CreateVault", {"passphrase": PASSPHRASE})
    watched_place.bind()
    session = watched_place.console.session()
    watched_place.answered.append(str(session).encode())
    pending = watched_place.call("act", session["token"])
    assert b"pending_approval" in pending
    watched_place.console.pty.shows("ana@example.com")
    assert b"[removed]" in watched_place.call("see", session["token"]), "the answer had been there"
    pty = watched_place.console.pty
    for keys in (b" ", b"i", b"\x1b"):
        pty.type(keys)
        pty.settle(0.3)
    for view, word in VIEWS:
        pty.press(view, lambda word=word: word in pty.cells.text, word)
    before = len(watched_place.server.service.seen)  # the recheck and the effect come
    pty.press(b"a", lambda: len(watched_place.server.service.seen) >= before + 2, "the call runs")
    search_files(watched_place)
    watched_place.console.process.send_signal(signal.SIGABRT)
    assert watched_place.console.pty.ended() == -signal.SIGABRT
    assert [each.name for each in (watched_place.home.parent / "cores").iterdir()] == []
    search_files(watched_place)
    assert processes.end() == set()
    assert secrets_in(watched_place.console.pty.raw) == []
    for answer in watched_place.answered:
        assert secrets_in(answer) == []


def search_files(place: WatchedPlace) -> None:
    """Search every file of the home: database and its log, history, audit, log, vault, settings."""
    looked: set[str] = set()
    for path in place.home.rglob("*"):
        if path.is_file():
            looked.add(path.name)
            assert secrets_in(path.read_bytes()) == [], path
    assert {"aileron.db", "aileron.db-wal", "aileron.log", "vault.json"} <= looked
