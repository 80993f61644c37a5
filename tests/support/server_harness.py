"""Real processes for the tests of server and command line: `aileron serve`, one with a person, `aileron`.

Every JSON answer that passes through here is held against the console's own OpenAPI document.
"""

import contextlib
import http.client
import json
import os
import pty
import queue
import re
import secrets
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from aileron_core.server.openapi import document
from examples.mailbox.server import Mailbox
from tests.support.forked import forked, run_forked
from tests.support.ordinary import acting_as
from tests.support.processes import eventually as eventually

Done = subprocess.CompletedProcess[str]
ROOT = Path(__file__).resolve().parents[2]
CLI = (sys.executable, "-I", "-m", "aileron_tui.cli")
CHILD = ROOT / "tests" / "process" / "crash_child.py"
DRAFT = "r-8842190447"
DOCUMENT = document()
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> dict[str, Any]:
        """The one error body's inner object; fails where the body is anything else."""
        assert self.headers["content-type"] == "application/json"
        body = self.json
        assert set(body) == {"error"}
        members = {"class", "message", "retriable", "boundary", "audit_id", "details"}
        assert set(body["error"]) == members
        return body["error"]


def closed(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {**schema, "additionalProperties": False} if "properties" in schema else schema
        for name, schema in schemas.items()
    }


CLOSED = {"schemas": closed(DOCUMENT["components"]["schemas"])}
"""What is answered has to be described to the last member."""


def template_of(path: str) -> str | None:
    """Return the document's path that *path* is an instance of; a literal one goes first."""
    bare = path.partition("?")[0]
    for known in sorted(DOCUMENT["paths"], key=lambda each: each.count("{")):
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", known), bare):
            return known
    return None


def hold_to_the_document(method: str, path: str, answer: Answer) -> None:
    """Fail unless the document describes this answer."""
    kind = answer.headers.get("content-type", "")
    if method == "HEAD" or not kind.startswith("application/json"):
        return
    operation = DOCUMENT["paths"].get(template_of(path) or "", {}).get(method.lower())
    if operation is None:
        schema: dict[str, Any] = {"$ref": "#/components/schemas/Error"}
    else:
        found = operation["responses"].get(str(answer.status), operation["responses"]["default"])
        schema = found["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": CLOSED}).validate(answer.json)
    for key, value in answer.json.items():
        if key.endswith("_at") and value is not None:
            assert _TIME.fullmatch(value), f"{key} is {value}"


def query(home: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return what *statement* finds in the database of *home*, as another program reads it."""
    opened = sqlite3.connect(f"file:{home / 'aileron.db'}?mode=ro", uri=True)
    with contextlib.closing(opened) as database:
        return database.execute(statement).fetchall()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("aileron", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with acting_as(self._path.stat().st_uid):
                self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)


class Console:
    """A console's process: `aileron serve`, or the child with a person in it."""

    def __init__(
        self,
        home: Path,
        mailbox: Mailbox | None = None,
        *options: str,
        command: Sequence[str] = (*CLI, "serve"),
        env: Mapping[str, str] | None = None,
        accept: bool = True,
        first: Sequence[str] = (),
        **popen: Any,
    ) -> None:
        self.home = home
        self._command = [*command, "--home", str(home), "--json", *options]
        if mailbox is not None:
            self._command += ["--route", f"gmail.googleapis.com:443=127.0.0.1:{mailbox.port}"]
        if accept:
            self._command.append("--accept-installed")
        self._env = {**os.environ, **(env or {})}
        self._popen = popen
        self.stderr = home.parent / "console.stderr"
        self.start(*first)

    def start(self, *more: str) -> None:
        with self.stderr.open("ab") as stderr:
            ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
            command = [*self._command, *more]
            self.process = forked(command, **ends, text=True, env=self._env, **self._popen)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it did not start: {self.stderr.read_text()}"
        self.said = json.loads(line)
        self.url: str = self.said["url"]
        self.port = int(self.url.rpartition(":")[2])

    def end(self, number: int = signal.SIGTERM, seconds: float = 60) -> int:
        """Signal it, wait for its end, return its code (negative: the signal that killed it)."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(seconds)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return code

    def close(self) -> None:
        """End it however it is, and fail if it ever wrote to the terminal or logged a traceback."""
        self.end(signal.SIGKILL)
        assert self.stderr.read_text() == ""
        log = self.home / "log" / "aileron.log"
        assert "Traceback" not in (log.read_text() if log.exists() else "")

    # Requests

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        local: bool = False,
        timeout: float = 30,
    ) -> Answer:
        """Return the answer to one request, over TCP or (local) over the home's socket."""
        given = dict(headers or {})
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        data = raw if body is None else json.dumps(body).encode()
        if data is not None:
            given.setdefault("Content-Type", "application/json")
        connection = self.connection(local=local, timeout=timeout)
        try:
            connection.request(method, path, data, given)
            response = connection.getresponse()
            lowered = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(status=response.status, headers=lowered, raw=response.read())
        finally:
            connection.close()
        hold_to_the_document(method, path, answer)
        return answer

    def connection(self, *, local: bool = False, timeout: float = 30) -> http.client.HTTPConnection:
        if local:
            return _UnixConnection(self.home / "run" / "console.sock", timeout)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path: str, **more: Any) -> Answer:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.request("POST", path, body, **more)

    def session(self, **more: Any) -> dict[str, Any]:
        answer = self.post("/v1/sessions", {"agent": "test", "cwd": "/tmp", **more}, local=True)
        assert answer.status == 201, answer.raw
        return answer.json

    def ask(self, intent: str, /, **fields: Any) -> Answer:
        return self.post("/v1/intents", {intent: fields}, local=True)

    def unlock(self, phrase: str) -> Answer:
        return self.ask("UnlockVault", passphrase=phrase)

    @property
    def vault(self) -> str:
        return self.ask("ReadVault").json["VaultStatus"]["state"]

    def run(self, action: str, args: Any, token: str, **more: Any) -> Answer:
        return self.post(f"/v1/actions/{action}/run", {"args": args, **more}, token=token)

    @contextlib.contextmanager
    def hold(self, session_id: str, **more: Any) -> Iterator[http.client.HTTPResponse]:
        """Keep the session's hold stream open; it has begun when this is entered."""
        connection = self.connection(local="token" not in more)
        headers = {"Authorization": f"Bearer {more['token']}"} if "token" in more else {}
        connection.request("GET", f"/v1/sessions/{session_id}/hold", headers=headers)
        response = connection.getresponse()
        assert (response.status, response.readline()) == (200, b": held\n")
        try:
            yield response
        finally:
            response.close()
            connection.close()

    def records(self) -> list[dict[str, Any]]:
        found = query(self.home, "SELECT body FROM audit ORDER BY seq")
        return [json.loads(body) for (body,) in found]

    def rows(self, columns: str = "state") -> list[tuple[Any, ...]]:
        return query(self.home, f"SELECT {columns} FROM runs ORDER BY run_id")


