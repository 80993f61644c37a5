"""Finds the console, and verifies by socket owner and certificate that what answers there is the console."""

import errno
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping

from aileron_core.home.owner import OwnerNotVerified, connect_to_owner, connect_unix, socket_path
from aileron_mcp.relay.http_client import ConnectionDropped, HttpConnection
from aileron_mcp.relay.messages import parse_object

POLL_SECONDS = 1.0
CONNECT_SECONDS = 5.0
_PROOF_SECONDS = 2.0


class ConsoleNotFound(Exception):
    """One attempt found no console that could be verified; the text is a sentence for a person."""


class ConsoleUnavailable(Exception):
    """No console was found within AILERON_WAIT_SECONDS; the text is the last attempt's."""


class ConsoleFinder:
    """Connects to the console that the environment names, as the package's docstring says."""

    def __init__(self, environ: Mapping[str, str], stop: threading.Event) -> None:
        self._url = environ.get("AILERON_URL", "")
        home = environ.get("AILERON_HOME") or os.path.join("~", ".aileron")  # noqa: PTH118 - no pathlib
        self._home = os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111
        self._certificate = environ.get("AILERON_CERT_SHA256", "").replace(":", "").lower()
        self._wait_seconds = _seconds(environ.get("AILERON_WAIT_SECONDS"), default=30.0)
        self._stop = stop
        self._lock = threading.Lock()
        self._absent_since: float | None = None
        self.contained = self._url.startswith("unix:")

    def connect(self, token: Callable[[], str | None]) -> HttpConnection:
        """Return a connection to the console; while there is none, look once a second.

        Args:
            token: gives the token that a console on a TCP port has to know.

        Raises:
            ConsoleUnavailable: there was none for AILERON_WAIT_SECONDS, counted over all threads.
        """
        while True:
            try:
                connection = self.connect_once(token)
            except ConsoleNotFound as absent:
                now = time.monotonic()
                with self._lock:
                    since = self._absent_since = self._absent_since or now
                left = since + self._wait_seconds - now
                if left <= 0:
                    raise ConsoleUnavailable(str(absent)) from None
                self._stop.wait(min(POLL_SECONDS, left))
                if self._stop.is_set():
                    raise ConsoleUnavailable("The relay has ended.") from None
            else:
                with self._lock:
                    self._absent_since = None
                return connection

    def connect_once(self, token: Callable[[], str | None]) -> HttpConnection:
        """Try once.

        Raises:
            ConsoleNotFound: nothing is there, or something that is not the console.
        """
        if self.contained:
            return HttpConnection(_connect_unix(self._url.removeprefix("unix:")), "127.0.0.1")
        try:
            sock = connect_to_owner(self._home, CONNECT_SECONDS)
        except OwnerNotVerified as error:
            path = socket_path(self._home)
            if error.reason == "free" and self._url and not os.path.lexists(path):
                return self._connect_url(token())
            raise ConsoleNotFound(self._absence(error, path)) from error
        sock.settimeout(None)
        return HttpConnection(sock, "127.0.0.1")

    def _absence(self, error: OwnerNotVerified, path: str) -> str:
        """Return why there is no console to ask, and what the person can do."""
        match error.reason:
            case "free":
                return (
                    f"No console is running on {self._home}. Start one with `aileron console`,"
                    " then restart the agent."
                )
            case "silent":
                return _no_answer(path, error.__cause__)
            case "other_user" | "impostor":
                return (
                    f"The program at {path} is not the console that owns {self._home}, so nothing"
                    " was sent to it. Stop that program, then restart the agent."
                )
            case "foreign_home" | "unknown":
                return str(error)

    def _connect_url(self, token: str | None) -> HttpConnection:
        plain = re.fullmatch(r"http://127\.0\.0\.1:(\d{1,5})/?", self._url)
        if plain is not None:
            return _prove_token_known(
                _connect_tcp("127.0.0.1", int(plain[1])), int(plain[1]), token
            )
        https = re.fullmatch(r"https://([A-Za-z0-9.-]+):(\d{1,5})/?", self._url)
        if https is None or re.fullmatch(r"[0-9a-f]{64}", self._certificate) is None:
            raise ConsoleNotFound(
                "AILERON_URL must be unix:PATH, http://127.0.0.1:PORT, or https://HOST:PORT with"
                " AILERON_CERT_SHA256 set to the SHA-256 of its certificate."
            )
        return _with_certificate(
            _connect_tcp(https[1], int(https[2])), https[1], https[2], self._certificate
        )


