"""The first program in the sandbox: opens the way to the gateway, then becomes the agent.

Without a network in common (`--sandbox=offline`) a small process beside the agent listens where the
console does, on the sandbox's own loopback, and carries bytes to the session's own socket: the same
base URL works inside as outside. It leads to that socket and nowhere else, and the kernel ends it
with the sandbox.

The terminal is given to the agent alone: bubblewrap is in the foreground too, and a Ctrl-C meant for
the agent would end the whole sandbox. Runs as a script, from a copy; standard library
only, nothing of Aileron's.
"""

import contextlib
import os
import signal
import socket
import struct
import sys
import threading

SOCKET = "/run/aileron/session/s.sock"
_CHUNK = 65536
_WAITING = 128
_MOST = 256
"""Connections carried at once; more wait."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: what is closed so is seen as broken, not as a clean end."""


def forward(listener: socket.socket, path: str) -> None:
    """Carry each connection that *listener* accepts to the Unix socket at *path*; does not return.

    A thread for each direction, so that whoever does not read is waited for by whoever writes.
    """
    room = threading.BoundedSemaphore(_MOST)
    while True:
        room.acquire()
        client, _ = listener.accept()
        threading.Thread(target=_connection, args=(client, path, room), daemon=True).start()


def _connection(client: socket.socket, path: str, room: threading.BoundedSemaphore) -> None:
    try:
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as console:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _both_ways(client, console, path)
    finally:
        room.release()


def _both_ways(client: socket.socket, console: socket.socket, path: str) -> None:
    """Carry until both directions have ended."""
    try:
        console.connect(path)
    except OSError:  # the console is away; it may come back, and the agent tries again
        _break(client)
        return
    upwards = threading.Thread(target=_carry, args=(client, console), daemon=True)
    upwards.start()
    _carry(console, client)
    upwards.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Copy until *source* ends, and pass on whether that was an end or a break."""
    try:
        while data := source.recv(_CHUNK):
            try:
                target.sendall(data)
            except OSError:
                return  # nobody reads it any more; what comes from there is still carried to its end
        target.shutdown(socket.SHUT_WR)
    except OSError:
        _break(target)


def _break(end: socket.socket) -> None:
    """Have *end* closed as broken, and wake the thread that reads there."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RD)


def _forward_beside(port: int) -> None:
    """Listen on *port* and answer there from a process of its own, which is no child of the agent's.

    Raises:
        OSError: the port cannot be had.
    """
    listener = socket.create_server(("127.0.0.1", port), backlog=_WAITING)
    if os.fork() == 0:
        try:
            if os.fork() == 0:
                os.setsid()  # no signal of the agent's terminal is meant for it
                nothing = os.open(os.devnull, os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(nothing, number)
                forward(listener, SOCKET)
        finally:
            os._exit(0)
    os.wait()
    listener.close()


def main() -> None:
    """Open the port that the first argument names (0: none), then exec the others as the agent."""
    port = int(sys.argv[1])
    if port:
        try:
            _forward_beside(port)
        except OSError as error:
            sys.exit(f"aileron launch: there is no way to the gateway ({error}). Launch again.")
    terminal = next((number for number in (0, 1, 2) if os.isatty(number)), None)
    if terminal is not None:
        os.setpgid(0, 0)
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, before)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the point: no shell


if __name__ == "__main__":
    main()
