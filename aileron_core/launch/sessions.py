"""What the launcher needs of the console: a session opened, held for as long as the agent lives, and ended."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedSession:
    """A session that was opened for a launched agent."""

    session_id: str
    token: str
    gateway_token: str
    url: str
    socket: Path | None
    """Its own socket, where it is contained."""

    def __repr__(self) -> str:
        return f"Launched({self.session_id}, tokens hidden)"


class SessionHold(Protocol):
    """An open stream whose loss ends the session; it comes back after a restart of the console."""

    def start(self) -> None:
        """Open it, on a thread of its own."""
        ...

    def stop(self) -> None:
        """Let go of it."""
        ...


class SessionPort(Protocol):
    """The console that owns the home, over its socket."""

    def find(self) -> None:
        """Return if a console owns the home and answers.

        Raises:
            ConsoleAbsent: there is none.
        """
        ...

    def open(self, *, agent: str, label: str, cwd: Path, contained: bool) -> LaunchedSession:
        """Open a session in the name of the person at the terminal.

        Raises:
            ConsoleAbsent: no console owns the home.
        """
        ...

    def taken_in(self, agent: str, project: Path) -> str | None:
        """Return the digest of the project's settings that a person accepted for *agent*, if any.

        Raises:
            ConsoleAbsent: no console owns the home.
        """
        ...

    def take_in(self, agent: str, project: Path, digest: str) -> None:
        """Put on record that a person accepts these settings of the project for *agent*.

        Raises:
            ConsoleAbsent: no console owns the home.
        """
        ...

    def hold(self, session: LaunchedSession) -> SessionHold:
        """Return the stream that keeps the session, not yet open."""
        ...

    def end(self, session_id: str) -> None:
        """End the session; a console that is gone ends it by itself."""
        ...
