"""Which agents are installed on this machine, in which versions, and what Aileron can control of them."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.programs import find_program
from aileron_core.errors import NotFound
from aileron_core.launch.plan import Agent

_SECONDS = 10.0
"""How long `--version` may take."""
_MOST = 4096
_VERSION = re.compile(r"\d+(?:\.\d+){1,3}(?:[-+][0-9A-Za-z.-]+)?")


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
        program = find_program(agent.program, path, project)
    except NotFound:
        inside = shutil.which(agent.program, path=path)
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
