"""`aileron-mcp`: what an agent starts; stdio JSON-RPC on one side, the console's `/mcp` on the other.

One file and the standard library, because an agent waits for it at its start: an MCP server on the
official package needs over a second to import. It forwards what the client sends, in either
protocol era ("old" 2025-03-26 to 2025-11-25, "new" 2026-07-28), holds no state but the old era's
session, and carries the agent over a restart of the console.

Where the console is, and why it is believed before a byte is sent to it:
    AILERON_URL=unix:PATH   a contained session's own socket; it was bound into the sandbox
    AILERON_HOME            (or ~/.aileron) `run/console.sock`, if the kernel says that the process
                            behind it is the one that holds the home's lock
    AILERON_URL=https://... only where the home has neither lock nor socket; AILERON_CERT_SHA256 is
                            the certificate's SHA-256
    AILERON_URL=http://127.0.0.1:PORT
                            likewise; the console proves that it knows the token, by HMAC
Whose session it is: AILERON_TOKEN, or the content of AILERON_TOKEN_FILE, or one that the relay opens
for itself (its name: AILERON_AGENT, else the parent's program) and ends when it ends.
AILERON_WAIT_SECONDS (0 to 300, default 30): how long to look for an absent console.

Exit codes: 0 stdin ended or SIGTERM, 2 usage, 69 no console, 70 a bug, 130 SIGINT.
"""

import json
import os
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn, cast

__all__ = ["main"]

_LINE_LIMIT = 4 * 1024 * 1024  # bytes of one message on stdin
_HEAD_LIMIT = 64 * 1024  # bytes of one HTTP line from the console
_FIELD_LIMIT = 256  # HTTP fields of one answer
_ANSWER_LIMIT = 128 * 1024 * 1024  # bytes of one message from the console; its guests print 8 MiB
_POLL_SECONDS = 1.0
_CONNECT_SECONDS = 5.0
_PROOF_SECONDS = 2.0
_END_SECONDS = 1.0  # for each farewell; an agent kills its children soon after asking them to end
_TRIES = 5
_STREAM_PAUSE = 0.2  # seconds before a standing stream is opened again
_SOCKET_PATH_LIMIT = 100  # bytes; sockaddr_un has 104 to 108

_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR, _NO_CONSOLE = -32700, -32600, -32603, -32000
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_LIST_CHANGED = "notifications/tools/list_changed"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# int() alone would take signs, underscores, other scripts' digits, and fail on thousands of them.
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LENGTH = re.compile(r"[0-9]{1,15}")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: .*)?")
_BREAK = re.compile(rb"[\r\n]")
_NOTHING = b"null"
_VISIBLE = re.compile(r"[\x21-\x7e]+")

Message = dict[str, Any]


class _Absent(Exception):
    """This attempt found no console that may be believed; the text is a sentence for a person."""


class _NoConsole(Exception):
    """The wait for a console is over."""


class _Denied(Exception):
    """The console answered and said no; the text goes to the client."""


class _Dropped(Exception):
    """The connection ended early. `sent`: the whole request had gone out, so it may have run."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("sent" if sent else "not sent")
        self.sent = sent


# ---------------------------------------------------------------------------------------------- #
# HTTP/1.1 over a socket: `http.client` alone costs more to import than the rest of this file.


class _Link:
    """One connection to a console that is believed."""

    def __init__(self, sock: socket.socket, host: str) -> None:
        self._socket = sock
        self._host = host
        self._buffer = bytearray()
        self.status = 0
        self.headers: dict[str, str] = {}

    def __enter__(self) -> "_Link":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def limit(self, seconds: float) -> None:
        """Bound every later wait on this connection."""
        self._socket.settimeout(seconds)

    def abort(self) -> None:
        """End the connection from another thread; whoever reads it sees it dropped."""
        with suppress(OSError):  # it may have ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> int:
        """Send a request and read the answer's head; return its status.

        Raises:
            _Dropped: the connection ended first.
        """
        fields = {"Host": self._host, "Connection": "close", **headers}
        if method == "POST":
            fields["Content-Length"] = str(len(body))
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items())]
        try:
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        except OSError as error:
            # The kernel did not take all of it, so the console cannot have read a whole request.
            raise _Dropped(sent=False) from error
        self._read_head()
        return self.status

    def _read_head(self) -> None:
        status = _STATUS_LINE.fullmatch(self._line())
        if status is None:
            raise _Dropped(sent=True)
        self.status = int(status[1])
        self.headers = {}
        while line := self._line():
            if len(self.headers) >= _FIELD_LIMIT:
                raise _Dropped(sent=True)
            name, _, value = line.partition(b":")
            self.headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")

    def chunks(self) -> Generator[bytes]:
        """Yield the answer's body as it comes."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := self._chunk_size():
                yield from self._exactly(size)
                self._line()
            while self._line():
                pass
        elif (length := self.headers.get("content-length")) is not None:
            if _LENGTH.fullmatch(length) is None:
                raise _Dropped(sent=True)
            yield from self._exactly(int(length))
        elif self.status not in (202, 204, 304):
            while self._buffer or self._fill(at_end=False):
                data = bytes(self._buffer)
                self._buffer.clear()
                yield data

    def body(self) -> bytes:
        """Return the whole body."""
        parts: list[bytes] = []
        size = 0
        for part in self.chunks():
            parts.append(part)
            size += len(part)
            if size > _ANSWER_LIMIT:
                raise _Dropped(sent=True)
        return b"".join(parts)

    def _chunk_size(self) -> int:
        size = self._line().partition(b";")[0].strip()
        if _CHUNK_SIZE.fullmatch(size) is None:
            raise _Dropped(sent=True)
        return int(size, 16)

    def _exactly(self, size: int) -> Generator[bytes]:
        while size:
            if not self._buffer:
                self._fill()
            data = bytes(self._buffer[:size])
            del self._buffer[: len(data)]
            size -= len(data)
            yield data

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise _Dropped(sent=True)
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _fill(self, *, at_end: bool = True) -> bool:
        """Read more; at the connection's end raise, or return False where the end is in order."""
        try:
            data = self._socket.recv(65536)
        except OSError as error:
            raise _Dropped(sent=True) from error
        if not data and at_end:
            raise _Dropped(sent=True)
        self._buffer += data
        return bool(data)


