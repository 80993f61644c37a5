"""Running git on data that an agent controls: each command in a sandbox of its own.

No network, no home, no system or user settings, no hooks, and only the folders that the command
needs.
"""

import contextlib
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from aileron_core.containment.bubblewrap import process_mounts, system_mounts
from aileron_core.containment.mounts import mount_arguments
from aileron_core.containment.support import machine_filter
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
_LONG = frozenset(("pack-objects", "index-pack", "rev-list", "log"))
"""Commands that may take longer, because they read as much as the agent made."""
_MAX_OUTPUT_BYTES = 512 * 1024 * 1024
_CHUNK = 1 << 20


class GitFailed(AileronError):
    """A git command failed, took too long or printed too much."""


def find_git() -> str | None:
    """Return the system's git, or None. The one on the person's PATH is not used: it could be the agent's."""
    return shutil.which("git", path="/usr/local/bin:/usr/bin:/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedGit:
    """git, and the folders that its sandbox shows besides the system's programs."""

    bwrap: str
    git_dir: str
    """As seen in the sandbox."""
    read_only: tuple[tuple[Path, str], ...] = ()
    """Paths that are mounted read-only, and where."""
    writable: tuple[tuple[Path, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links in the sandbox: target, and where it is."""
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
        with (
            _temporary_file(stdin) as stdin_file,
            _temporary_file(b"") as stderr,
            _temporary_file(machine_filter() or b"") as filter_file,
        ):
            process = subprocess.Popen(
                self.argv(args, filter_file.fileno()), stdin=stdin_file, stdout=subprocess.PIPE, stderr=stderr,
                env={**_ENVIRONMENT, "GIT_DIR": self.git_dir, **self.env},
                cwd="/", start_new_session=True, pass_fds=(filter_file.fileno(),),
            )  # fmt: skip
            try:
                seconds = _LONG_SECONDS if args[0] in _LONG else _SECONDS
                problem = _copy(process, output, max_bytes, seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                code = process.wait()
            if problem is not None:
                raise GitFailed(f"git {args[0]} {problem}")
            if code != 0:
                stderr.seek(0)
                text = stderr.read(4096).decode("utf-8", "replace").strip()
                raise GitFailed(f"git {args[0]}: {escape(text[:300]) or f'exit code {code}'}")

    def argv(self, args: Iterable[str], filter_fd: int) -> list[str]:
        """Return the whole command line; *filter_fd* is the descriptor of the seccomp filter."""
        command = [self.bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        command += ["--unshare-net", "--unshare-cgroup-try", "--disable-userns"]
        command += [
            "--die-with-parent",
            "--cap-drop",
            "ALL",
            "--seccomp",
            str(filter_fd),
            *mount_arguments([*system_mounts(), *process_mounts()]),
        ]
        command += ["--tmpfs", "/tmp"]  # noqa: S108 - the sandbox's own
        for path, inside in self.read_only:
            command += ["--ro-bind", str(path), inside]
        for path, inside in self.writable:
            command += ["--bind", str(path), inside]
        for target, inside in self.links:
            command += ["--symlink", target, inside]
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return [*command, "--chdir", "/", "--", "git", "--no-pager", *settings, *args]


@contextlib.contextmanager
def _temporary_file(content: bytes) -> Generator[IO[bytes], None, None]:
    """Yield an unnamed file with *content*, positioned at its start."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _copy(
    process: "subprocess.Popen[bytes]", output: IO[bytes], max_bytes: int, seconds: float
) -> str | None:
    """Copy the output of *process* to *output*; return why it was abandoned, None if it ended by itself."""
    assert process.stdout is not None
    deadline = time.monotonic() + seconds
    copied = 0
    with process.stdout as source:
        while data := _read(source, deadline):
            copied += len(data)
            if copied > max_bytes:
                return f"returned more than {max_bytes >> 20} MiB."
            output.write(data)
        if time.monotonic() >= deadline:
            return f"took longer than {seconds:.0f} s."
    try:
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"took longer than {seconds:.0f} s."
    return None


def _read(source: IO[bytes], deadline: float) -> bytes:
    left = deadline - time.monotonic()
    if left <= 0 or not select.select([source], (), (), left)[0]:
        return b""
    return os.read(source.fileno(), _CHUNK)
