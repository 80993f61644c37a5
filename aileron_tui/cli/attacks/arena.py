"""Where attacks are tried: a throw-away home with the real server, the example service, and one waiting call.

The core runs in this process; what attacks it comes over its sockets, from its files or from other
processes. The person is here, too: what they see, and the only way in which they answer.
"""

import contextlib
import fcntl
import json
import logging
import os
import pty
import secrets
import socket
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

from aileron_core.clock import SystemClock
from aileron_core.console_port.account_intents import SetModelKey
from aileron_core.console_port.events import ApprovalUpdated, CoreEvent, CoreLost, StorageHealth
from aileron_core.console_port.intents import Approve, CreateVault, UnlockVault
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.home.layout import Home
from aileron_core.home.owner import connect_unix
from aileron_core.vault.secret import Secret
from aileron_tui.cli.init import add_example
from aileron_tui.cli.logfile import LogFile, log_path
from aileron_tui.cli.runtime import core_thread
from aileron_tui.cli.scaffold import EXAMPLE_DRAFT, EXAMPLE_HOST, examples

_T = TypeVar("_T")
Way = Literal["port", "home", "own", "process"]
"""How a request comes: over TCP, the home's socket, the other session's own, or the home's from another process."""
APPROVALS: Final = "/v1/action-approvals"
RUN: Final = "POST /v1/actions/send-draft/run"
CALL: Final = {"args": {"draft_id": EXAMPLE_DRAFT}}
LOCK: Final[tuple[str, object]] = ("POST /v1/intents", {"LockVault": {}})
HELLO: Final[dict[str, object]] = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    },
}  # fmt: skip
"""What an MCP client begins with."""
HOSTILE: Final = "\x1b]52;c;YXR0YWNr\x07\x1b]0;attack\x07\u202e"
"""A clipboard write, a title, text turned round: in the draft's text."""
_SECONDS: Final = 30.0
_SENDS: Final = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(sys.stdin.buffer.read())
while data := s.recv(65536):
    print(data.hex())
"""
_DECIDED: Final = {"checking", "approved", "executing", "completed", "denied", "unknown"}


class BrokeError(Exception):
    """The attack got through; the text says what it reached."""


class SkippedError(Exception):
    """The attack cannot be tried here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer; status 0 where the connection was closed without one."""

    status: int
    head: str
    body: str

    @property
    def json(self) -> Any:
        """The JSON value in the body, also of one that comes in chunks or as an event."""
        return json.loads(self.body[self.body.find("{") : self.body.rfind("}") + 1])


def eventually(holds: Callable[[], object], seconds: float = _SECONDS) -> bool:
    """Ask until *holds* is true; return whether it was within *seconds*."""
    clock, wake = SystemClock(), threading.Event()
    until = clock.monotonic() + seconds
    while not holds():
        if clock.monotonic() > until:
            return False
        wake.wait(0.02)
    return True


def must(holds: object, otherwise: str) -> None:
    """Raise `BrokeError` with *otherwise* unless *holds*."""
    if not holds:
        raise BrokeError(otherwise)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A process on a pseudo-terminal: its end, the person's end, and all that was printed there."""

    process: subprocess.Popen[bytes]
    own: int
    keyboard: int
    printed: bytearray


@contextlib.contextmanager
def at_terminal(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Generator[Terminal]:
    """Run *command* on a terminal of 140 cells, and kill it at the end."""
    keyboard, own = pty.openpty()
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("4H", 40, 140, 0, 0))
    process = subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **env}, stdin=own, stdout=own, stderr=own, start_new_session=True
    )  # fmt: skip
    printed = bytearray()
    threading.Thread(target=_drain, args=(keyboard, printed), daemon=True).start()
    try:
        yield Terminal(process, own, keyboard, printed)
    finally:
        process.kill()
        process.wait()
        os.close(own)


def _drain(keyboard: int, printed: bytearray) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(keyboard, 65536):
            printed += data
    os.close(keyboard)


@contextlib.contextmanager
def _logging_to(home: Home) -> Generator[None]:
    """Have this process log as a console on *home* does, which an attack may read."""
    root = logging.getLogger()
    before, handler = root.level, LogFile(log_path(home), max_bytes=1 << 20, keep=0)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
        handler.close()


