"""Meets processes over a Unix socket, in sandboxes of several kinds; prints how each is contained.

    python meeting.py FOLDER        # {"kind of process": "verified", ...} as one line of JSON
    python meeting.py FOLDER again  # "claimed", where a number was given to another process

A program of its own: it runs as an ordinary user, or in a process namespace where it may choose the
next number.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from aileron_core.containment.detection import detect_containment

PYTHON = "/usr/bin/python3"
COMES = (
    "import ctypes, os, socket, sys\n"
    "path, *how = sys.argv[1:]\n"
    "if 'another user' in how: os.setgid(65534); os.setuid(65534)\n"
    "if 'hidden' in how: ctypes.CDLL(None).prctl(4, 0)\n"  # PR_SET_DUMPABLE
    "if 'with a home' in how: os.makedirs(how[-1])\n"
    "s = socket.socket(socket.AF_UNIX)\n"
    "s.connect(path)\n"
    "print('here', flush=True)\n"
    "sys.stdin.read()\n"
)
ROOT = (
    *("bwrap", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"),
)


@contextmanager
def there(*command: str) -> Iterator[None]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n", command
        yield


def kinds(folder: Path, path: Path, home: Path) -> dict[str, list[str]]:
    comes = [PYTHON, "-I", "-c", COMES, str(path)]
    shown = ["--ro-bind", str(path.parent), str(path.parent)]
    away = ["--symlink", str(folder / "elsewhere"), str(home.parent)]
    boxed = [*ROOT, "--unshare-user", "--unshare-pid"]
    found = {
        "beside us": comes,
        "beside us, hidden": [*comes, "hidden"],
        "in a sandbox": [*boxed, *shown, *comes],
        "in a sandbox, hidden": [*boxed, *shown, *comes, "hidden"],
        "in namespaces alone": ["unshare", "-Urpf", *comes],
        "in a sandbox with the home": [*boxed, *shown, "--bind", str(home), str(home), *comes],
        "in a sandbox with a home": [*boxed, *shown, *comes, "with a home", str(home)],
        "in a sandbox with a link for a home": [*boxed, *away, *shown, *comes],
        "in a sandbox with our processes": [*ROOT, "--unshare-user", *shown, *comes],
    }
    if os.geteuid() == 0:
        found["runs as another user"] = [*comes, "another user"]
        found["in a sandbox of our user namespace"] = [*ROOT, "--unshare-pid", *shown, *comes]
    return found


def meet(folder: Path) -> dict[str, str]:
    path, home = folder / "run" / "s.sock", folder / "person" / "home"
    for each in (path.parent, home, folder / "elsewhere" / "home"):
        each.mkdir(parents=True)
    folder.chmod(0o755)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        path.chmod(0o666)  # for the other user
        listener.listen()
        found: dict[str, str] = {}
        for kind, command in kinds(folder, path, home).items():
            with there(*command):
                connection, _ = listener.accept()
                with connection:
                    found[kind] = detect_containment(connection, home)
        return found


def meet_another(folder: Path) -> str:
    """Return how a connection counts whose process has ended, and whose number is another's now."""
    path, home = folder / "s.sock", folder / "home"
    home.mkdir()
    last = Path("/proc/sys/kernel/ns_last_pid")
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen()
        with there(PYTHON, "-I", "-c", COMES, str(path)):
            connection, _ = listener.accept()
            number = int(last.read_text())
        with connection:
            last.write_text(str(number - 1))
            with subprocess.Popen(["sleep", "60"]) as other:
                assert other.pid == number
                found = detect_containment(connection, home)
                other.kill()
    return found


if __name__ == "__main__":
    place = Path(sys.argv[1])
    print(json.dumps(meet_another(place) if "again" in sys.argv else meet(place)))
