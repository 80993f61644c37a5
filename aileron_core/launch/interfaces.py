"""What the launcher needs from outside: the console that owns the home, and the person at the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.launch.project import ProjectSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedSession:
    """The session that the console opened for a launched agent, with its secrets."""

    session_id: str
    token: str
    gateway_token: str
    url: str
    socket: Path | None
    """Its own socket, where it is contained."""
    placeholder: str = ""
    """What its agent sends in place of API keys; empty where it may use none of the vault's."""
    key_providers: tuple[str, ...] = ()
    """The providers whose keys in the vault its model requests may use."""

    def __repr__(self) -> str:
        return f"LaunchedSession({self.session_id}, tokens hidden)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSettings:
    """What a person accepted of a project's settings for an agent."""

    digest: str
    """Hex."""
    accepted_at: float
    """Epoch seconds."""


class SessionHold(Protocol):
    """A stream to the console whose loss ends the session; it reconnects after a restart of the console."""

    def start(self) -> None:
        """Read the stream, and open it again when it breaks, on a thread of its own."""
        ...

    def stop(self) -> None: ...


class SessionPort(Protocol):
    """The console that owns the home, reached over its socket."""

    def require_console(self) -> None:
        """Return only if a console owns the home and answers.

        Raises:
            ConsoleUnavailable: there is none.
        """
        ...

    def open(
        self,
        *,
        agent: str,
        label: str,
        cwd: Path,
        contained: bool,
        terms: SessionTerms,
    ) -> LaunchedSession:
        """Open a session in the name of the person at the terminal; workers of its tools attach before its agent starts.

        Raises:
            ConsoleUnavailable: no console owns the home.
            AileronError: *terms* name tools that nobody accepted, or two tools of one name.
        """
        ...

    def accepted_settings(self, agent: str, project: Path) -> AcceptedSettings | None:
        """Return what a person accepted of the project's settings for *agent*, None if nothing.

        Raises:
            ConsoleUnavailable: no console owns the home.
        """
        ...

    def accept(
        self, agent: str, project: Path, digest: str, *, missing_checks: bool = False
    ) -> None:
        """Record that the person accepts these settings of the project for *agent*.

        Args:
            missing_checks: *project* is the person's home, and *digest* that of the checks in their
                own settings which they accept not to run.

        Raises:
            ConsoleUnavailable: no console owns the home.
        """
        ...

    def hold(self, session: LaunchedSession, allow: Callable[[str], None]) -> SessionHold:
        """Open the stream that keeps the session alive: a launcher that is killed takes its session with it.

        Args:
            allow: called, on the stream's thread, with each host that a person allows the
                session; again after a reconnection.
        """
        ...

    def report_refused_host(self, session_id: str, host: str, problem: str) -> bool:
        """Report that the session's sandbox refused the agent a host; return whether that arrived."""
        ...

    def end(self, session_id: str) -> None:
        """End the session; does nothing if the console has ended, which ends the session anyway."""
        ...


class Prompter(Protocol):
    """Output to, and questions for, the person at the terminal."""

    def say(self, text: str) -> None:
        """Print a sentence, before the agent has the terminal or after it ended."""
        ...

    def confirm_settings(
        self, settings: ProjectSettings, contents: Sequence[tuple[str, FileContentView]]
    ) -> bool:
        """Show what the project asks for, and return whether the person accepts it.

        Args:
            contents: each file that asks for something, beside what was accepted of it before.

        Raises:
            Forbidden: there is no person to ask.
        """
        ...

    def confirm_missing_checks(self, agent: str, count: int) -> bool:
        """Return whether the person starts *agent* without *count* checks of theirs, which were named before.

        Raises:
            Forbidden: there is no person to ask.
        """
        ...
