"""`aileron attach ssh://HOST`: the connections to a home's socket there, all in the one session of the system's ssh.

`aileron attach --stdio`, which ssh runs there, passes bytes on. It holds no key, reads nothing and decides nothing.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, cast

import click

from aileron_core import __version__
from aileron_core.home.client import HomeConnection
from aileron_core.home.owner import OwnerNotVerified, connect_to_owner
from aileron_core.text import escape
from aileron_tui.cli.output import EXIT, CliError, CommandContext

_ADDRESS: Final = re.compile(
    r"ssh://(?P<at>(?:[A-Za-z0-9_][\w.+-]*@)?"
    r"(?:(?P<name>[A-Za-z0-9_][\w.-]*)|\[(?P<number>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]))"
    r"(?::(?P<port>[0-9]{1,5}))?/?",
    re.ASCII,
)
"""What ssh takes for an option, or a shell for more than a word, is not in it."""
_SSH: Final = ("-T", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none")
"""No terminal, no forwarding, whatever ssh's own settings say for the host: nothing but one command."""
_THERE: Final = "aileron attach --stdio"
_GREETING: Final = "aileron attach "
_MOST_BEFORE_IT: Final = 64 * 1024
"""Bytes that a shell there may print before it."""
_FRAME: Final = struct.Struct(">II")
"""Before each piece: the number of its connection, and how many bytes it has; none: the connection has ended."""
_PIECE: Final = 64 * 1024
_LAST_LINES: Final = 20
_NOT_FOUND, _SSH_FAILED = 127, 255
"""Exit codes: of a shell without such a command, and of ssh itself."""