class Attended(Console):
    """A console with a person in it: decisions go in over stdin, events come out over stdout."""

    def __init__(
        self, home: Path, *given: Any, failpoint: str = "", under: Sequence[str] = (), **more: Any
    ) -> None:
        if failpoint:
            more["first"] = (*more.get("first", ()), "--failpoint", failpoint)
        super().__init__(home, *given, command=(*under, sys.executable, "-I", str(CHILD)), **more)

    def start(self, *more: str) -> None:
        super().start(*more)
        self.views: dict[str, dict[str, Any]] = {}
        self.refusals: list[dict[str, Any]] = []
        self.hosts: dict[str, dict[str, Any]] = {}
        """By session: the hosts that it was refused, and those that it was allowed."""
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        reading = (self.process.stdout, self._events)
        threading.Thread(target=self._read, args=reading, daemon=True).start()

    @staticmethod
    def _read(stream: Any, events: "queue.SimpleQueue[dict[str, Any] | None]") -> None:
        with contextlib.suppress(ValueError):
            for line in stream:
                events.put(json.loads(line))
        events.put(None)

    def tell(self, **intent: Any) -> None:
        """Hand a person's intent over; lost where the process is gone."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(intent) + "\n")
            self.process.stdin.flush()

    def until(self, holds: Callable[[], bool], seconds: float = 60) -> bool:
        """Read events until *holds*; False if the process ended first."""
        deadline = time.monotonic() + seconds
        while not holds():
            try:
                event = self._events.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not within {seconds} s: {self.views}") from None
            if event is None:
                return False
            if "session" in event:
                self.hosts[event["session"]] = event
            elif "refused" in event:
                self.refusals.append(event)
            else:
                self.views[event["approval_id"]] = event
        return True

    def ready(self, approval_id: str) -> bool:
        """Wait until a person could answer; False if the process ended first."""
        return self.until(lambda: bool(self.views.get(approval_id, {}).get("digest")))

    def state(self, approval_id: str, *states: str) -> bool:
        """Wait until the approval is in one of *states*; False if the process ended first."""
        return self.until(lambda: self.views.get(approval_id, {}).get("state") in states)

    def approve(self, approval_id: str) -> bool:
        """Say yes to what is shown; False if the process ended before it could be."""
        if not self.ready(approval_id):
            return False
        self.tell(approve=approval_id, digest=self.views[approval_id]["digest"])
        return True


def aileron(*words: str, home: Path, code: int | None = 0, **how: Any) -> Done:
    """Run a command in *home* to its end, as `completed` does, and hold it to its exit code."""
    done = completed(*words, "--home", str(home), **how)
    if code is not None:
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def completed(
    *words: str, env: Mapping[str, str] | None = None, stdin: str = "", cwd: Path | None = None
) -> Done:
    """Run `aileron` with these *words* alone to its end; it never prints a traceback."""
    done = run_forked([*CLI, *words], stdin, env={**os.environ, **(env or {})}, cwd=cwd)
    assert "Traceback" not in done.stderr
    return done


def aileron_json(*arguments: str, **more: Any) -> dict[str, Any]:
    done = aileron(*arguments, "--json", **more)
    assert done.stderr == ""
    content = json.loads(done.stdout)
    assert isinstance(content, dict)
    return content


def on_a_terminal(*words: str | bytes, home: Path, **env: str) -> bytes:
    """Run a command with a terminal for all three streams; return what the terminal was sent."""
    ours, theirs = pty.openpty()
    command = [*CLI, *map(os.fsdecode, words), "--home", str(home)]
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    with forked(command, **streams, env={**kept, **env}) as process:
        os.close(theirs)
        found = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while select.select([ours], [], [], 60)[0] and (data := os.read(ours, 65536)):
                found += data
        process.wait(60)
    os.close(ours)
    # A console says on its first line what it opens, and takes it back before anything else.
    return re.sub(rb"^aileron: opening [^\r\n]*\r +\r", b"", found)


def quiet_port() -> int:
    """Return a free port below those that the kernel gives to whoever asks for any: nobody takes it."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)  # `random` begins alike in every worker
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


Serve = Callable[..., Console]
Attend = Callable[..., Attended]
"""The fixtures that start as many as a test wants."""
