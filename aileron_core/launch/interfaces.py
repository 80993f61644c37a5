"""What the launcher needs from outside: the console that owns the home, and the person at the terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aileron_core.launch.project import ProjectSettings


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
        return f"LaunchedSession({self.session_id}, tokens hidden)"


class SessionHold(Protocol):
    """An open stream whose loss ends the session; it comes back after a restart of the console."""

    def start(self) -> None:
        """Open it, on a thread of its own."""
        ...

    def stop(self) -> None:
        """Close it."""
        ...


class SessionPort(Protocol):
    """The console that owns the home, over its socket."""

    def require(self) -> None:
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

    def accepted_digest(self, agent: str, project: Path) -> str | None:
        """Return the digest of the project's settings that a person accepted for *agent*, if any.

        Raises:
            ConsoleAbsent: no console owns the home.
        """
        ...

    def accept(self, agent: str, project: Path, digest: str) -> None:
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


class Prompter(Protocol):
    """The person at the terminal."""

    def say(self, text: str) -> None:
        """Tell them a sentence, before the agent has the terminal or after it."""
        ...

    def accepts(self, settings: ProjectSettings) -> bool:
        """Show what a project asks for, and return whether they accept it.

        Raises:
            Forbidden: nobody can be asked.
        """
        ...
