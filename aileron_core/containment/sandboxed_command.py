"""Running a program of Aileron's or the system's on data that an agent controls: in a sandbox of its own, with limits.

No network, no home, and only the folders that the command needs.
"""

import contextlib
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import IO

from aileron_core.containment.bubblewrap import process_mounts, system_mounts
from aileron_core.containment.mounts import mount_arguments
from aileron_core.containment.support import machine_filter

_CHUNK = 1 << 20
_STDERR_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How such a command ended."""

    problem: str | None
    """Why it was abandoned: the end of a sentence; None if it ended by itself."""
    code: int
    stderr: str
    """The beginning of what it printed there: hostile text."""


def run_sandboxed(
    bwrap: str,
    mounts: Iterable[str],
    command: Iterable[str],
    output: IO[bytes],
    *,
    env: Mapping[str, str],
    stdin: bytes = b"",
    max_bytes: int,
    seconds: float,
) -> Ended:
    """Run *command* with its standard output in *output*.

    Args:
        mounts: bubblewrap's arguments for what the sandbox shows besides the system's programs.
        max_bytes: more output than this is a problem.
    """
    with (
        _temporary_file(stdin) as stdin_file,
        _temporary_file(b"") as stderr,
        _temporary_file(machine_filter() or b"") as filter_file,
    ):
        argv = [*_bubblewrap(bwrap, filter_file.fileno()), *mounts, "--chdir", "/", "--", *command]
        process = subprocess.Popen(
            argv, stdin=stdin_file, stdout=subprocess.PIPE, stderr=stderr, env=dict(env),
            cwd="/", start_new_session=True, pass_fds=(filter_file.fileno(),),
        )  # fmt: skip
        try:
            problem = _copy(process, output, max_bytes, seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            code = process.wait()
        stderr.seek(0)
        text = stderr.read(_STDERR_BYTES).decode("utf-8", "replace").strip()
        return Ended(problem=problem, code=code, stderr=text)


def _bubblewrap(bwrap: str, filter_fd: int) -> list[str]:
    """Return the beginning of the command line; *filter_fd* is the descriptor of the seccomp filter."""
    command = [bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-net", "--unshare-cgroup-try", "--disable-userns"]
    command += ["--die-with-parent", "--cap-drop", "ALL", "--seccomp", str(filter_fd)]
    command += mount_arguments([*system_mounts(), *process_mounts()])
    return [*command, "--tmpfs", "/tmp"]  # noqa: S108 - the sandbox's own


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