def _seconds(text: str | None, *, default: float) -> float:
    try:
        return min(300.0, max(0.0, float(text))) if text else default
    except ValueError:
        return default


def _connect_unix(path: str) -> socket.socket:
    try:
        sock = connect_unix(path, CONNECT_SECONDS)
    except OSError as error:
        raise ConsoleNotFound(_no_answer(path, error)) from error
    sock.settimeout(None)
    return sock


def _no_answer(path: str, error: BaseException | None) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return (
            f"The socket path {path} is too long for this system. Use a home with a shorter path."
        )
    why = error.strerror if isinstance(error, OSError) else error
    return (
        f"No console answers at {path} ({why}). Start one with `aileron console`,"
        " then restart the agent."
    )


def _connect_tcp(host: str, port: int) -> socket.socket:
    try:
        sock = socket.create_connection((host, port), CONNECT_SECONDS)
    except (OSError, OverflowError) as error:
        raise ConsoleNotFound(f"No console answers at {host}:{port}.") from error
    sock.settimeout(None)
    return sock


def _prove_token_known(sock: socket.socket, port: int, token: str | None) -> HttpConnection:
    """Return the connection once the other side has proved that it knows the token, unseen.

    The port is in the proof, so a program that took the old port cannot pass the question on to the
    real console and the answer back.
    """
    import hashlib
    import hmac

    connection = HttpConnection(sock, f"127.0.0.1:{port}")
    nonce = os.urandom(32).hex()
    known = hashlib.sha256((token or "").encode()).hexdigest()
    key_id = hashlib.sha256(known.encode()).hexdigest()[:16]
    expected = hmac.new(known.encode(), f"{nonce}:127.0.0.1:{port}".encode(), "sha256").hexdigest()
    headers = {"Aileron-Challenge": f"{key_id}:{nonce}", "Connection": "keep-alive"}
    # A timer over all of it: one that answers a byte at a time must not hold the agent up.
    timer = threading.Timer(_PROOF_SECONDS, connection.abort)
    timer.start()
    try:
        status = connection.request("GET", "/v1/health", headers) if token else 0
        answer = parse_object(connection.read_body()) if status == 200 else {}
    except ConnectionDropped:
        answer = {}
    finally:
        timer.cancel()
    proof = answer.get("proof")
    if not isinstance(proof, str) or not hmac.compare_digest(proof.encode(), expected.encode()):
        sock.close()
        raise ConsoleNotFound(
            f"The program at 127.0.0.1:{port} did not prove that it is the console of this session,"
            " so no token was sent to it."
        )
    return connection


def _with_certificate(
    sock: socket.socket, host: str, port: str, certificate_hash: str
) -> HttpConnection:
    """Return the connection under TLS, if its certificate is the one in AILERON_CERT_SHA256."""
    import hashlib
    import hmac
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # a hash is stronger than a name
    context.verify_mode = ssl.CERT_NONE
    sock.settimeout(CONNECT_SECONDS)  # of the whole handshake: nobody is believed yet
    try:
        wrapped = context.wrap_socket(sock, server_hostname=host)
        wrapped.settimeout(None)
    except OSError as error:
        sock.close()
        raise ConsoleNotFound(f"{host}:{port} does not support TLS.") from error
    certificate = wrapped.getpeercert(binary_form=True) or b""
    if not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), certificate_hash):
        wrapped.close()
        raise ConsoleNotFound(
            f"The certificate of {host}:{port} is not the one in AILERON_CERT_SHA256."
        )
    return HttpConnection(wrapped, f"{host}:{port}")