class Channels:
    """Connections over one pair of pipes.

    Args:
        opened: makes the other end of a connection that was opened at the other side; None: none is.
    """

    def __init__(
        self, read: IO[bytes], write: IO[bytes], opened: Callable[[], socket.socket] | None = None
    ) -> None:
        self._read, self._write, self._opened = read, write, opened
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._sockets: dict[int, socket.socket] = {}
        self._last = 0
        self._over = False

    def open(self) -> socket.socket:
        """Return this end of a new connection.

        Raises:
            OSError: the pipes have ended.
        """
        here, passed_on = socket.socketpair()
        with self._lock:
            if self._over:
                raise ConnectionResetError
            self._last += 1
            self._add(self._last, passed_on)
        return here

    def run(self) -> None:
        """Pass on what comes until the pipe ends, then end every connection."""
        try:
            while len(head := self._read.read(_FRAME.size)) == _FRAME.size:
                number, size = _FRAME.unpack(head)
                if size > _PIECE or len(piece := self._read.read(size)) < size:
                    break
                self._take(number, piece)
        except (OSError, ValueError):
            pass  # the pipe was closed
        with self._lock:
            self._over = True
            for each in self._sockets.values():
                _end(each)

    def _take(self, number: int, piece: bytes) -> None:
        with self._lock:
            found = self._sockets.get(number)
            if found is None and self._opened is not None and piece and number > self._last:
                self._last = number
                with contextlib.suppress(OwnerNotVerified):
                    found = self._add(number, self._opened())
        if found is None and piece:
            self._send(number, b"")
        elif found is not None and piece:
            with contextlib.suppress(OSError):
                found.sendall(piece)
        elif found is not None:
            _end(found)

    def _add(self, number: int, end: socket.socket) -> socket.socket:
        self._sockets[number] = end
        threading.Thread(target=self._pass_on, args=(number, end), daemon=True).start()
        return end

    def _pass_on(self, number: int, end: socket.socket) -> None:
        with end, contextlib.suppress(OSError):
            while piece := end.recv(_PIECE):
                self._send(number, piece)
        self._send(number, b"")
        with self._lock:
            self._sockets.pop(number, None)

    def _send(self, number: int, piece: bytes) -> None:
        with self._writing, contextlib.suppress(OSError, ValueError):  # the pipe has ended
            self._write.write(_FRAME.pack(number, len(piece)) + piece)
            self._write.flush()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class RemoteHome:
    """The home of the account on another machine, over the system's ssh.

    Args:
        address: `ssh://[USER@]HOST[:PORT]`.

    Raises:
        CliError: this is no such address, there is no ssh, or nothing there can be attached to.
    """

    def __init__(self, address: str) -> None:
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise CliError(
                EXIT.USAGE,
                f"{address[:200]!r} is not of the form ssh://[USER@]HOST[:PORT]. Give a host with other options "
                "a name in ~/.ssh/config.",
            )
        ssh = shutil.which("ssh")
        if ssh is None:
            raise CliError(EXIT.FAILED, "There is no `ssh` on the PATH. Install OpenSSH's client.")
        self.host = found["name"] or found["number"]
        at = found["at"].replace("[", "").replace("]", "")
        port = ("-p", found["port"]) if found["port"] else ()
        self._said: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._process = _start([ssh, *_SSH, *port, "--", at, _THERE])
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        try:
            self._meet(self._process.stdout)
        except BaseException:
            self.close()
            raise
        self._channels = Channels(self._process.stdout, self._process.stdin)
        threading.Thread(target=self._channels.run, name="aileron-ssh", daemon=True).start()

    @property
    def gone(self) -> str:
        """What to say once nothing comes from there any more."""
        return (
            f"The connection to {self.host} was lost, or its server has ended. Quit with q, then attach "
            "again."
        )

    def dial(self, timeout: float | None) -> HomeConnection:
        """Return a connection to the home's socket there, which connects when it is used."""
        return _Dialled(self._channels, timeout)

    def close(self) -> None:
        """End ssh, and with it every connection."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _hear(self) -> None:
        """Keep the last lines of what ssh says, which would stand in the middle of the screen."""
        assert self._process.stderr is not None
        while line := self._process.stderr.readline(4096):
            self._said.append(line)

    def _meet(self, out: IO[bytes]) -> None:
        """Read on until what runs there says which version it is.

        Raises:
            CliError: it is another one, or something else ended.
        """
        left = _MOST_BEFORE_IT
        while left > 0 and (line := out.readline(left)):
            left -= len(line)
            text = line.decode("ascii", "replace").rstrip("\r\n")
            if text.startswith(_GREETING):
                version = text.removeprefix(_GREETING)[:40]
                if version != __version__:
                    raise CliError(
                        EXIT.FAILED,
                        f"Aileron {escape(version)} is on {self.host}, and {__version__} here. Install one version "
                        "on both.",
                    )
                return
        if left <= 0:
            raise CliError(
                EXIT.FAILED,
                f"The shell on {self.host} prints more than 64 KiB before it runs a command. Have it print nothing.",
            )
        raise CliError(*self._failure(self._process.wait()))

    def _failure(self, code: int) -> tuple[int, str]:
        self._hearing.join(1)
        lines = [each.decode("utf-8", "replace").strip() for each in self._said]
        said = next((escape(each) for each in reversed(lines) if each), "it gave no reason")
        if code == _SSH_FAILED:
            return EXIT.FAILED, f"ssh could not connect to {self.host}: {said}"
        if code == _NOT_FOUND:
            return EXIT.FAILED, (
                f"There is no `aileron` on {self.host} that ssh finds. `ssh {self.host} command -v aileron` has to "
                "print its path."
            )
        if code == EXIT.USAGE:
            return EXIT.FAILED, (
                f"The `aileron` on {self.host} is another version, which knows no `attach --stdio`. Install "
                f"{__version__} there."
            )
        return EXIT.NO_CONSOLE, f"On {self.host}: {said.removeprefix('aileron: ')}"


class _Dialled(HomeConnection):
    def __init__(self, channels: Channels, timeout: float | None) -> None:
        super().__init__(Path(), timeout=cast("float", timeout))
        self._channels = channels

    def connect(self) -> None:
        """Open a connection in the session of ssh.

        Raises:
            OSError: that has ended.
        """
        self.sock = self._channels.open()
        self.sock.settimeout(self.timeout)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start ssh, which can ask at the terminal; Ctrl-C is for the console alone, and no variable of ours goes along."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: each for name, each in os.environ.items() if not name.startswith("AILERON")},
        )
    finally:
        signal.signal(signal.SIGINT, before)


def relay(context: CommandContext) -> int:
    """Pass bytes on between standard input and output and the home's socket, as `RemoteHome` asks for it.

    Raises:
        CliError: a person runs it.
        ConsoleUnavailable: no console owns the home.
    """
    if sys.stdin.isatty():
        raise CliError(
            EXIT.USAGE, "`aileron attach ssh://HOST` runs this on HOST. Run that instead."
        )
    first = HomeConnection(context.home)
    first.connect()  # so that what is wrong is said
    first.close()
    click.echo(f"{_GREETING}{__version__}")
    Channels(
        sys.stdin.buffer, sys.stdout.buffer, lambda: connect_to_owner(context.home, None)
    ).run()
    return EXIT.DONE
