"""Input and output that are files: the agent gets pipes, and everything arrives."""

import contextlib
import hashlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = (sys.executable, "-I", "-c")
ROOT = Path(__file__).resolve().parents[3]
LAUNCH = """
import sys
sys.path.insert(0, sys.argv[1])
from aileron_core.launch.foreground import run_foreground
sys.exit(run_foreground(sys.argv[2:], env={"PATH": "/usr/bin:/bin"}, cwd="/"))
"""


def exit_code(*argv: str, **streams: object) -> int:
    """Run *argv* as an agent is run, with these streams; return the exit code."""
    words = [*PYTHON, LAUNCH, str(ROOT), *argv]
    return subprocess.run(words, timeout=60, check=False, **streams).returncode  # type: ignore[call-overload]


REACHES = """
import os, stat
for number in (0, 1, 2):
    assert stat.S_ISFIFO(os.fstat(number).st_mode), number
    try:
        os.lseek(number, 0, 0)
    except OSError:
        continue
    raise SystemExit("can seek")
for number, how in ((0, os.O_WRONLY), (1, os.O_RDONLY | os.O_NONBLOCK)):
    again = os.open(f"/proc/self/fd/{number}", how)
    assert stat.S_ISFIFO(os.fstat(again).st_mode)
print("said", flush=True)
raise SystemExit(7)
"""


def test_no_file_is_within_the_agents_reach(tmp_path: Path) -> None:
    """Neither by seeking nor by opening it again: what was in the files before stays."""
    given, log = tmp_path / "given", tmp_path / "log"
    given.write_text("read me")
    log.write_text("before\n")
    with given.open("rb") as in_, log.open("ab") as out:
        assert exit_code(*PYTHON, REACHES, stdin=in_, stdout=out, stderr=out) == 7
    assert given.read_text() == "read me"
    assert log.read_text() == "before\nsaid\n"


def test_much_passes_both_ways_in_order_and_ends(tmp_path: Path) -> None:
    """More than pipes hold, in and out at once, also where the agent reads nothing; and `> log 2>&1`."""
    given, got = tmp_path / "given", tmp_path / "got"
    given.write_bytes(os.urandom(1 << 20) * 24)
    with given.open("rb") as in_, got.open("wb") as out:
        assert exit_code("/bin/cat", stdin=in_, stdout=out) == 0
    assert hashlib.sha256(got.read_bytes()).digest() == hashlib.sha256(given.read_bytes()).digest()
    program = "import os; os.write(1, b'y' * 60000); os._exit(5)"
    with given.open("rb") as in_, got.open("wb") as out:
        assert exit_code(*PYTHON, program, stdin=in_, stdout=out) == 5
    assert got.read_bytes() == b"y" * 60000
    log = tmp_path / "log"
    program = "import os\nfor n in range(300): os.write(1 + n % 2, b'%d\\n' % n)"
    with log.open("wb") as out:
        code = exit_code(*PYTHON, program, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    assert code == 0
    assert log.read_text().split() == [str(number) for number in range(300)]


def test_pipes_and_devices_are_passed_on(tmp_path: Path) -> None:
    program = "import os; print(os.fstat(0).st_rdev, os.fstat(1).st_ino)"
    null = Path(os.devnull).stat().st_rdev
    reading, writing = os.pipe()
    number = os.fstat(writing).st_ino
    assert exit_code(*PYTHON, program, stdin=subprocess.DEVNULL, stdout=writing) == 0
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read() == f"{null} {number}\n"


@pytest.mark.parametrize("closed", [0, 1])
def test_a_terminal_beside_a_file(tmp_path: Path, closed: int) -> None:
    """What goes to the terminal is not in the file, whichever of them is one."""
    file = tmp_path / "file"
    file.write_text("")
    master, slave = pty.openpty()
    program = (
        "import os; os.write(1, b'out'); os.write(2, b'err'); "
        "print(os.isatty(0), os.isatty(1), os.isatty(2), file=open(2, 'w'))"
    )
    with file.open("rb" if closed == 0 else "wb") as opened:
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        streams["stdin" if closed == 0 else "stdout"] = opened.fileno()
        assert exit_code(*PYTHON, program, **streams, start_new_session=True) == 0
    os.close(slave)
    shown = ""
    with contextlib.suppress(OSError):  # nobody has the other end any more
        while data := os.read(master, 4096):
            shown += data.decode()
    os.close(master)
    assert "err" in shown
    assert ("out" in shown) is (closed == 0)
    assert file.read_text() == ("" if closed == 0 else "out")
    assert f"{closed != 0} {closed == 0} True" in shown
