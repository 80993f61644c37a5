"""Runs a program as an ordinary user where the tests run as root: nobody contains an agent of root's.

    python ordinary.py PROGRAM ARGUMENT...

`AS_ORDINARY` is that as the beginning of a command line, and nothing where the tests are an ordinary
user's already. The program keeps its process id. It owns the folder that `OWNS` names in its
environment. It sees this checkout and the interpreter where they are: where a folder above them is
closed to other users (a clone in /root, say), it gets a view of its own of that folder, in a mount
namespace of its own, with nothing else in it. Nothing on the disk is changed but the named folder.
"""

import contextlib
import ctypes
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
OWNS = "TESTS_ORDINARY_OWNS"
USER = NOBODY if os.getuid() == 0 else os.getuid()
"""Who runs what `AS_ORDINARY` begins."""
AS_ORDINARY = (sys.executable, "-I", __file__) if os.getuid() == 0 else ()

_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
_SETRESUID = {"x86_64": 117, "aarch64": 147}


def give(folder: Path) -> None:
    """Make the ordinary user the owner of *folder* and all that is in it."""
    if os.getuid() != 0:
        return
    os.chown(folder, USER, USER)
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):  # somebody is at work there
                os.lchown(Path(here, name), USER, USER)


@contextlib.contextmanager
def acting_as(owner: int) -> Iterator[None]:
    """Be *owner* to the kernel in this thread alone: a console answers its own user on its socket."""
    if owner == os.geteuid():
        yield
        return
    # The system call itself: the library's function would change every thread of the tests.
    number = _SETRESUID[os.uname().machine]
    _checked(ctypes.CDLL(None, use_errno=True).syscall(number, -1, owner, -1), "setresuid")
    try:
        yield
    finally:
        _checked(ctypes.CDLL(None, use_errno=True).syscall(number, -1, 0, -1), "setresuid")


def as_ordinary(body: Callable[[], None]) -> None:
    """Run *body* in a child that is no root; what it raises fails the test."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(USER)
                os.setuid(USER)
            body()
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, text


@contextlib.contextmanager
def ordinary_folder() -> Iterator[Path]:
    """A folder of that user's, which it can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="ail-")).resolve()
    give(folder)
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def run_as_ordinary(
    program: Path, folder: Path, *words: str, timeout: float = 120, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program of this checkout in Python as that user, who owns *folder*, its first argument, to its good end."""
    done = subprocess.run(
        [*AS_ORDINARY, sys.executable, str(program), str(folder), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), OWNS: str(folder), **env},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _needed() -> set[Path]:
    """Return what the program needs to see: the checkout, its environment, interpreters, its folder."""
    found = {ROOT, Path(sys.prefix), Path(sys.base_prefix)}
    if node := shutil.which("node"):
        found.add(Path(node).resolve().parent.parent)
    if OWNS in os.environ:
        found.add(Path(os.environ[OWNS]))
    return {path.resolve() for path in found}


def _entering(path: Path) -> int:
    return stat.S_IXUSR if path.stat().st_uid == NOBODY else stat.S_IXOTH


def _outermost_closed(paths: Iterable[Path]) -> Path | None:
    folders = {each for path in paths for each in (*path.parents, path) if each.is_dir()}
    closed = [each for each in folders if not each.stat().st_mode & _entering(each)]
    return min(closed, key=lambda each: len(each.parts), default=None)


def _open_a_view() -> None:
    """Let the ordinary user reach what it needs, in a mount namespace of this process."""
    needed = _needed()
    if _outermost_closed(needed) is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(_CLONE_NEWNS), "unshare")
    _checked(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount")
    while (closed := _outermost_closed(needed)) is not None:
        if closed in needed:
            needed = (needed - {closed}) | {each.resolve() for each in closed.iterdir()}
        below = sorted(path for path in needed if path.is_relative_to(closed))
        handles = {path: os.open(path, os.O_PATH) for path in below}
        folders = {path for path in below if path.is_dir()}
        mounted = libc.mount(b"none", os.fsencode(closed), b"tmpfs", 0, b"mode=0755")
        _checked(mounted, f"mount {closed}")
        for path, handle in handles.items():
            if not path.exists():  # else it was in another that is shown already
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir() if path in folders else path.touch()
                source, place = f"/proc/self/fd/{handle}".encode(), os.fsencode(path)
                _checked(libc.mount(source, place, None, _MS_BIND | _MS_REC, None), f"mount {path}")
            os.close(handle)


def become() -> None:
    if folder := os.environ.get(OWNS):
        give(Path(folder))
    here = Path.cwd()
    _open_a_view()
    os.environ.pop(OWNS, None)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.chdir(here)  # by its name: the folder that this process began in may be covered now


def main() -> None:
    become()
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
