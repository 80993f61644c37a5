"""Running git on data that an agent controls: each command in a sandbox of its own.

No network, no home, no system or user settings, no hooks, and only the folders that the command
needs.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from typing import IO

from aileron_core.containment.sandboxed_command import run_sandboxed
from aileron_core.errors import AileronError
from aileron_core.text import escape

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_WORK_TREE": "/",
    "GIT_COMMITTER_NAME": "Aileron",
    "GIT_COMMITTER_EMAIL": "aileron@localhost",
}
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.splitIndex=false",
             "gc.auto=0", "log.showSignature=false")  # fmt: skip
_SECONDS, _LONG_SECONDS = 30.0, 300.0
_LONG = frozenset(("pack-objects", "index-pack", "rev-list", "log", "diff-tree", "cat-file"))
"""Commands that may take longer, because they read as much as the agent made."""
_MAX_OUTPUT_BYTES = 512 * 1024 * 1024


class GitFailed(AileronError):
    """A git command failed, took too long or printed too much."""


def find_git() -> str | None:
    """Return the system's git, or None. The one on the person's PATH is not used: it could be the agent's."""
    return shutil.which("git", path="/usr/local/bin:/usr/bin:/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedGit:
    """git, and what its sandbox shows besides the system's programs."""

    bwrap: str
    git_dir: str
    """As seen in the sandbox."""
    mounts: tuple[str, ...] = ()
    """bubblewrap's arguments."""
    env: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, *args: str, stdin: bytes = b"", may_fail: bool = False) -> bytes:
        """Run git and return its standard output.

        Args:
            may_fail: a failure is an empty answer, not an error.

        Raises:
            GitFailed: it failed, took too long or printed too much.
        """
        with tempfile.TemporaryFile() as output:
            try:
                self.run_into(output, *args, stdin=stdin, max_bytes=_MAX_OUTPUT_BYTES)
            except GitFailed:
                if may_fail:
                    return b""
                raise
            output.seek(0)
            return output.read()

    def run_into(self, output: IO[bytes], *args: str, stdin: bytes = b"", max_bytes: int) -> None:
        """Run git with its standard output in *output*.

        Args:
            max_bytes: more output than this is a failure.

        Raises:
            GitFailed: it failed, took too long or printed too much.
        """
        ended = run_sandboxed(
            self.bwrap,
            self.mounts,
            ("git", "--no-pager", *(word for each in _SETTINGS for word in ("-c", each)), *args),
            output,
            env={**_ENVIRONMENT, "GIT_DIR": self.git_dir, **self.env},
            stdin=stdin,
            max_bytes=max_bytes,
            seconds=_LONG_SECONDS if args[0] in _LONG else _SECONDS,
        )
        if ended.problem is not None:
            raise GitFailed(f"git {args[0]} {ended.problem}")
        if ended.code != 0:
            text = escape(ended.stderr[:300]) or f"exit code {ended.code}"
            raise GitFailed(f"git {args[0]}: {text}")