def _events(chunks: Iterable[bytes]) -> Generator[bytes]:
    """Yield the data of each server-sent event as soon as it is complete.

    Raises:
        _Dropped: an event does not end within the limit.
    """
    rest: list[bytes] = []  # of a line that has not ended; joined once, however many pieces
    data: list[bytes] = []
    size = 0
    for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest = []
        for line in (line.removesuffix(b"\r") for line in lines):
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data, size = [], 0
        if last:
            rest.append(last)
        size = size + len(chunk) if data or rest else 0
        if size > _ANSWER_LIMIT:
            raise _Dropped(sent=True)


# ---------------------------------------------------------------------------------------------- #
# Finding the console


class _Console:
    """Where the console is, and whether what answers there may be believed."""

    def __init__(self, environ: Mapping[str, str], stop: threading.Event) -> None:
        self._url = environ.get("AILERON_URL", "")
        home = environ.get("AILERON_HOME") or os.path.join("~", ".aileron")  # noqa: PTH118 - no pathlib
        self._home = os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111
        self._pin = environ.get("AILERON_CERT_SHA256", "").replace(":", "").lower()
        self._patience = _seconds(environ.get("AILERON_WAIT_SECONDS"), default=30.0)
        self._stop = stop
        self._lock = threading.Lock()
        self._absent_since: float | None = None
        self.contained = self._url.startswith("unix:")

    def connect(self, token: Callable[[], str | None]) -> _Link:
        """Return a connection to the console; while there is none, look once a second.

        Args:
            token: gives the token that a console on a TCP port has to know.

        Raises:
            _NoConsole: there was none for AILERON_WAIT_SECONDS, counted over all threads.
        """
        while True:
            try:
                link = self.attempt(token)
            except _Absent as absent:
                now = time.monotonic()
                with self._lock:
                    since = self._absent_since = self._absent_since or now
                left = since + self._patience - now
                if left <= 0:
                    raise _NoConsole(str(absent)) from None
                self._stop.wait(min(_POLL_SECONDS, left))
                if self._stop.is_set():
                    raise _NoConsole("The relay has ended.") from None
            else:
                with self._lock:
                    self._absent_since = None
                return link

    def attempt(self, token: Callable[[], str | None]) -> _Link:
        """Try once.

        Raises:
            _Absent: nothing is there, or something that is not the console.
        """
        if self.contained:
            path = self._url.removeprefix("unix:")
            return _Link(_connect_unix(path), "127.0.0.1")
        path = os.path.join(self._home, "run", "console.sock")  # noqa: PTH118
        holder = _lock_holder(self._home)
        if holder is None:
            if self._url and not os.path.lexists(path):
                return self._connect_url(token())
            raise _Absent(
                f"No console holds {self._home}: start one with `aileron console`,"
                " then start the agent again."
            )
        sock = _connect_unix(path)
        if _peer_pid(sock) != holder:
            sock.close()
            raise _Absent(
                f"What answers at {path} is not the console that holds {self._home}, so nothing was"
                " sent to it: stop that program, then start the agent again."
            )
        return _Link(sock, "127.0.0.1")

    def _connect_url(self, token: str | None) -> _Link:
        plain = re.fullmatch(r"http://127\.0\.0\.1:(\d{1,5})/?", self._url)
        if plain is not None:
            return _proven(_connect_tcp("127.0.0.1", int(plain[1])), int(plain[1]), token)
        pinned = re.fullmatch(r"https://([A-Za-z0-9.-]+):(\d{1,5})/?", self._url)
        if pinned is None or re.fullmatch(r"[0-9a-f]{64}", self._pin) is None:
            raise _Absent(
                "AILERON_URL must be unix:PATH, http://127.0.0.1:PORT, or https://HOST:PORT with"
                " AILERON_CERT_SHA256 set to the SHA-256 of its certificate."
            )
        return _pinned(_connect_tcp(pinned[1], int(pinned[2])), pinned[1], pinned[2], self._pin)


