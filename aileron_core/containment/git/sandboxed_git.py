"""Running git where it can do nothing but what it is asked: a sandbox of its own for each command.

No network, no home, no settings of the system or the user, no hook; the folders it needs and no other.
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

from aileron_core.containment.spec import kernel_covers, system_programs
from aileron_core.containment.support import this_filter
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
"""What may take longer, for it reads as much as the agent made."""
_MOST = 512 * 1024 * 1024
_CHUNK = 1 << 20


class GitFailed(AileronError):
    """git refused, took too long or gave too much."""


def find_git() -> str | None:
    """Return the system's git, None where there is none."""
    return shutil.which("git", path="/usr/local/bin:/usr/bin:/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedGit:
    """What one command of git sees beside the system's programs."""

    bwrap: str
    git_dir: str
    """As seen inside."""
    read: tuple[tuple[Path, str], ...] = ()
    """What is seen read-only, and where."""
    write: tuple[tuple[Path, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links inside: what each leads to, and where it is."""
    env: dict[str, str] = field(default_factory=dict[str, str])

    def run(self, *words: str, given: bytes = b"", fails: bool = False) -> bytes:
        """Run git and return what it printed.

        Args:
            words: its arguments.
            given: its standard input.
            fails: an exit code other than 0 is an empty answer, no error.

        Raises:
            GitFailed: see there.
        """
        with tempfile.TemporaryFile() as output:
            try:
                self.into(output, *words, given=given, most=_MOST)
            except GitFailed:
                if fails:
                    return b""
                raise
            output.seek(0)
            return output.read()

    def into(self, output: IO[bytes], *words: str, given: bytes = b"", most: int) -> None:
        """Run git with its standard output in *output*.

        Args:
            output: a file that can be written.
            words: its arguments.
            given: its standard input.
            most: the bytes that are taken; more is a failure.

        Raises:
            GitFailed: see there.
        """
        with (
            _holding(given) as taken,
            _holding(b"") as said,
            _holding(this_filter() or b"") as calls,
        ):
            process = subprocess.Popen(
                self.argv(words, calls.fileno()), stdin=taken, stdout=subprocess.PIPE, stderr=said,
                env={**_ENVIRONMENT, "GIT_DIR": self.git_dir, **self.env},
                cwd="/", start_new_session=True, pass_fds=(calls.fileno(),),
            )  # fmt: skip
            try:
                seconds = _LONG_SECONDS if words[0] in _LONG else _SECONDS
                whole = _copy(process, output, most, seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                code = process.wait()
            if whole is not None:
                raise GitFailed(f"git {words[0]} {whole}")
            if code != 0:
                said.seek(0)
                text = said.read(4096).decode("utf-8", "replace").strip()
                raise GitFailed(f"git {words[0]}: {escape(text[:300]) or f'exit code {code}'}")

    def argv(self, words: Iterable[str], calls: int) -> list[str]:
        """Return the whole command line; *calls* is the descriptor of the filter of system calls."""
        command = [self.bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        command += ["--unshare-net", "--unshare-cgroup-try", "--disable-userns"]
        command += [
            "--die-with-parent",
            "--cap-drop",
            "ALL",
            "--seccomp",
            str(calls),
            *system_programs(),
        ]
        command += ["--proc", "/proc", *kernel_covers(), "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - the box's own
        for path, seen in self.read:
            command += ["--ro-bind", str(path), seen]
        for path, seen in self.write:
            command += ["--bind", str(path), seen]
        for led, seen in self.links:
            command += ["--symlink", led, seen]
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return [*command, "--chdir", "/", "--", "git", "--no-pager", *settings, *words]


@contextlib.contextmanager
def _holding(content: bytes) -> Generator[IO[bytes], None, None]:
    """Yield a file without a name that is read from its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _copy(
    process: "subprocess.Popen[bytes]", output: IO[bytes], most: int, seconds: float
) -> str | None:
    """Copy what *process* prints; return why it was given up, None where it came to its end."""
    assert process.stdout is not None
    ends = time.monotonic() + seconds
    copied = 0
    with process.stdout as source:
        while data := _read(source, ends):
            copied += len(data)
            if copied > most:
                return f"gave more than {most >> 20} MiB."
            output.write(data)
        if time.monotonic() >= ends:
            return f"took longer than {seconds:.0f} s."
    try:
        process.wait(max(0.1, ends - time.monotonic()))
    except subprocess.TimeoutExpired:
        return f"took longer than {seconds:.0f} s."
    return None


def _read(source: IO[bytes], ends: float) -> bytes:
    left = ends - time.monotonic()
    if left <= 0 or not select.select([source], (), (), left)[0]:
        return b""
    return os.read(source.fileno(), _CHUNK)
