"""The person's command line talking to its console: over the home's socket, to its owner alone."""

import contextlib
import http.client
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from aileron_core.errors import ConsoleAbsent, Failure
from aileron_core.home.layout import Home, locked_by
from aileron_core.server.sockets import peer_of
from aileron_tui.cli.output import ConsoleRefused

__all__ = ["Console", "HomeConnection"]

_LONGEST_RUN = 330.0
"""Seconds: an action may run for 300 (WIRE.md, Defaults), and this waits for its answer."""


_RESTART_SECONDS = 30
"""How long a console may take from owning its home to listening (WIRE.md, Addresses)."""


class HomeConnection(http.client.HTTPConnection):
    """HTTP over the home's socket, once its other end is known to hold the home's lock."""

    def __init__(self, home: Path, *, timeout: float = _LONGEST_RUN) -> None:
        super().__init__("aileron", timeout=timeout)
        self._home = Home(home)

    def abort(self) -> None:
        """End the connection from another thread."""
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)

    def connect(self) -> None:
        """Connect; a console that owns the home and is not listening yet is waited for."""
        for _ in range(_RESTART_SECONDS):
            if (owner := locked_by(self._home)) is None or self._home.socket.exists():
                break
            time.sleep(1)
        else:
            owner = None
        if owner is None:
            raise _absent(self._home)
        path, folder = str(self._home.socket), -1
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if len(os.fsencode(path)) > 100:
                folder = os.open(self._home.run, os.O_RDONLY | os.O_DIRECTORY)
                path = f"/proc/self/fd/{folder}/{self._home.socket.name}"
            connection.settimeout(self.timeout)
            connection.connect(path)
        except OSError as error:
            connection.close()
            raise _absent(self._home) from error
        finally:
            if folder >= 0:
                os.close(folder)
        peer = peer_of(connection)
        if peer is not None and peer.uid != os.getuid():
            connection.close()
            raise ConsoleAbsent(
                f"{self._home.socket} is answered by a process of another user. Nothing was sent to it."
            )
        if peer is None or peer.pid != owner:
            connection.close()
            raise ConsoleAbsent(
                f"{self._home.socket} is answered by a process that does not own {self._home.path}. "
                "Nothing was sent to it."
            )
        self.sock = connection


def _absent(home: Home) -> ConsoleAbsent:
    return ConsoleAbsent(
        f"No console runs on {home.path}. Start one with `aileron console` in another pane."
    )


class Console:
    """Requests to the console that owns *home*."""

    def __init__(self, home: Path) -> None:
        self._home = Home(home)

    def request(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> tuple[int, Any]:
        """Return status and JSON body of one request.

        Raises:
            ConsoleAbsent: no console owns the home, or it went away.
            Refused: it answered with an error.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = HomeConnection(self._home.path)
        try:
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConsoleAbsent("The console went away before it answered.") from error
        finally:
            connection.close()
        content: Any = json.loads(text) if text else None
        if response.status >= 400:
            raise ConsoleRefused(Failure.from_json(content["error"]))
        return response.status, content