def _seconds(text: str | None, *, default: float) -> float:
    try:
        return min(300.0, max(0.0, float(text))) if text else default
    except ValueError:
        return default


def _connect_unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(_CONNECT_SECONDS)
    try:
        if len(os.fsencode(path)) <= _SOCKET_PATH_LIMIT:
            sock.connect(path)
        elif sys.platform == "linux":
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)  # noqa: PTH120
            try:
                sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")  # noqa: PTH119
            finally:
                os.close(folder)
        else:
            raise _Absent(
                f"The socket path {path} is too long for this system: use a shorter home."
            )
    except OSError as error:
        sock.close()
        raise _Absent(
            f"No console answers at {path} ({error.strerror}): start one with `aileron console`,"
            " then start the agent again."
        ) from error
    sock.settimeout(None)
    return sock


def _connect_tcp(host: str, port: int) -> socket.socket:
    try:
        sock = socket.create_connection((host, port), _CONNECT_SECONDS)
    except (OSError, OverflowError) as error:
        raise _Absent(f"No console answers at {host}:{port}.") from error
    sock.settimeout(None)
    return sock


def _peer_pid(sock: socket.socket) -> int:
    """Return the process behind a Unix socket, as the kernel knows it."""
    if sys.platform == "linux":
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("3i", credentials)[0])
    sol_local, local_peerpid = 0, 2  # <sys/un.h> of macOS; the socket module does not name them
    return sock.getsockopt(sol_local, local_peerpid)


def _lock_holder(home: str) -> int | None:
    """Return the process that holds the home's lock, or None.

    Raises:
        _Absent: the home belongs to somebody else.
    """
    try:
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        found = os.fstat(folder)
        if found.st_uid != os.getuid():
            raise _Absent(
                f"{home} belongs to another user: set AILERON_HOME to a home of your own."
            )
        if sys.platform != "linux":
            return _pid_on_file(home)
        devices = {f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}", _mount(folder)}
        return _flock_holder({f"{device}:{found.st_ino}".encode() for device in devices})
    except OSError as error:
        raise _Absent(
            f"The kernel does not say who holds {home} ({error}): mount /proc, or set AILERON_URL to"
            " the session's own socket."
        ) from error
    finally:
        os.close(folder)


def _flock_holder(places: set[bytes]) -> int | None:
    with open("/proc/locks", "rb") as locks:  # noqa: PTH123
        for line in locks:
            # "3: FLOCK  ADVISORY  WRITE 812 fd:00:1573 0 EOF"; a waiter has "->" second
            fields = line.split()
            if fields[1:4] == [b"FLOCK", b"ADVISORY", b"WRITE"] and fields[5] in places:
                return int(fields[4])
    return None


def _mount(descriptor: int) -> str:
    """Return `major:minor` of the file system itself: on btrfs `st_dev` is another number."""
    with open(f"/proc/self/fdinfo/{descriptor}") as facts:  # noqa: PTH123
        mount = next((line.split()[1] for line in facts if line.startswith("mnt_id:")), "")
    with open("/proc/self/mountinfo", errors="replace") as mounts:  # noqa: PTH123
        for line in mounts:
            fields = line.split(" ", 3)
            if fields[0] == mount:
                major, _, minor = fields[2].partition(":")
                return f"{int(major):02x}:{int(minor):02x}"
    return ""


def _pid_on_file(home: str) -> int | None:
    """Return the pid of `daemon.json`: weaker than the lock, for systems that do not tell who holds it."""
    try:
        with open(os.path.join(home, "daemon.json"), "rb") as file:  # noqa: PTH118, PTH123
            pid = json.load(file)["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) else None


def _proven(sock: socket.socket, port: int, token: str | None) -> _Link:
    """Return the connection once the other side has proved that it knows the token, unseen.

    The port is in the proof, so a program that took the old port cannot pass the question on to the
    real console and the answer back.
    """
    import hashlib
    import hmac

    link = _Link(sock, f"127.0.0.1:{port}")
    nonce = os.urandom(32).hex()
    known = hashlib.sha256((token or "").encode()).hexdigest()
    key_id = hashlib.sha256(known.encode()).hexdigest()[:16]
    expected = hmac.new(known.encode(), f"{nonce}:127.0.0.1:{port}".encode(), "sha256").hexdigest()
    headers = {"Aileron-Challenge": f"{key_id}:{nonce}", "Connection": "keep-alive"}
    # A timer over all of it: one that answers a byte at a time must not hold the agent up.
    timer = threading.Timer(_PROOF_SECONDS, link.abort)
    timer.start()
    try:
        status = link.request("GET", "/v1/health", headers) if token else 0
        answer = _object(link.body()) if status == 200 else {}
    except _Dropped:
        answer = {}
    finally:
        timer.cancel()
    proof = answer.get("proof")
    if not isinstance(proof, str) or not hmac.compare_digest(proof.encode(), expected.encode()):
        sock.close()
        raise _Absent(
            f"What answers at 127.0.0.1:{port} does not prove that it is the console of this session,"
            " so no token was sent to it."
        )
    return link


def _pinned(sock: socket.socket, host: str, port: str, pin: str) -> _Link:
    """Return the connection under TLS, if the certificate is the one that was pinned."""
    import hashlib
    import hmac
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the pin is stronger than a name
    context.verify_mode = ssl.CERT_NONE
    sock.settimeout(_CONNECT_SECONDS)  # of the whole handshake: nobody is believed yet
    try:
        wrapped = context.wrap_socket(sock, server_hostname=host)
        wrapped.settimeout(None)
    except OSError as error:
        sock.close()
        raise _Absent(f"{host}:{port} does not speak TLS.") from error
    certificate = wrapped.getpeercert(binary_form=True) or b""
    if not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), pin):
        wrapped.close()
        raise _Absent(f"The certificate of {host}:{port} is not the one in AILERON_CERT_SHA256.")
    return _Link(wrapped, f"{host}:{port}")


