"""Run tests beside a freezer and on a slow disk: what is late once in a thousand runs is late here in each.

    python .ci/stress.py [ARGUMENT OF PYTEST ...]

Linux, with a C compiler; as root, or where a user may trace processes of their own. While the tests
run, single threads and whole processes of what they started stand still for 50 to 700 ms, again and
again, and every third fsync takes up to 250 ms. Tests that fail here and not elsewhere wait badly, or
have found something.
"""

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MARK = "UNDER_STRESS"
"""In the environment of what is frozen."""
FREEZERS = 3
_SEIZE, _INTERRUPT, _DETACH, _WALL = 0x4206, 0x4207, 17, 0x40000000
SLOW_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
#include <time.h>
static void wait_a_bit(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_nsec / 1000 % 3 == 0) usleep(now.tv_nsec / 1000 % 250000);
}
int fsync(int file) { wait_a_bit(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file); }
int fdatasync(int file) { wait_a_bit(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file); }
"""
_libc = ctypes.CDLL(None)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def victims() -> list[int]:
    """Return the processes that run tests, and what they started, directly or not."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}=1\0".encode() not in (folder / "environ").read_bytes():
                continue
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"pytest" not in line:  # the one that hands the tests out
            found.append(int(folder.name))
    return found


def freeze(threads: list[int]) -> bool:
    """Let these threads stand still for a moment; return whether one did.

    By ptrace, which a process's parent does not see: a shell would take a stopped job for suspended.
    """
    held: dict[int, int] = {}
    for thread in threads:
        if _libc.ptrace(_SEIZE, thread, None, None) != 0:
            continue  # gone, or traced
        _libc.ptrace(_INTERRUPT, thread, None, None)
        _, status = os.waitpid(thread, _WALL)
        if os.WIFSTOPPED(status):  # for our sake, or for a signal, which it gets when it goes on
            held[thread] = 0 if status >> 16 else os.WSTOPSIG(status)
    if held:
        time.sleep(random.uniform(0.05, 0.7))
    # The first thread last: a process that was killed meanwhile ends for its tracer when the others have.
    for thread, its_signal in reversed(held.items()):
        if _libc.ptrace(_DETACH, thread, None, its_signal or None) != 0:
            os.waitpid(thread, _WALL)  # killed meanwhile: its parent hears of it after us
    return bool(held)


def freeze_on(said: int, seed: int | None) -> None:
    """Freeze one after another until the tests' process ends, and write what was done to *said*."""
    parent = os.getppid()
    random.seed(seed)
    while os.getppid() == parent:
        if not (there := victims()):
            time.sleep(0.2)
            continue
        try:
            threads = [
                int(each.name) for each in Path(f"/proc/{random.choice(there)}/task").iterdir()
            ]
        except OSError:
            continue
        whole = random.random() < 0.3
        if freeze(threads if whole else [random.choice(threads)]):
            os.write(said, b"process\n" if whole else b"thread\n")


def library(folder: Path, name: str, source: str) -> Path:
    """Make a library to be preloaded of *source*, in *folder*; needs a C compiler."""
    made = folder / f"{name}.so"
    made.with_suffix(".c").write_text(source)
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", made, made.with_suffix(".c"), "-ldl"]
    subprocess.run(command, check=True)
    return made


@contextlib.contextmanager
def freezers(counts: Path, number: int, seed: int | None = None) -> Iterator[None]:
    """Have *number* of them freeze what is marked meanwhile; *counts* gets a line for each time."""
    children: list[int] = []
    try:
        for each in range(number):
            said = os.open(counts, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            if (child := os.fork()) == 0:
                try:
                    freeze_on(said, None if seed is None else seed + each)
                finally:
                    os._exit(0)
            os.close(said)
            children.append(child)
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def main(arguments: list[str]) -> int:
    """Run pytest with *arguments* among the freezers; return its exit status."""
    with tempfile.TemporaryDirectory(prefix="stress-") as folder:
        slow = library(Path(folder), "slow", SLOW_DISK)
        os.chmod(folder, 0o755)  # tests run programs as an ordinary user, too
        counts = Path(folder, "counts")
        env = {**os.environ, MARK: "1", "LD_PRELOAD": str(slow)}
        with freezers(counts, FREEZERS):
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *arguments], env=env, check=False
            )
        print("frozen:", dict(Counter(counts.read_text().split())))
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
