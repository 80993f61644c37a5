"""The agents of this machine: which are installed, in which versions, and which run outside any sandbox."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from aileron_core.clock import Clock
from aileron_core.containment.detection import exists_in_root
from aileron_core.containment.programs import find_program
from aileron_core.errors import AileronError, NotFound
from aileron_core.home.layout import Home
from aileron_core.home.owner import OwnerNotVerified, lock_owner
from aileron_core.launch.doctor import Finding
from aileron_core.launch.plan import Agent
from aileron_core.sessions import session_table
from aileron_core.storage.open import open_reader

_SECONDS = 10.0
"""How long `--version` may take."""
_MOST = 4096
_VERSION = re.compile(r"\d+(?:\.\d+){1,3}(?:[-+][0-9A-Za-z.-]+)?")
_CMDLINE = 4096
_WORDS = 3
"""How many words of a command line may name the agent: an interpreter and its options come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What is known of one agent on this machine."""

    agent: Agent
    program: Path | None
    """None where there is none outside the project."""
    version: str | None
    """As it says itself; None where it did not say."""
    problem: str = ""
    """Why it did not, or why a program that is there is not taken."""

    @property
    def is_tested_version(self) -> bool:
        return self.version in self.agent.tested_versions


def inspect_agent(agent: Agent, env: Mapping[str, str], project: Path) -> AgentReport:
    """Examine *agent*; runs its `--version`, and nothing from *project*.

    The program starts in an empty folder that is also its home, so it touches no file of the
    person's.
    """
    path = env.get("PATH", os.defpath)
    try:
        program = find_program(agent.name, path, project)
    except NotFound:
        inside = shutil.which(agent.name, path=path)
        trouble = (
            f"{inside} is inside this project. `aileron launch` does not run an agent that is "
            "installed in its own project"
        )
        return AgentReport(
            agent=agent, program=None, version=None, problem=trouble if inside else ""
        )
    with tempfile.TemporaryDirectory(prefix="aileron-", ignore_cleanup_errors=True) as folder:
        version, trouble = _asked(program, path, folder)
    return AgentReport(agent=agent, program=program, version=version, problem=trouble)


def _asked(program: Path, path: str, folder: str) -> tuple[str | None, str]:
    env = {"PATH": path, "HOME": folder, "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"}
    try:
        process = subprocess.Popen(
            [str(program), "--version"],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return None, f"it did not start: {error.strerror}"
    try:
        output, _ = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"`--version` printed nothing within {_SECONDS:g} s"
    finally:
        _end(process)
    found = _VERSION.search(output[:_MOST].decode("utf-8", "replace"))
    if found is None:
        return None, f"`--version` printed no version (exit code {process.returncode})"
    return found[0], ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children if it has not ended by itself."""
    if process.poll() is None:  # else its number may be another's by now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def uncontained_sessions(home: Home, clock: Clock) -> Iterator[Finding]:
    """Report the open sessions that are not contained, as claimed or as observed; none without a console."""
    try:
        if lock_owner(home.path) is None:
            return
    except OwnerNotVerified as error:
        yield Finding(level="note", topic="sessions", text=str(error))
        return
    try:
        with closing(open_reader(home.database)) as connection:
            found = session_table.open_sessions(connection, clock.now())
            outside = session_table.seen_uncontained(connection, found)
    except (AileronError, sqlite3.Error):
        yield Finding(level="note", topic="sessions", text="The open sessions cannot be read.")
        return
    loose = [each for each in found if not each.claims_contained or each.session_id in outside]
    for session in loose:
        how = "connected by itself" if session.self_opened else "launched with --no-sandbox"
        if session.claims_contained:
            how = "reported as contained, but seen outside any sandbox"
        text = f"Session {session.session_id} ({session.agent}, {how}) is not contained."
        yield Finding(level="warning", topic="sessions", text=text)
    if not loose:
        text = "No session is open."
        if found:
            text = (
                f"{len(found)} open, each reported as contained. The console shows whether it "
                "could confirm that."
            )
        yield Finding(level="ok", topic="sessions", text=text)


def running_agents(
    names: Collection[str], *, uid: int, home: Path, proc: Path = Path("/proc")
) -> Iterator[Finding]:
    """Report processes of *uid* that run one of the programs *names* outside any sandbox.

    Those are in our user namespace, or in another one from which Aileron's home can be reached.

    Args:
        proc: the process table (Linux; nothing is reported elsewhere).
    """
    ours = _namespace(proc / "self")
    if ours is None:
        return
    for folder in sorted(proc.iterdir(), key=lambda each: each.name):
        if not folder.name.isdigit():
            continue
        name = _agent_of(folder, names)
        if name is None or not _is_of(folder, uid):
            continue
        if _namespace(folder) != ours and not _finds(folder, home.resolve()):
            continue
        text = (
            f"{name} (process {folder.name}) runs outside any sandbox, so it can do whatever you "
            "can."
        )
        yield Finding(level="warning", topic="agents", text=text)


def _agent_of(folder: Path, names: Collection[str]) -> str | None:
    """Return the agent that a process runs, judged by the first words of its command line."""
    try:
        with (folder / "cmdline").open("rb") as file:
            words = file.read(_CMDLINE).split(b"\0")[:_WORDS]
    except OSError:
        return None
    found = {os.fsdecode(word.rpartition(b"/")[2]) for word in words}
    return next((name for name in names if name in found), None)


def _is_of(folder: Path, uid: int) -> bool:
    try:
        return folder.stat().st_uid == uid
    except OSError:
        return False


def _finds(folder: Path, home: Path) -> bool:
    try:
        handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False  # it has ended
    try:
        return exists_in_root(handle, home)
    except OSError:
        return False  # not for us to look at
    finally:
        os.close(handle)


def _namespace(folder: Path) -> str | None:
    try:
        return str((folder / "ns" / "user").readlink())
    except OSError:
        return None