# ---------------------------------------------------------------------------------------------- #
# Whose session


class _Identity:
    """The session token: given, read from a file, or of a session that the relay opens for itself."""

    def __init__(
        self,
        environ: Mapping[str, str],
        console: _Console,
        start: Callable[..., None],
        stop: threading.Event,
    ) -> None:
        self._console = console
        self._start = start
        self._stop = stop
        self._file = environ.get("AILERON_TOKEN_FILE", "")
        self._given = environ.get("AILERON_TOKEN", "").strip()
        self._agent = environ.get("AILERON_AGENT", "")
        self._lock = threading.Lock()
        self._token = self._given or None
        self._own_session: str | None = None

    def connect(self) -> tuple[_Link, str | None]:
        """Return a connection and the token to send on it.

        Raises:
            _NoConsole: there is no console.
            _Denied: the console opens no session.
        """
        token = self._current()
        return self._console.connect(self._known), token

    def _known(self) -> str | None:
        return self._token

    def _current(self) -> str | None:
        if self._console.contained:
            return None
        with self._lock:
            if self._token is None:
                self._token = self._from_file() if self._file else self._open()
            return self._token

    def renew(self, used: str | None) -> bool:
        """After a 401 for *used*: say whether there is another token to try."""
        if self._console.contained or self._given:
            return False
        with self._lock:
            if self._token == used:
                self._token = self._from_file() if self._file else None
            return self._token != used

    def _from_file(self) -> str:
        try:
            with open(self._file) as file:  # noqa: PTH123
                token = file.read(4096).strip()
        except (OSError, UnicodeDecodeError):
            token = ""
        if not token:  # an empty one may be being written: the next request reads it again
            raise _Denied(
                "AILERON_TOKEN_FILE cannot be read or is empty: the session has ended. Start the"
                " agent again, with a token of an open session or with none."
            )
        return token

    def _open(self) -> str:
        body = {
            "agent": self._agent or _parent_program(),
            "label": "self-opened",
            "cwd": _working_directory(),
            "pid": os.getppid(),
        }
        for _ in range(_TRIES):
            try:
                status, answer = self._ask_for_one(body)
                break
            except _Dropped:  # what it opened, if anything, ended with it or is nobody's
                self._stop.wait(_STREAM_PAUSE)
        else:
            raise _Denied("The console went away while a session was being opened.")
        session, token = answer.get("session_id"), answer.get("token")
        if status != 201 or not isinstance(session, str) or not isinstance(token, str):
            raise _Denied(f"The console opened no session: {_reason(answer, status)}")
        self._own_session = session
        self._start(self._hold, session, token)
        return token

    def _ask_for_one(self, body: Message) -> tuple[int, Message]:
        with self._console.connect(self._known) as link:
            headers = {"Content-Type": "application/json"}
            status = link.request("POST", "/v1/sessions", headers, json.dumps(body).encode())
            return status, _object(link.body())

    def _hold(self, session: str, token: str) -> None:
        """Keep the stream open whose loss ends the session."""
        headers = {"Authorization": f"Bearer {token}"}
        while self._own_session == session:
            pause = _STREAM_PAUSE
            try:
                with self._console.connect(self._known) as link:
                    status = link.request("GET", f"/v1/sessions/{session}/hold", headers)
                    if status == 401:
                        self.renew(token)
                    if status in (401, 404):
                        return  # it is over
                    if status != 200:  # the console cannot now, and the session is still ours
                        pause = _POLL_SECONDS
                    for _ in link.chunks():
                        pass
            except _Dropped:
                pass
            self._stop.wait(pause)

    def end(self) -> None:
        """End the session that was opened here; one attempt."""
        session, token = self._own_session, self._token
        self._own_session = None
        if session is not None and token is not None:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            self.farewell("POST", f"/v1/sessions/{session}/end", headers)

    def farewell(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Make a request whose answer matters to nobody, in bounded time."""
        try:
            with self._console.attempt(self._known) as link:
                link.limit(_END_SECONDS)
                link.request(method, path, headers)
        except (_Absent, _Dropped):
            pass  # the console ends the session by itself once its stream is lost

    def authorization(self) -> dict[str, str]:
        """Return the header for a farewell."""
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}


def _parent_program() -> str:
    try:
        return os.path.basename(os.readlink(f"/proc/{os.getppid()}/exe")) or "agent"  # noqa: PTH115, PTH119
    except OSError:
        return "agent"


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return os.path.expanduser("~")  # noqa: PTH111 - the folder was removed


# ---------------------------------------------------------------------------------------------- #
# Messages


class _Call:
    """One request of the client that has not been answered."""

    def __init__(self, message: Message, raw: bytes) -> None:
        self.id = message["id"]
        self.method = str(message["method"])
        self.raw = raw
        parameters = message.get("params")
        self.params: Message = cast("Message", parameters) if isinstance(parameters, dict) else {}
        meta = self.params.get("_meta")
        version = cast("Message", meta).get(_VERSION_KEY) if isinstance(meta, dict) else None
        self.version = version if isinstance(version, str) else None  # None: old era
        self.over = False  # answered or cancelled: nothing more is written for it
        self.acknowledged = False
        self.begun = threading.Event()
        self.link: _Link | None = None

    @property
    def key(self) -> str:
        return json.dumps(self.id)

    @property
    def repeatable(self) -> bool:
        """Say whether a second one does no harm if the first one ran."""
        return self.method != "tools/call" or self.params.get("name") == "check_action_status"

    def era_headers(self) -> dict[str, str]:
        """Return the headers by which the new era's server finds its way (EXPERIMENTS 2)."""
        if self.version is None:
            return {}
        headers = {"MCP-Protocol-Version": _field(self.version), "Mcp-Method": _field(self.method)}
        name = self.params.get(_NAMED_BY.get(self.method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = _field(name)
        return headers


def _field(value: str) -> str:
    """Return *value* fit for a header: as it is, or base64 in the protocol's own marks."""
    plain = _VISIBLE.fullmatch(value.replace(" ", "_")) and value == value.strip()
    if plain and not value.startswith("=?base64?"):
        return value
    import base64

    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _json(data: bytes) -> object:
    """Return the value of one JSON text in UTF-8.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(data.decode(), parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _object(data: bytes) -> Message:
    try:
        value = _json(data)
    except ValueError:
        return {}
    return cast("Message", value) if isinstance(value, dict) else {}


def _visible(value: object) -> str | None:
    """Return *value* if it may stand in a header as it is."""
    return value if isinstance(value, str) and _VISIBLE.fullmatch(value) else None


def _is_answer(message: Message) -> bool:
    """Say whether this is a response as JSON-RPC has it."""
    if message.get("jsonrpc") != "2.0" or "method" in message:
        return False
    error = message.get("error")
    if not isinstance(error, dict):
        return "result" in message and "error" not in message
    code, text = (cast("Message", error).get(name) for name in ("code", "message"))
    return "result" not in message and isinstance(code, int) and isinstance(text, str)


def _is_for_the_client(message: Message) -> bool:
    """Say whether this is a notification or a request as JSON-RPC has them."""
    return message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)


def _reason(answer: Message, status: int) -> str:
    error = answer.get("error")
    message = cast("Message", error).get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) and message else f"HTTP {status}"


def _text(value: object) -> bytes:
    """Return *value* as JSON on one line; what JSON cannot hold becomes null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        return _NOTHING


def _error(id_: object, code: int, message: str, data: object = None) -> Message:
    error: Message = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id_, "error": error}


def _outcome_unknown(call: _Call) -> Message:
    """Return the result of a call whose connection dropped: it may have run, or wait for a person."""
    message = (
        "The console went away during this call, so its outcome is not known here: it may have run,"
        " or wait for a person. Do not repeat it. Use check_action_status if you have an"
        " approval_id, or ask the user to look at the Aileron console."
    )
    failure: Message = {
        "class": "outcome_unknown",
        "message": message,
        "retriable": False,
        "boundary": "gate",
        "audit_id": None,
        "details": {},
    }
    result: Message = {
        "content": [{"type": "text", "text": message}],
        "structuredContent": {"status": "unknown", "error": failure},
        "isError": True,
        "resultType": "complete",
    }
    return {"jsonrpc": "2.0", "id": call.id, "result": result}


class _Lines:
    """Cuts stdin into lines; one that is too long is thrown away as it comes."""

    _ID_FIRST = re.compile(
        rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,99}")\s*,'
    )
    _ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18}|"[^"\\]{1,99}")\s*\}\s*$')

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._head: bytes | None = None  # of the line that is being thrown away

    def feed(self, data: bytes) -> Generator[tuple[bytes, bool]]:
        """Yield each line that *data* completes, and whether it was within the limit.

        One that was not is yielded as the JSON text of its id, `null` where that cannot be seen.
        """
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            if self._head is None and len(line) <= _LINE_LIMIT:
                yield line, True
            else:
                yield self._id(line), False
            self._head = None
        if len(self._buffer) > _LINE_LIMIT:
            self._head = self._head or bytes(self._buffer[:512])
            del self._buffer[:-512]
        self._searched = len(self._buffer)

    def _id(self, line: bytes) -> bytes:
        found = self._ID_FIRST.match(self._head or line[:512]) or self._ID_LAST.search(line[-512:])
        return found[1] if found else b"null"