class Arena:
    """One home and all around it, from `with` to its end.

    Attributes:
        agent: the session whose call waits; `agent["token"]` is what the agent holds.
        other: another session, with a socket of its own.
        approval: the id of the waiting call.
        marker: stands in the draft that the preview shows, and nowhere else.
        key: a model provider's, in the vault.
        heard: all that the present attack was answered.
        spoiled: an attack changed the home, so that the next one needs a new one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, Home(folder / "home")
        self.marker = f"only-for-the-person-{secrets.token_hex(8)}"
        self.passphrase, self.key = secrets.token_urlsafe(18), f"sk-{secrets.token_hex(20)}"
        self.heard, self.spoiled = "", False
        self.views: dict[str, ApprovalView] = {}
        self.events: list[CoreEvent] = []
        self._made: dict[Any, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        place = str(examples().parent)
        sys.path.insert(0, place)  # the examples import their modules by their folder's name
        self._stack.callback(sys.path.remove, place)
        from examples.mailbox.seed import new_mail
        from examples.mailbox.server import Mailbox

        mail = new_mail("Anna <anna@nordlicht.example>", self.marker, f"{self.marker}\n{HOSTILE}\n")
        self.mailbox = self._stack.enter_context(Mailbox(drafts=[(EXAMPLE_DRAFT, mail)]))
        self.route = f"{EXAMPLE_HOST}=127.0.0.1:{self.mailbox.port}"
        self.home.prepare()
        add_example(self.home)
        self._stack.enter_context(_logging_to(self.home))
        self._stack.callback(self._stop)
        self._start(CreateVault, accept_installed=True)
        key = Secret(self.key)
        self.core.submit(
            SetModelKey(provider="openai", base_url="https://api.openai.com", secret=key)
        )
        self.agent, self.other = self.session(), self.session(launched=True, contained=True)
        self.approval = self.ask(RUN, CALL, token=self.agent["token"]).json["approval_id"]
        self.shown()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # The person

    def _start(
        self, open_vault: type[CreateVault | UnlockVault], *, accept_installed: bool = False
    ) -> None:
        """Open the home and serve it as `aileron serve` does, with its vault open."""
        self.views.clear()
        self.events.clear()
        self.core = core_thread(self.home, [self.route], accept_installed=accept_installed)
        self.app = self.core.start()
        for view in self.core.subscribe(self._hear).approvals:
            self.views.setdefault(view.approval_id, view)
        self.core.submit(open_vault(passphrase=Secret(self.passphrase)))
        self._wait(lambda: self.app.vault.state == "unlocked")

    def _stop(self) -> None:
        self.core.stop()  # the one that serves at the end

    def _hear(self, event: CoreEvent) -> None:
        self.events.append(event)
        if isinstance(event, ApprovalUpdated):
            self.views[event.view.approval_id] = event.view

    def _wait(self, holds: Callable[[], object]) -> None:
        if not eventually(holds):
            raise TimeoutError

    @contextlib.contextmanager
    def restarted(self) -> Generator[None]:
        """Stop the core, let the attack change its files, and start it again."""
        self.spoiled = True
        self.core.stop()
        yield
        self._start(UnlockVault)

    def shown(self) -> ApprovalView:
        """Return the waiting call once its preview is on the screen."""
        shown = lambda: self.views[self.approval].preview.status == "ready"  # noqa: E731
        self._wait(lambda: self.approval in self.views and shown())
        return self.views[self.approval]

    def approve(self, view: ApprovalView) -> ApprovalView:
        """Approve what *view* showed, and return how the call stands once that is settled."""
        self.core.submit(Approve(approval_id=view.approval_id, digest=view.digest))
        now = lambda: self.views[view.approval_id]  # noqa: E731
        unsettled = ("checking", "approved", "executing")
        self._wait(lambda: now().version != view.version and now().state not in unsettled)
        return now()

    @property
    def is_lost(self) -> bool:
        """Whether the core has stopped serving, or writes nothing any more."""
        return self.core.failure is not None or any(
            isinstance(each, CoreLost) or (isinstance(each, StorageHealth) and not each.writable)
            for each in tuple(self.events)
        )

    # What another program can do

    @property
    def port(self) -> int:
        return int(self.app.address.url.rpartition(":")[2])

    def once(self, make: Callable[["Arena"], contextlib.AbstractContextManager[_T]]) -> _T:
        """Return what *make* makes, the first time that this home needs it; it ends with the arena."""
        if make not in self._made:
            self._made[make] = self._stack.enter_context(make(self))
        return self._made[make]

    def session(self, **more: Any) -> dict[str, Any]:
        """Open a session over the home's socket, as `aileron launch` and the relay do: of another process than this."""
        asked = {"agent": "attacker", "cwd": str(self.folder), **more}
        return self.ask("POST /v1/sessions", asked, way="process").json

    def ask(
        self, line: str, body: object = None, *headers: str, token: str = "", way: Way = "port"
    ) -> Answer:
        """Return the answer to one request; Host and Content-Type are sent unless among *headers*."""
        body = CALL if body is None and line.endswith("/run") else body
        data = json.dumps(body or {}).encode() if line.startswith("POST") else b""
        names = {each.partition(":")[0] for each in headers}
        lines = [f"{line} HTTP/1.1", *headers, "Connection: close", f"Content-Length: {len(data)}"]
        lines += [f"Host: 127.0.0.1:{self.port}"] if "Host" not in names else []
        lines += ["Content-Type: application/json"] if "Content-Type" not in names else []
        lines += [f"Authorization: Bearer {token}"] if token else []
        return self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + data, way)

    def refused(
        self, by: Container[int], line: str, body: object = None, *headers: str, **how: Any
    ) -> Answer:
        """Return the answer to one request, whose status has to be one of *by*."""
        answer = self.ask(line, body, *headers, **how)
        what = line if len(line) < 60 else f"{line[:40]}...{line[-15:]}"
        must(answer.status in by, f"{what} was answered with {answer.status}")
        return answer

    def send(self, data: bytes, way: Way = "port") -> Answer:
        """Send exactly *data*; all that comes after the first answer's head is its body."""
        received = b""
        if way == "process":
            sends = [sys.executable, "-I", "-c", _SENDS, str(self.home.socket)]
            return self._answer(bytes.fromhex(self.run(sends, data.decode())))
        if way == "port":
            connection = socket.create_connection(("127.0.0.1", self.port), _SECONDS)
        else:
            path = self.home.socket if way == "home" else self.other["socket"]
            connection = connect_unix(path, _SECONDS)
        with connection, contextlib.suppress(ConnectionError):
            connection.sendall(data)
            while chunk := connection.recv(65536):
                received += chunk
        return self._answer(received)

    def _answer(self, received: bytes) -> Answer:
        head, _, text = received.decode("utf-8", "replace").partition("\r\n\r\n")
        self.heard += text
        status = int(head.split()[1]) if head else 0
        return Answer(status=status, head=head.lower(), body=text)

    def sql(self, *statements: str) -> None:
        """Change the database."""
        self.spoiled = True
        connection = sqlite3.connect(self.home.database, isolation_level=None, timeout=_SECONDS)
        with contextlib.closing(connection) as database:
            for statement in statements:
                database.execute(statement)

    def program(self, source: str, *words: str) -> str:
        """Run Python *source* as another process, and return what it prints."""
        return self.run([sys.executable, "-I", "-c", source, *words])

    def run(
        self,
        command: Sequence[str],
        text: str = "",
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run *command* to its end, and return what it prints."""
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, errors="replace", timeout=60,
            check=False, cwd=cwd or self.folder, env={**os.environ, **(env or {})},
        )  # fmt: skip
        self.heard += done.stdout + done.stderr
        return done.stdout

    # The verdict

    def check(self, seconds: float = 0.0) -> None:
        """Raise `BrokeError` if, within *seconds*, a mail is sent, a call decided, or a secret was heard."""
        eventually(lambda: self.mailbox.state()["sent"], seconds)
        must(not self.mailbox.state()["sent"], "the service sent a mail that nobody approved")
        states = {view.state for view in tuple(self.views.values())} & _DECIDED
        must(not states, f"a call that nobody answered is {', '.join(states)}")
        hidden = {"preview": self.marker, "vault's key": self.key, "passphrase": self.passphrase}
        for what, secret in hidden.items():
            must(secret not in self.heard, f"the {what} was read")


class Attack:
    """One attack: its name, what it tries, and the function that tries it, with what it is given besides the arena.

    The function returns what stopped it; it raises `BrokeError` where nothing did, `SkippedError` where
    it cannot be tried.
    """

    def __init__(
        self, name: str, tries: str, run: Callable[..., str], *given: Any, **named: Any
    ) -> None:
        self.name, self.tries = name, tries
        self.run: Callable[[Arena], str] = lambda arena: run(arena, *given, **named)
