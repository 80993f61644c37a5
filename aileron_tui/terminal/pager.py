"""The person's own pager, run in the console's place on a text that was made harmless before.

The text goes over a pipe, never through a file. `less` must start no other program: what
stands on its screen came from outside, and a person may press any key there.
"""

import asyncio
import shlex
from collections.abc import Mapping

_DEFAULT = "less"
_WITHOUT = frozenset({"LESSOPEN", "LESSCLOSE", "LESSKEYIN", "LESSKEY"})
"""Programs and key tables that less would take from the environment."""


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """Return `$PAGER` as words, `less` where there is none or none that can be read."""
    try:
        words = shlex.split(environment.get("PAGER", ""))
    except ValueError:
        words = []
    return words or [_DEFAULT]


def pager_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return *environment* for the pager: nothing of Aileron's, and less as a reader alone."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("AILERON_") and name not in _WITHOUT
    }
    return {**kept, "LESSSECURE": "1", "LESSHISTFILE": "-"}


async def start_pager(
    command: list[str], environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start the pager, which reads its text from its standard input; return it, running.

    Raises:
        OSError: it cannot be started.
    """
    return await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, env=dict(environment)
    )
