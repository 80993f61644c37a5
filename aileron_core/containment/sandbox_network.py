"""Listening in a sandbox's own network: a short program that joins its network namespace and hands over sockets.

    python -I -m aileron_core.containment.sandbox_network CONTROL NAMESPACE PORT...

A socket belongs to the namespace that it was made in, whoever has it. So whatever answers the sandbox
runs outside it, where the agent can neither end nor change it, and needs no way through the sandbox's
walls. A program of its own, because only a process without threads can join a user namespace.
"""

import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.linux_syscalls import join_namespace

DNS_PORT = 53
_SECONDS = 10.0
_AGAIN_SECONDS = 0.01
_BACKLOG = 128
_SIOCSIFADDR, _SIOCSIFNETMASK = 0x8916, 0x891C
_IFREQ = struct.Struct("16sHH4s8s")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSockets:
    """Sockets in the network namespace of a sandbox."""

    queries: socket.socket
    """UDP, on the port of DNS."""
    listeners: dict[int, socket.socket]
    """TCP, by their ports: that of DNS on loopback, the others on every address."""

    def add_address(self, address: str, number: int) -> None:
        """Make *address* one of the sandbox's own, so that a connection to it reaches the listeners.

        Args:
            address: IPv4.
            number: of this address in this sandbox, from 1.

        Raises:
            OSError: the kernel refused.
        """
        name = f"lo:{number}".encode("ascii")
        for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, "255.255.255.255")):
            # Without the mask, the whole network of the address's old class would lead here.
            packed = _IFREQ.pack(name, socket.AF_INET, 0, socket.inet_aton(value), b"")
            fcntl.ioctl(self.queries, request, packed)

    def close(self) -> None:
        for each in (self.queries, *self.listeners.values()):
            each.close()


def open_sandbox_sockets(bwrap: int, ports: Sequence[int]) -> SandboxSockets:
    """Open sockets in the network namespace of the sandbox that the process *bwrap* starts or has started.

    Args:
        ports: of the TCP listeners, besides that of DNS.

    Raises:
        OSError: the sandbox has ended, or cannot be joined.
    """
    namespace = _network_namespace(bwrap)
    ours, theirs = socket.socketpair()
    wanted = sorted({*ports} - {DNS_PORT})
    try:
        with ours, theirs:
            done = subprocess.run(
                [sys.executable, "-I", "-m", __name__, str(theirs.fileno()), str(namespace)]
                + [str(port) for port in wanted],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                cwd="/", timeout=2 * _SECONDS, pass_fds=(theirs.fileno(), namespace), check=False,
            )  # fmt: skip
            if done.returncode != 0:
                reason = done.stderr.decode("utf-8", "replace").strip() or "it ended"
                raise OSError(errno.EIO, reason)
            _, handles, _, _ = socket.recv_fds(ours, 1, len(wanted) + 2)
    except subprocess.SubprocessError as error:
        raise OSError(errno.EIO, str(error)) from None
    finally:
        os.close(namespace)
    opened = [socket.socket(fileno=handle) for handle in handles]
    return SandboxSockets(
        queries=opened[0], listeners=dict(zip((DNS_PORT, *wanted), opened[1:], strict=True))
    )


def _network_namespace(bwrap: int) -> int:
    """Open the network namespace of what *bwrap* started, once there is one that is not ours.

    Raises:
        OSError: it has ended, or there is none in time.
    """
    own = str(Path("/proc/self/ns/net").readlink())
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        children = Path(f"/proc/{bwrap}/task/{bwrap}/children").read_text(encoding="ascii").split()
        if children:
            handle = os.open(f"/proc/{children[0]}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            if str(Path(f"/proc/self/fd/{handle}").readlink()) != own:
                return handle
            os.close(handle)
        time.sleep(_AGAIN_SECONDS)
    raise TimeoutError(errno.ETIMEDOUT, "bubblewrap did not start in time")


def _open(ports: Sequence[int]) -> list[socket.socket]:
    """Open the sockets, as soon as the namespace's loopback is up.

    Raises:
        OSError: a port cannot be had, or there is no loopback in time.
    """
    queries = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    until = time.monotonic() + _SECONDS
    while True:
        try:
            queries.bind(("127.0.0.1", DNS_PORT))
            break
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > until:
                raise
            time.sleep(_AGAIN_SECONDS)
    listeners = [socket.create_server(("", port), backlog=_BACKLOG) for port in ports]
    # Last: the first program in the sandbox waits for this one.
    return [queries, socket.create_server(("127.0.0.1", DNS_PORT), backlog=_BACKLOG), *listeners]


def main() -> None:
    """Join the namespace, open the sockets, and send them through the control socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        join_namespace(int(sys.argv[2]), "net")
        opened = _open([int(each) for each in sys.argv[3:]])
    except OSError as error:
        sys.exit(str(error))
    socket.send_fds(control, [b"\0"], [each.fileno() for each in opened])


if __name__ == "__main__":
    main()
