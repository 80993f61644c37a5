"""A canary of each kind of credential in a real console: nothing but the requests has it.

No screen, file, core dump or command line, and no other program of its user reads it in a process's memory.
"""

import contextlib
import ctypes
import dataclasses
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.core.connectors.test_credentials_on_the_wire import reading
from tests.core.runs.test_canaries import KINDS, MANIFEST, PASSPHRASE, SECRET, TOKEN, leaked
from tests.process.attended import ScreenConsole
from tests.support.authorization_server import CANARY, AuthorizationServer, authorization_server
from tests.support.ordinary import AS_ORDINARY, OWNS, as_ordinary, give, ordinary_folder
from tests.support.scripted_guest import FQN, furnish_guest
from tests.support.server_harness import CLI, ROOT, Console, eventually
from tests.support.terminal import Pty
from tests.support.tls_service import Request, tls_service
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
            for path in (
                *Path("/proc").glob("[0-9]*/cmdline"),
                *Path("/proc").glob("[0-9]*/environ"),
            ):
                if path.parent.name != str(os.getpid()):
                    with suppress(OSError):  # it has just ended, or is another user's
                        if where := secrets_in(path.read_bytes()):
                            self.found.add(f"{path}: {where}")

    def end(self) -> set[str]:
        self._ended.set()
        self.join()
        return self.found


def secrets_in(data: bytes) -> list[str]:
    """Return which secrets are in *data*; every one that the authorization server gives begins alike."""
    text = data.decode("latin-1")
    given = re.findall(rf"{CANARY}-(?:access|refresh|code)-\w+", text)
    return [*leaked(text), *given]


@dataclasses.dataclass
class WatchedPlace:
    """A home, its console on a terminal, and the service that it asks."""

    home: Path
    kind: str
    server: AuthorizationServer
    console: ScreenConsole
    answered: list[bytes]
    """All that the console answered over HTTP."""

    def bind(self) -> None:
        body = {"connector_hash": FQN, "identity": "work", "passphrase": PASSPHRASE}
        account = {"account": "ana@example.com"}
        if self.kind != "oauth2":
            body |= {**account, "secret": SECRET}
            body |= {} if self.kind == "api_key" else {"user": "ana"}
            body |= {"session_token": TOKEN} if self.kind == "aws_sigv4" else {}
            self.ask("BindAccount", body)
            return
        begun = self.ask("BeginLogin", body)["LoginUpdated"]["login"]
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
def watched_place(
    request: pytest.FixtureRequest, folder: Path, mailbox: Mailbox
) -> Iterator[WatchedPlace]:
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
        module = reading(wanted)
        furnish_guest(folder / "home", [], [server.service.place], more=more, module=module)
        port, certificate = str(server.service.port), str(folder / "server" / "both.pem")
        words = (sys.executable, "-I", str(ENTRY), port, certificate, "console")
        words += ("--home", str(folder / "home"), "--accept-installed")
        words = dumping(folder / "cores", *words)
        with contextlib.closing(ScreenConsole(folder / "home", mailbox, *words)) as console:
            yield WatchedPlace(folder / "home", kind, server, console, [])


def test_the_canary_is_on_no_screen_in_no_file_process_or_dump(watched_place: WatchedPlace) -> None:
    """The console's terminal, byte by byte, is all that its screens ever showed, and every snapshot of one."""
    processes = Processes()
    processes.start()
    watched_place.ask("CreateVault", {"passphrase": PASSPHRASE})
    watched_place.bind()
    session = watched_place.console.session()
    watched_place.answered.append(str(session).encode())
    pending = watched_place.call("act", session["token"])
    assert b"pending_approval" in pending
    pty = watched_place.console.pty
    pty.shows("ana@example.com")
    assert b"[removed]" in watched_place.call("see", session["token"]), "the answer had been there"
    for keys in (b" ", b"i", b"\x1b"):
        pty.type(keys)
        pty.settle(0.3)
    for view, word in (
        *((b"2", "Newest first"), (b"3", "records"), (b"4", "3 ready")),
        *((b"5", "1 session open"), (b"1", "ana@example.com")),
    ):
        pty.press(view, lambda word=word: word in pty.cells.text, word)
    before = len(watched_place.server.service.seen)  # the recheck and the effect come
    pty.press(b"a", lambda: len(watched_place.server.service.seen) >= before + 2, "the call runs")
    search_files(watched_place)
    pty.process.send_signal(signal.SIGABRT)
    assert pty.ended() == -signal.SIGABRT
    assert [each.name for each in (watched_place.home.parent / "cores").iterdir()] == []
    search_files(watched_place)
    assert processes.end() == set()
    for each in (pty.raw, *watched_place.answered):
        assert secrets_in(each) == []


def search_files(place: WatchedPlace) -> None:
    files = [path for path in place.home.rglob("*") if path.is_file()]
    assert [path for path in files if secrets_in(path.read_bytes())] == []
    looked = {path.name for path in files}
    assert {"aileron.db", "aileron.db-wal", "aileron.log", "vault.json"} <= looked


PHRASE, KEY = "qx7canary-phrase-3d81", "qx7canary-key-90ab44"
NEEDS_KEY = '[capabilities.credential]\nkind = "api_key"\nheader = "X-Key"\nformat = "{key}"\n'
HOME = "h" * 100
"""So long that the socket goes through /proc/self/fd, which a closed process must still have."""
DUMPING = 'cd "$1" && shift && { ulimit -c unlimited || ulimit -S -c "$(ulimit -H -c)"; } 2>&- && exec "$@"'
HOLDING = f"import sys; held = bytearray({KEY.encode()!r}) * 50; print('held', flush=True); sys.stdin.read()"


