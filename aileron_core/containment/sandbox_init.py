"""The first program in a sandbox without a shared network: it opens the way to the gateway, then becomes the next.

With `--sandbox=offline` a small process beside the agent listens on the sandbox's own loopback, on
the console's port, and forwards bytes to the session's Unix socket, so the same base URL works
inside and outside. It reaches that socket and nothing else, and ends with the sandbox.

With listed hosts (`--sandbox=hosts`) the sockets in the sandbox's network are opened from outside once
there is one, and the agent waits for them.

Runs as a script, from a copy; imports the standard library only.
"""

import contextlib
import os
import socket
import struct
import sys
import threading
import time

SESSION_SOCKET = "/run/aileron/session/s.sock"
_CHUNK = 65536
_BACKLOG = 128
_MAX_CONNECTIONS = 256
"""Connections carried at once; more wait."""
_READY_SECONDS, _AGAIN_SECONDS = 20.0, 0.01
_LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: what is closed so is seen as broken, not as a clean end."""


def forward(listener: socket.socket, path: str) -> None:
    """Forward every connection to *listener* to the Unix socket at *path*; does not return.

    One thread for each direction, so that a slow reader holds up only the writer on the other side.
    """
    slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
    while True:
        slots.acquire()
        client, _ = listener.accept()
        threading.Thread(target=_connection, args=(client, path, slots), daemon=True).start()


def _connection(client: socket.socket, path: str, slots: threading.BoundedSemaphore) -> None:
    try:
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as console:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _both_ways(client, console, path)
    finally:
        slots.release()


def _both_ways(client: socket.socket, console: socket.socket, path: str) -> None:
    """Forward both directions until both have ended."""
    try:
        console.connect(path)
    except OSError:  # the console is away; it may come back, and the agent tries again
        _reset(client)
        return
    upwards = threading.Thread(target=_copy, args=(client, console), daemon=True)
    upwards.start()
    _copy(console, client)
    upwards.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until *source* ends, then shut *target* down, or reset it if *source* was reset."""
    try:
        while data := source.recv(_CHUNK):
            try:
                target.sendall(data)
            except OSError:
                return  # nobody reads it any more; what comes from there is still carried to its end
        target.shutdown(socket.SHUT_WR)
    except OSError:
        _reset(target)


def _reset(end: socket.socket) -> None:
    """Have *end* reset when it is closed, and wake the thread that reads from it."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RD)


def _start_forwarder(port: int) -> None:
    """Listen on *port* and forward from a process of its own that is not a child of the agent.

    It keeps no other descriptor: the agent could take from it what is meant for the next program.

    Raises:
        OSError: the port cannot be had.
    """
    listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
    if os.fork() == 0:
        try:
            os.closerange(3, listener.fileno())
            os.closerange(listener.fileno() + 1, min(os.sysconf("SC_OPEN_MAX"), 65536))
            if os.fork() == 0:
                os.setsid()  # no signal of the agent's terminal is meant for it
                nothing = os.open(os.devnull, os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(nothing, number)
                forward(listener, SESSION_SOCKET)
        finally:
            os._exit(0)
    os.wait()
    listener.close()


def _await_port(port: int) -> None:
    """Return as soon as something listens on *port* of loopback.

    Raises:
        OSError: nothing does, in time.
    """
    until = time.monotonic() + _READY_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_SECONDS)


def main() -> None:
    """Open the port given first (0 for none), wait for the one after a colon, then execute the remaining arguments."""
    port, _, awaited = sys.argv[1].partition(":")
    try:
        if awaited:
            _await_port(int(awaited))
    except OSError as error:
        sys.exit(f"aileron launch: the sandbox's network did not start ({error}). Launch again.")
    try:
        if int(port):
            _start_forwarder(int(port))
    except OSError as error:
        sys.exit(f"aileron launch: the gateway cannot be reached ({error}). Launch again.")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the point: no shell


if __name__ == "__main__":
    main()
