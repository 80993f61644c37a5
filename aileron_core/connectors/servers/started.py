"""What starts an MCP server's process, and what is known of one that runs: the seam between its box and who speaks to it."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from aileron_core.connectors.servers.table import ServerTable

Mode: TypeAlias = Literal["read", "write"]
"""Whether the listed files can be written in it."""


class Started(Protocol):
    """A server that was started, in its box."""

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """Return the process, with pipes for standard input, output and error."""
        ...

    def hosts_reached(self, since: float) -> tuple[str, ...]:
        """Return the `host:port` that it exchanged bytes with since then, on the monotonic clock."""
        ...

    def pause(self) -> bool:
        """Let it write none of the listed files until `resume`; False where that cannot be: it has to be ended."""
        ...

    def resume(self) -> bool:
        """Let it write them again; False where that cannot be, or they are others now: it has to be started anew."""
        ...

    def stop(self) -> Sequence[str]:
        """End it and all that it started, and return, as sentences, which files that it made were moved away."""
        ...


def close_pipes(process: "subprocess.Popen[bytes]") -> None:
    for each in (process.stdin, process.stdout, process.stderr):
        if each is not None:
            each.close()


class StartServer(Protocol):
    """Starts servers. Called on the thread that lives as long as the server: its end is the server's."""

    def why_not(self, table: ServerTable) -> str:
        """Return why a server cannot be started on this machine, as a sentence; empty where it can."""
        ...

    def start(
        self, name: str, table: ServerTable, mode: Mode, secrets: Mapping[str, str]
    ) -> Started:
        """Start the server *name*.

        Args:
            secrets: the values of `table.secrets`.

        Raises:
            Unavailable: it cannot be started here; the message says why.
            HashMismatch: its installed files are not those that were accepted.
        """
        ...
