"""Aileron's session: the token that was given, or a session that the relay opens for itself."""

import json
import os
import threading
from collections.abc import Callable, Mapping

from aileron_mcp.relay.console_finder import POLL_SECONDS, ConsoleFinder, ConsoleNotFound
from aileron_mcp.relay.http_client import ConnectionDropped, HttpConnection
from aileron_mcp.relay.messages import Message, error_reason, parse_object

MAX_ATTEMPTS = 5
STREAM_RETRY_SECONDS = 0.2  # seconds before a standing stream is opened again
_LONGEST_NAME = 64  # characters, as the console takes them
_END_SECONDS = 1.0  # for each farewell; an agent kills its children soon after asking them to end


class RequestDenied(Exception):
    """The console refused the request; the text goes to the client."""


class AileronSession:
    """The session token: given, read from a file, or of a session that the relay opens itself."""

    def __init__(
        self,
        environ: Mapping[str, str],
        console: ConsoleFinder,
        start: Callable[..., None],
        stop: threading.Event,
    ) -> None:
        self._finder = console
        self._start = start
        self._stop = stop
        self._token_file = environ.get("AILERON_TOKEN_FILE", "")
        self._fixed_token = environ.get("AILERON_TOKEN", "").strip()
        self._agent_name = environ.get("AILERON_AGENT", "")
        self.client_name = ""
        """What the client calls itself; the name of a session that is opened for it."""
        self._lock = threading.Lock()
        self._token = self._fixed_token or None
        self._own_session: str | None = None

    def connect(self) -> tuple[HttpConnection, str | None]:
        """Return a connection and the token to send on it.

        Raises:
            ConsoleUnavailable: there is no console.
            RequestDenied: the console opens no session.
        """
        token = self._require_token()
        return self._finder.connect(self._current_token), token

    def _current_token(self) -> str | None:
        return self._token

    def _require_token(self) -> str | None:
        if self._finder.contained:
            return None
        with self._lock:
            if self._token is None:
                self._token = self._from_file() if self._token_file else self._open_session()
            return self._token

    def renew_token(self, rejected: str | None) -> None:
        """Replace the token for the next attempt, after a 401 for *rejected*.

        Raises:
            RequestDenied: there is no other.
        """
        if not self._finder.contained and not self._fixed_token:
            with self._lock:
                if self._token == rejected:
                    self._token = self._from_file() if self._token_file else None
                if self._token != rejected:
                    return
        raise RequestDenied(
            "The console does not know this session, or it has ended. Start the agent again, "
            "with the token of an open session or without a token."
        )

    def _from_file(self) -> str:
        try:
            with open(self._token_file) as file:  # noqa: PTH123
                token = file.read(4096).strip()
        except (OSError, UnicodeDecodeError):
            token = ""
        if not token:  # an empty one may be being written: the next request reads it again
            raise RequestDenied(
                "AILERON_TOKEN_FILE cannot be read or is empty, so the session has ended. "
                "Start the agent again, with the token of an open session or without a token."
            )
        return token

    def _open_session(self) -> str:
        folder = _working_directory()
        body = {
            "agent": self._agent_name or self.client_name[:_LONGEST_NAME] or _parent_program(),
            "label": os.path.basename(folder)[:128],  # noqa: PTH119
            "cwd": folder,
            "pid": os.getppid(),
        }
        for _ in range(MAX_ATTEMPTS):
            try:
                status, answer = self._request_session(body)
                break
            except ConnectionDropped:  # what it opened, if anything, ended with it or is nobody's
                self._stop.wait(STREAM_RETRY_SECONDS)
        else:
            raise RequestDenied("The console stopped while a session was being opened. Try again.")
        session, token = answer.get("session_id"), answer.get("token")
        if status != 201 or not isinstance(session, str) or not isinstance(token, str):
            raise RequestDenied(
                f"The console refused to open a session: {error_reason(answer, status)}"
            )
        self._own_session = session
        self._start(self._hold_session_open, session, token)
        return token

    def _request_session(self, body: Message) -> tuple[int, Message]:
        with self._finder.connect(self._current_token) as connection:
            headers = {"Content-Type": "application/json"}
            status = connection.request("POST", "/v1/sessions", headers, json.dumps(body).encode())
            return status, parse_object(connection.read_body())

    def _hold_session_open(self, session: str, token: str) -> None:
        """Keep the stream open whose loss ends the session."""
        headers = {"Authorization": f"Bearer {token}"}
        while self._own_session == session:
            pause = STREAM_RETRY_SECONDS
            try:
                with self._finder.connect(self._current_token) as connection:
                    status = connection.request("GET", f"/v1/sessions/{session}/hold", headers)
                    if status == 401:
                        self.renew_token(token)
                    if status in (401, 404):
                        return  # it is over
                    if status != 200:  # the console cannot now, and the session is still ours
                        pause = POLL_SECONDS
                    for _ in connection.read_chunks():
                        pass
            except ConnectionDropped:
                pass
            self._stop.wait(pause)

    def close(self) -> None:
        """End the session that was opened here; one attempt."""
        session, token = self._own_session, self._token
        self._own_session = None
        if session is not None and token is not None:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            self.send_last_request("POST", f"/v1/sessions/{session}/end", headers)

    def send_last_request(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Send a last request within bounded time and ignore the answer."""
        try:
            with self._finder.connect_once(self._current_token) as connection:
                connection.set_timeout(_END_SECONDS)
                connection.request(method, path, headers)
        except (ConsoleNotFound, ConnectionDropped):
            pass  # the console ends the session by itself once its stream is lost

    def authorization_header(self) -> dict[str, str]:
        """Return the header for the last requests of this session."""
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