def dumping(cores: Path, *command: str) -> tuple[str, ...]:
    """Return *command* as a shell begins it that wants core dumps, in *cores*."""
    return ("sh", "-c", DUMPING, "sh", str(cores), *command)


@contextlib.contextmanager
def holding_secret(cores: Path) -> Iterator[subprocess.Popen[str]]:
    command = dumping(cores, *AS_ORDINARY, sys.executable, "-I", "-c", HOLDING)
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def ordinary() -> Iterator[Path]:
    with ordinary_folder() as made:
        for name in (HOME, "cores", "others"):
            (made / name).mkdir(mode=0o700)
        give(made)
        yield made


@pytest.fixture
def cores(ordinary: Path) -> Path:
    """A folder in which this machine leaves the core dump of a program; without one nothing is shown."""
    with holding_secret(ordinary / "others") as process:
        process.send_signal(signal.SIGABRT)
        process.wait()
    if not any(KEY.encode() in each.read_bytes() for each in (ordinary / "others").iterdir()):
        pytest.skip("this machine puts core dumps elsewhere (/proc/sys/kernel/core_pattern)")
    return ordinary / "cores"


@contextlib.contextmanager
def in_use(folder: Path) -> Iterator[Console]:
    """A console in the middle of a request that carries the key; its service does not answer."""
    home, go_on = folder / HOME, threading.Event()
    (folder / "tls").mkdir()
    with tls_service(folder / "tls") as service:
        service.answer = lambda _: go_on.wait()
        request = {"url": f"https://{service.place}/x", "credential": "api_key"}
        furnish_guest(home, [request], [service.place], more=NEEDS_KEY)
        give(folder)
        certificate = str(folder / "tls" / "both.pem")
        entry = (sys.executable, "-I", str(ENTRY), str(service.port), certificate, "serve")
        command = dumping(folder / "cores", *AS_ORDINARY, *entry)
        console = Console(home, command=command, env={OWNS: str(folder)})
        try:
            assert console.ask("CreateVault", passphrase=PHRASE).status == 200
            fields = {"connector_hash": FQN, "identity": "work", "account": "", "secret": KEY}
            assert console.ask("BindAccount", **fields, passphrase=PHRASE).status == 200
            token = console.session()["token"]

            def see() -> None:
                with suppress(OSError):  # the console is killed
                    console.run("see", {}, token)

            threading.Thread(target=see, daemon=True).start()
            eventually(lambda: service.seen, "the request has arrived")
            assert service.seen[0].headers["x-key"] == KEY
            yield console
        finally:
            console.end(signal.SIGKILL)
            go_on.set()


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_console_that_crashes_while_a_secret_is_in_use_leaves_no_core_dump(
    ordinary: Path, cores: Path, number: signal.Signals
) -> None:
    """However it was started: the shell asks for dumps of any size."""
    with in_use(ordinary) as console:
        sent = signal.SIGUSR2 if number == signal.SIGSEGV else number
        assert console.end(sent) == -number
    assert list(cores.iterdir()) == []
    files = [each for each in (ordinary / HOME).rglob("*") if each.is_file()]
    assert not [each for each in files if KEY.encode() in each.read_bytes()]


def test_a_command_that_takes_a_passphrase_leaves_no_core_dump(ordinary: Path, cores: Path) -> None:
    command = dumping(cores, *AS_ORDINARY, *CLI, "vault", "init", "--home", str(ordinary / HOME))
    terminal = Pty(command)
    terminal.answer("at least 8 characters", KEY)
    terminal.shows("The same again")
    terminal.process.send_signal(signal.SIGABRT)
    assert terminal.ended() == -signal.SIGABRT
    terminal.close()
    assert list(cores.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the switch is the kernel's of Linux")
def test_other_programs_of_the_user_do_not_read_a_console(ordinary: Path) -> None:
    """Memory, environment, descriptors: as they do with any program that does nothing about it."""
    links = ("cwd", "exe", "root")
    names = {"environ", "maps", "mem", "auxv", "io", "fd", "task/{pid}/environ", "task/{pid}/mem"}
    names.update(links)

    def refused(pid: int) -> set[str]:
        found = set[str]()
        for name in names:
            path = Path(f"/proc/{pid}", name.format(pid=pid))
            try:
                if name == "fd":
                    list(path.iterdir())
                elif name in links:
                    path.readlink()
                else:
                    path.open("rb").close()
            except PermissionError:
                found.add(name)
        return found

    def open_() -> None:
        with_nothing = refused(other)
        assert with_nothing <= {"mem", "task/{pid}/mem"}, with_nothing  # Yama may refuse those

    def closed() -> None:
        assert refused(pid) == names
        attach, libc = 16, ctypes.CDLL(None, use_errno=True)
        assert libc.ptrace(attach, pid, 0, 0) == -1
        assert ctypes.get_errno() == 1  # EPERM

    with holding_secret(ordinary / "others") as process, in_use(ordinary) as console:
        other, pid = process.pid, console.process.pid
        as_ordinary(open_)
        as_ordinary(closed)
