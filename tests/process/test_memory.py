"""Secrets in a process's memory: in no core dump of it, and read by no other program of its user."""

import contextlib
import ctypes
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ordinary import AS_ORDINARY, OWNS, as_ordinary, give, ordinary_folder
from tests.support.scripted_guest import FQN, furnish_guest
from tests.support.server_harness import CLI, ROOT, Console, eventually
from tests.support.terminal import Pty
from tests.support.tls_service import Request, tls_service

PHRASE, KEY = "qx7canary-phrase-3d81", "qx7canary-key-90ab44"
ENTRY = ROOT / "tests" / "process" / "oauth_console.py"
NEEDS_KEY = '[capabilities.credential]\nkind = "api_key"\nheader = "X-Key"\nformat = "{key}"\n'
HOME = "h" * 100
"""So long that the socket goes through /proc/self/fd, which a closed process must still have."""
DUMPING = 'cd "$1" && shift && { ulimit -c unlimited || ulimit -S -c "$(ulimit -H -c)"; } 2>&- && exec "$@"'
HOLDING = f"import sys; held = bytearray({KEY.encode()!r}) * 50; print('held', flush=True); sys.stdin.read()"


def dumping(cores: Path, *command: str) -> tuple[str, ...]:
    """Return *command* as a shell begins it that wants core dumps, in *cores*."""
    return ("sh", "-c", DUMPING, "sh", str(cores), *command)


@contextmanager
def holding_secret(cores: Path) -> Iterator[subprocess.Popen[str]]:
    command = dumping(cores, *AS_ORDINARY, sys.executable, "-I", "-c", HOLDING)
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def folder() -> Iterator[Path]:
    with ordinary_folder() as made:
        for name in (HOME, "cores", "others"):
            (made / name).mkdir(mode=0o700)
        give(made)
        yield made


@pytest.fixture
def cores(folder: Path) -> Path:
    """A folder in which this machine leaves the core dump of a program; without one nothing is shown."""
    with holding_secret(folder / "others") as process:
        process.send_signal(signal.SIGABRT)
        process.wait()
    if not any(KEY.encode() in each.read_bytes() for each in (folder / "others").iterdir()):
        pytest.skip("this machine puts core dumps elsewhere (/proc/sys/kernel/core_pattern)")
    return folder / "cores"


@contextmanager
def in_use(folder: Path) -> Iterator[Console]:
    """A console in the middle of a request that carries the key; its service does not answer."""
    home, go_on = folder / HOME, threading.Event()
    (folder / "tls").mkdir()

    def wait(_: Request) -> object:
        go_on.wait()
        return {}

    with tls_service(folder / "tls") as service:
        service.answer = wait
        request = {"url": f"https://{service.place}/x", "credential": "api_key"}
        furnish_guest(home, [request], [service.place], more=NEEDS_KEY)
        give(folder)
        certificate = str(folder / "tls" / "both.pem")
        entry = (sys.executable, "-I", str(ENTRY), str(service.port), certificate, "serve")
        command = dumping(folder / "cores", *AS_ORDINARY, *entry)
        console = Console(home, command=command, env={OWNS: str(folder)})
        try:
            assert console.ask("CreateVault", passphrase=PHRASE).status == 200
            fields = {"connector_hash": FQN, "identity": "work", "account": "", "secret": KEY}
            assert console.ask("BindAccount", **fields, passphrase=PHRASE).status == 200
            token = console.session()["token"]
            threading.Thread(target=_see, args=(console, token), daemon=True).start()
            eventually(lambda: service.seen, "the request has arrived")
            assert service.seen[0].headers["x-key"] == KEY
            yield console
        finally:
            console.end(signal.SIGKILL)
            go_on.set()


def _see(console: Console, token: str) -> None:
    with contextlib.suppress(OSError):  # the console is killed
        console.run("see", {}, token)


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_console_that_crashes_while_a_secret_is_in_use_leaves_no_core_dump(
    folder: Path, cores: Path, number: signal.Signals
) -> None:
    """However it was started: the shell asks for dumps of any size."""
    with in_use(folder) as console:
        sent = signal.SIGUSR2 if number == signal.SIGSEGV else number
        assert console.end(sent) == -number
    assert list(cores.iterdir()) == []
    assert KEY.encode() not in b"".join(
        each.read_bytes() for each in (folder / HOME).rglob("*") if each.is_file()
    )


def test_the_command_that_asks_for_a_passphrase_leaves_no_core_dump(
    folder: Path, cores: Path
) -> None:
    command = dumping(cores, *AS_ORDINARY, *CLI, "vault", "init", "--home", str(folder / HOME))
    terminal = Pty(command)
    terminal.answer("at least 8 characters", KEY)
    terminal.shows("The same again")
    terminal.process.send_signal(signal.SIGABRT)
    assert terminal.ended() == -signal.SIGABRT
    terminal.close()
    assert list(cores.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the switch is the kernel's of Linux")
def test_other_programs_of_the_user_do_not_read_a_console(folder: Path) -> None:
    """Memory, environment, descriptors: as they do with any program that does nothing about it."""
    links = ("cwd", "exe", "root")
    names = ("environ", "maps", "mem", "auxv", "io", "fd", *links)
    names = (*names, "task/{pid}/environ", "task/{pid}/mem")

    def refused(pid: int) -> set[str]:
        found = set[str]()
        for name in names:
            path = Path(f"/proc/{pid}", name.format(pid=pid))
            try:
                if name == "fd":
                    list(path.iterdir())
                elif name in links:
                    path.readlink()
                else:
                    path.open("rb").close()
            except PermissionError:
                found.add(name)
        return found

    def open_() -> None:
        with_nothing = refused(other)
        assert with_nothing <= {"mem", "task/{pid}/mem"}, with_nothing  # Yama may refuse those

    def closed() -> None:
        assert refused(pid) == set(names)
        attach, libc = 16, ctypes.CDLL(None, use_errno=True)
        assert libc.ptrace(attach, pid, 0, 0) == -1
        assert ctypes.get_errno() == 1  # EPERM

    with holding_secret(folder / "others") as process, in_use(folder) as console:
        other, pid = process.pid, console.process.pid
        as_ordinary(open_)
        as_ordinary(closed)