# ---------------------------------------------------------------------------------------------- #
# The relay


class _Relay:
    """Between one client on stdio and the console."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._stop = threading.Event()
        self._console = _Console(environ, self._stop)
        self._identity = _Identity(environ, self._console, self._start, self._stop)
        self._lock = threading.Lock()  # of the table of calls and the exit code
        self._calls: dict[str, _Call] = {}
        self._code: int | None = None
        self._sentence: str | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._writing = threading.Lock()
        # The old era's session: what the client said first, and what the console made of it.
        self._greeting: bytes | None = None
        self._greeted: bytes | None = None  # the client's notifications/initialized
        self._session: str | None = None
        self._version: str | None = None
        self._epoch = 0
        self._handshake = threading.RLock()
        self._settled = threading.Event()  # no `initialize` is on its way
        self._settled.set()

    def run(self) -> int:
        """Serve until stdin ends, a signal comes or the console stays away; return the exit code."""
        # The kernel may hand a signal to any thread; only this descriptor wakes this one then.
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        lines = _Lines()
        while self._code is None:
            ready, _, _ = select.select([0, self._wake_read], [], [])
            if self._wake_read in ready:
                os.read(self._wake_read, 64)
                continue
            try:
                data = os.read(0, 1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                self._finish(0)
            for line, whole in lines.feed(data):
                if whole:
                    self._receive(line)
                else:
                    problem = f"The message is longer than {_LINE_LIMIT} bytes."
                    self._write(_error(json.loads(line), _INVALID_REQUEST, problem))
        return self._close()

    def _close(self) -> int:
        self._stop.set()
        code = self._code or 0
        if self._sentence is not None:
            for call in list(self._calls.values()):
                self._reply(call, _error(call.id, _NO_CONSOLE, self._sentence))
            os.write(2, f"aileron-mcp: {self._sentence}\n".encode("utf-8", "replace"))
            return code
        if self._session is not None:
            headers = {"Mcp-Session-Id": self._session, **self._identity.authorization()}
            self._identity.farewell("DELETE", "/mcp", headers)
        self._identity.end()
        return code

    def _finish(self, code: int, sentence: str | None = None) -> None:
        """Have the main thread end; the first reason counts. Also called from a signal handler."""
        if self._code is None:
            self._code, self._sentence = code, sentence
            os.write(self._wake_write, b".")

    def _on_signal(self, number: int, _: object) -> None:
        self._finish(130 if number == signal.SIGINT else 0)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=self._guarded, args=(target, arguments), daemon=True).start()

    def _guarded(self, target: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            target(*arguments)
        except _NoConsole as error:
            self._finish(69, str(error))
        except Exception as error:  # noqa: BLE001 - the top of a thread; silence would hang the client
            self._finish(70, _bug(error))

    # -- what comes from the client

    def _receive(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = _json(line)
        except ValueError:
            self._write(_error(None, _PARSE_ERROR, "This line is not one JSON text."))
            return
        if not isinstance(message, list):
            self._dispatch(message, line)
        elif not message:
            self._write(_error(None, _INVALID_REQUEST, "A batch may not be empty."))
        else:
            # 2025-03-26 has batches; the server does not, so each goes alone.
            for part in cast("list[object]", message):
                self._dispatch(part, _text(part))

    def _dispatch(self, message: object, raw: bytes) -> None:
        if not isinstance(message, dict):
            self._write(_error(None, _INVALID_REQUEST, "A message must be a JSON object."))
            return
        fields = cast("Message", message)
        id_ = fields.get("id")
        good_id = isinstance(id_, str | int) and not isinstance(id_, bool)
        if not isinstance(fields.get("method"), str):
            if good_id and ("result" in fields or "error" in fields):
                self._start(self._notify, raw, False)
            else:
                problem = "A message must be a request, a notification or a response."
                self._write(_error(id_ if good_id else None, _INVALID_REQUEST, problem))
        elif "id" not in fields:
            self._notification(fields, raw)
        elif not good_id:
            self._write(_error(None, _INVALID_REQUEST, "An id must be a string or an integer."))
        else:
            self._request(_Call(fields, raw))

    def _request(self, call: _Call) -> None:
        with self._lock:
            taken = self._calls.setdefault(call.key, call) is not call
        if taken:
            self._write(_error(call.id, _INVALID_REQUEST, "This id is in use by an open request."))
            return
        if call.method == "initialize" and call.version is None:
            self._settled.clear()
            self._session = None
            self._greeting, self._greeted = call.raw, None
        self._start(self._serve, call)

    def _notification(self, message: Message, raw: bytes) -> None:
        if message["method"] == "notifications/cancelled":
            parameters = message.get("params")
            id_ = (
                cast("Message", parameters).get("requestId")
                if isinstance(parameters, dict)
                else None
            )
            with self._lock:
                call = self._calls.get(json.dumps(id_))
            # Some clients cancel what has long been answered: that concerns nobody.
            if call is not None:
                self._start(self._cancel, call, raw)
        else:
            self._start(self._notify, raw, message["method"] == "notifications/initialized")

    def _cancel(self, call: _Call, raw: bytes) -> None:
        call.over = True
        if call.version is None and call.link is not None:
            call.begun.wait(_CONNECT_SECONDS)  # the console must know the request first
            self._notify(raw, False)
        if call.link is not None:
            call.link.abort()

    # -- what goes to the console

    def _notify(self, raw: bytes, greeted: bool) -> None:
        """Post a message that has no answer; the new era has none that its server would read."""
        self._settled.wait()
        if self._session is None:
            return
        first = greeted and self._greeted is None
        if greeted:
            self._greeted = raw  # before it is sent: whoever greets a new console tells it this too
        with suppress(_Dropped, _Denied):  # after a restart, what still matters of it is replayed
            self._post(raw)
        if first:
            self._start(self._stream)

    def _post(self, raw: bytes) -> int:
        link, token = self._identity.connect()
        with link:
            return link.request("POST", "/mcp", self._headers(token), raw)

    def _headers(self, token: str | None, call: _Call | None = None) -> dict[str, str]:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if token is not None:
            if _VISIBLE.fullmatch(token) is None:
                raise _Denied(
                    "The session token has characters that no token has: start the agent again."
                )
            headers["Authorization"] = f"Bearer {token}"
        if call is not None and call.version is not None:
            return {**headers, **call.era_headers()}
        if self._session is not None and (call is None or call.method != "initialize"):
            headers["Mcp-Session-Id"] = self._session
            if self._version is not None:
                headers["MCP-Protocol-Version"] = self._version
        return headers

    def _serve(self, call: _Call) -> None:
        """Carry one request to its answer, over restarts of the console where that is safe."""
        try:
            if call.method != "initialize":
                self._settled.wait()
            tries = 0
            while not call.over and not self._attempt(call):
                tries += 1
                # A standing stream is reopened for as long as there is a console.
                if tries >= _TRIES and call.method != "subscriptions/listen":
                    raise _Denied(
                        "The console does not keep the connection; try again in a minute."
                    )
                self._stop.wait(min(1.0, 0.05 * 2 ** min(tries, 5)))
        except _Denied as error:
            self._reply(call, _error(call.id, _NO_CONSOLE, str(error)))
        except _NoConsole as error:
            self._finish(69, str(error))
            return  # and stay in the table, to be answered at the end
        finally:
            if call.method == "initialize":
                self._settled.set()
        with self._lock:
            if self._calls.get(call.key) is call:  # else its id is another request's by now
                del self._calls[call.key]

    def _attempt(self, call: _Call) -> bool:
        """Send the request once; return True if nothing is left to do for it."""
        epoch = self._epoch
        link, token = self._identity.connect()
        try:
            with link:
                call.link = link
                if call.over:
                    return True
                status = link.request("POST", "/mcp", self._headers(token, call), call.raw)
                call.begun.set()
                old = call.version is None and call.method != "initialize"
                if status != 401 and not (status == 404 and old):
                    return self._read_answer(call, link)
        except _Dropped as dropped:
            if dropped.sent and not call.repeatable:
                self._reply(call, _outcome_unknown(call))
            return call.over
        # A 401 or a lost session: it did not run, so it is sent again.
        if status == 401:
            self._renew(token)
        else:
            with suppress(_Dropped):
                self._greet_again(epoch)
        return False

    def _renew(self, token: str | None) -> None:
        if not self._identity.renew(token):
            raise _Denied(
                "The console does not know this session (any more): start the agent again,"
                " with a token of an open session or with none."
            )

    def _read_answer(self, call: _Call, link: _Link) -> bool:
        if call.method == "initialize":
            self._session = _visible(link.headers.get("mcp-session-id"))
        if not link.headers.get("content-type", "").startswith("text/event-stream"):
            self._answer_in_json(call, link.status, link.body())
            return True
        for data in _events(link.chunks()):
            self._forward(call, data)
            if call.over:
                return True
        raise _Dropped(sent=True)

    def _answer_in_json(self, call: _Call, status: int, body: bytes) -> None:
        answer = _object(body)
        if _is_answer(answer):
            self._note_version(call, answer)
            self._reply(call, answer, body)
        else:
            reason = _reason(answer, status)
            self._reply(call, _error(call.id, _INTERNAL_ERROR, reason, answer.get("error")))

    def _forward(self, call: _Call, data: bytes) -> None:
        message = _object(data)
        if _is_answer(message):
            self._note_version(call, message)
            self._reply(call, message, data)
        elif not _is_for_the_client(message):
            return
        elif message["method"] != _ACKNOWLEDGED or not call.acknowledged:
            call.acknowledged = call.acknowledged or message["method"] == _ACKNOWLEDGED
            if not call.over:
                self._pass_on(message, data)
        else:
            # Reopened after a restart: what the client knows of the tools may be out of date.
            meta = {"_meta": {_SUBSCRIPTION_KEY: call.id}}
            self._write({"jsonrpc": "2.0", "method": _LIST_CHANGED, "params": meta})

    def _note_version(self, call: _Call, answer: Message) -> None:
        result = answer.get("result")
        if call.method == "initialize" and isinstance(result, dict):
            self._version = _visible(cast("Message", result).get("protocolVersion"))

    # -- the old era's session

    def _greet_again(self, epoch: int) -> None:
        """Replay the client's `initialize` to a console that has forgotten its session."""
        with self._handshake:
            if self._epoch != epoch:
                return  # another thread has just done it
            if self._greeting is None:
                raise _Denied(
                    "The console has no session for this: the client must initialize first."
                )
            link, token = self._identity.connect()
            call = _Call(_object(self._greeting), self._greeting)
            with link:
                status = link.request("POST", "/mcp", self._headers(token, call), call.raw)
                session = _visible(link.headers.get("mcp-session-id"))
                body = link.body()
            if status == 401:
                self._renew(token)
                return
            if status != 200 or session is None:
                raise _Denied(
                    f"The console refused to go on with this session: {_reason(_object(body), status)}"
                )
            self._session = session
            if self._greeted is not None:
                self._post(self._greeted)
            self._epoch += 1

    def _stream(self) -> None:
        """Keep the old era's standing stream open; it brings list changes."""
        opened = False
        pause = _STREAM_PAUSE
        while not self._stop.is_set():
            try:
                if self._read_stream(opened):
                    opened, pause = True, _STREAM_PAUSE
            except _Dropped:
                pass
            except _Denied:
                pause = min(2 * pause, 30.0)  # the next request says why to the client
            self._stop.wait(pause)

    def _read_stream(self, opened: bool) -> bool:
        """Read the standing stream to its end; return whether it was there."""
        epoch = self._epoch
        link, token = self._identity.connect()
        with link:
            status = link.request("GET", "/mcp", self._headers(token))
            if status == 200:
                if opened or self._epoch:
                    # Not the first stream, or not of the console that was asked first: what the
                    # client knows of the tools may be out of date.
                    self._write({"jsonrpc": "2.0", "method": _LIST_CHANGED})
                with suppress(_Dropped):
                    for data in _events(link.chunks()):
                        if _is_for_the_client(message := _object(data)):
                            self._pass_on(message, data)
                return True
        if status == 401:
            self._renew(token)
        elif status == 404:
            self._greet_again(epoch)
        return False

    # -- what goes to the client

    def _reply(self, call: _Call, message: Message, raw: bytes = b"") -> None:
        """Answer a request, once: with *raw* where that is the message on one line.

        An error about a message as a whole comes without its id, so the id is put in.
        """
        with self._lock:
            if call.over:
                return
            call.over = True
            self._calls.pop(call.key, None)
        id_ = message.get("id")
        if raw and type(id_) is type(call.id) and id_ == call.id and not _BREAK.search(raw):
            self._write_line(raw)
            return
        line = _text({**message, "id": call.id})
        if line == _NOTHING:
            problem = "The console's answer holds what JSON does not."
            line = _text(_error(call.id, _INTERNAL_ERROR, problem))
        self._write_line(line)

    def _pass_on(self, message: Message, data: bytes) -> None:
        """Write what the console sent as it came, if it is one line."""
        self._write_line(_text(message) if _BREAK.search(data) else data)

    def _write(self, message: Message) -> None:
        self._write_line(_text(message))

    def _write_line(self, data: bytes) -> None:
        line = memoryview(data + b"\n")
        with self._writing:
            while line:
                try:
                    line = line[os.write(1, line) :]
                except BlockingIOError:
                    select.select([], [1], [])
                except OSError:
                    self._finish(0)  # nobody reads any more
                    return


