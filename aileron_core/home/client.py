"""An HTTP client for the console that owns a home, once its owner is verified; one that starts is waited for."""

import contextlib
import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any

from aileron_core.errors import ConsoleErrorResponse, ConsoleUnavailable, Failure
from aileron_core.home.owner import OwnerNotVerified, connect_to_owner, lock_owner, socket_path

_LONGEST_CALL = 330.0
"""Seconds: an action may run for 300, and this waits for its answer."""
_RESTART_SECONDS = 30
"""How long a console may take from owning its home to listening."""


class HomeConnection(http.client.HTTPConnection):
    """One connection to the process that holds the home's lock."""

    def __init__(self, home: Path, *, timeout: float = _LONGEST_CALL) -> None:
        super().__init__("aileron", timeout=timeout)
        self._home = home

    def abort(self) -> None:
        """End the connection from another thread."""
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)

    def connect(self) -> None:
        """Connect; a console that owns the home and is not listening yet is waited for.

        Raises:
            ConsoleUnavailable: there is none, or what answers does not own the home.
        """
        listener = Path(socket_path(self._home))
        try:
            for _ in range(_RESTART_SECONDS):
                if lock_owner(self._home) is None or listener.exists():
                    break
                time.sleep(1)
            self.sock = connect_to_owner(self._home, self.timeout)
        except OwnerNotVerified as error:
            raise ConsoleUnavailable(self._absence(error)) from error

    def _absence(self, error: OwnerNotVerified) -> str:
        if error.reason in ("free", "silent"):
            return f"No console is running on {self._home}. Start one with `aileron console` in another terminal."
        if error.reason in ("other_user", "impostor"):
            return f"{error} Nothing was sent to it."
        return str(error)


class HomeClient:
    """Requests to the console that owns *home*, each on a connection of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        timeout: float = _LONGEST_CALL,
    ) -> tuple[int, Any]:
        """Return status and JSON body of one request.

        Args:
            timeout: seconds without a byte from the console.

        Raises:
            ConsoleUnavailable: no console owns the home, or it went away.
            ConsoleErrorResponse: it answered with an error.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = HomeConnection(self._home, timeout=timeout)
        try:
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConsoleUnavailable(
                "The console stopped before it answered. Check it with `aileron status`."
            ) from error
        finally:
            connection.close()
        content: Any = json.loads(text) if text else None
        if response.status >= 400:
            raise ConsoleErrorResponse(Failure.from_json(content["error"]))
        return response.status, content