def _bug(error: Exception) -> str:
    """Return the sentence for a fault of ours: its kind and place; its text may quote arguments."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = trace.tb_lineno if trace is not None else 0
    return (
        f"This is a bug of Aileron ({type(error).__name__} in relay.py:{line}): please report it."
    )


def _usage(arguments: list[str]) -> NoReturn:
    if arguments == ["--version"]:
        from importlib.metadata import version

        text, code = f"aileron-mcp {version('aileron')}", 0
    elif arguments in (["--help"], ["-h"]):
        text, code = __doc__ or "", 0
    else:
        text, code = "usage: aileron-mcp [--help | --version]; an agent starts it and speaks MCP", 2
    os.write(2 if code else 1, f"{text.strip()}\n".encode())
    sys.exit(code)


def main() -> int:
    """Run the relay, isolated from what the environment could add to Python; return its exit code."""
    if not sys.flags.isolated:
        how = ("-I", __file__) if __name__ == "__main__" else ("-I", "-m", __name__)
        os.execv(sys.executable, [sys.executable, *how, *sys.argv[1:]])  # noqa: S606 - itself again
    if sys.argv[1:]:
        _usage(sys.argv[1:])
    try:
        return _Relay(os.environ).run()
    except Exception as error:  # noqa: BLE001 - the top of the program: no traceback on an agent's screen
        os.write(2, f"aileron-mcp: {_bug(error)}\n".encode())
        return 70


if __name__ == "__main__":
    sys.exit(main())
