"""Aileron's own log: what a line holds, how the file is set aside, and how it is read."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.errors import FileProblems
from aileron_core.home.layout import Home
from aileron_core.settings import LogSettings, load_settings
from aileron_tui.cli.logfile import LogFile, log_path, show_logs
from aileron_tui.cli.output import CommandContext
from tests.support.server_harness import CLI

OURS = "aileron_core.somewhere"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogFile]:
    handler = LogFile(tmp_path / "aileron.log", max_bytes=1_000_000, keep=3)
    yield handler
    handler.close()


def tell(log: LogFile, *args: Any, name: str = OURS, level: int = logging.INFO, **of: Any) -> None:
    message, *rest = args
    record = logging.LogRecord(name, level, "/src/module.py", 7, message, tuple(rest), None)
    for key, value in of.items():
        setattr(record, key, value)
    log.handle(record)


def log_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_a_line_says_when_what_and_where_to_look_further(log: LogFile, tmp_path: Path) -> None:
    """The text of an exception may quote arguments; its type says enough."""
    tell(log, "recorded", event="run.completed", seq=12, run="run-x", session=None, action="send")
    try:
        raise ValueError("the secret argument")
    except ValueError:
        tell(log, "it failed", exc_info=sys.exc_info(), stack_info="the secret stack")
    line, failed = log_lines(tmp_path / "aileron.log")
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "info", "logger": OURS, "message": "recorded", "event": "run.completed",
        "seq": 12, "run": "run-x", "action": "send",
    }  # fmt: skip
    assert failed["error"] == "ValueError"
    assert "secret" not in json.dumps(failed)


def test_of_a_library_only_the_place_is_kept(log: LogFile, tmp_path: Path) -> None:
    """Libraries quote requests in their messages; below a warning they are not heard at all."""
    names = ["httpx", "mcp.server", "asyncio", "aileron.connector", "aileron_core_not"]
    for name in names:
        tell(log, "GET https://x/?q=secret", name=name)
        tell(log, "failed on %s", "secret", name=name, level=logging.WARNING)
    found = log_lines(tmp_path / "aileron.log")
    assert [line["logger"] for line in found] == names
    assert {line["message"] for line in found} == {"a message from a library, at module:7"}
    assert "secret" not in (tmp_path / "aileron.log").read_text()


def test_no_text_ends_its_line_or_reaches_a_terminal(log: LogFile, tmp_path: Path) -> None:
    """Control, bidirectional and invisible characters are written as their numbers."""
    hostile = "a\nb\r\x1b]0;x\x07\u202e\u2028\x85\x7f\ud800"
    tell(log, "%s", hostile, action=hostile)
    data = (tmp_path / "aileron.log").read_bytes()
    assert data.count(b"\n") == 1
    assert data.rstrip(b"\n").decode("ascii").isprintable()
    (line,) = log_lines(tmp_path / "aileron.log")
    assert (line["message"], line["action"]) == (hostile, hostile)


def test_the_file_is_the_owners_alone_and_is_set_aside_when_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "aileron.log"
    path.write_text("")
    path.chmod(0o644)
    log = LogFile(path, max_bytes=1000, keep=2)
    for number in range(60):
        tell(log, "line %d", number)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["aileron.log", "aileron.log.1", "aileron.log.2"]
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.stat().st_size <= 1000
    assert log_lines(path)[-1]["message"] == "line 59"
    link = tmp_path / "link.log"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        LogFile(link, max_bytes=1000, keep=2)
    assert not (tmp_path / "elsewhere").exists()


def test_lost_lines_are_counted(tmp_path: Path, capfd: Captured) -> None:
    """Nothing of them reaches the terminal, and the next line that can be written says how many."""
    log = LogFile(tmp_path / "aileron.log", max_bytes=10_000_000, keep=1)
    real, full = os.dup(log.stream.fileno()), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log.stream.fileno())
    for number in range(3):
        tell(log, "lost %d", number)
    os.dup2(real, log.stream.fileno())
    # What the stream still holds of the lost lines comes out with the next one.
    tell(log, "kept")
    tell(log, "kept too")
    log.close()
    for descriptor in (real, full):
        os.close(descriptor)
    messages = [line["message"] for line in log_lines(tmp_path / "aileron.log")]
    assert "3 lines could not be written" in messages
    assert messages[-1] == "kept too"
    assert capfd.readouterr() == ("", "")


CHILD = """
import logging, sys, threading, warnings
from pathlib import Path
from aileron_core.settings import LogSettings
from aileron_core.home.layout import Home
from aileron_tui.cli.logfile import log_to

class Bad:
    def __del__(self):
        raise KeyError("secret")

home = Home(Path(sys.argv[1]))
home.prepare()
log_to(home, LogSettings(level=sys.argv[2]))
warnings.warn("secret")
thread = threading.Thread(target=lambda: 1 / 0, name="worker")
thread.start()
thread.join()
bad = Bad()
del bad
logging.getLogger("aileron_core.x").debug("debugged")
logging.getLogger("aileron_core.x").warning("%d", "not a number")
"""


@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_what_goes_wrong_in_the_process_is_in_the_log_alone(tmp_path: Path, level: str) -> None:
    home = tmp_path / "home"
    command = [sys.executable, "-I", "-c", CHILD, str(home), level]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    text = log_path(Home(home)).read_text()
    assert "secret" not in text
    assert "thread worker ended with ZeroDivisionError" in text
    assert "KeyError was raised where nothing could handle it" in text
    assert ("py.warnings" in text) is (level != "error")
    assert ("debugged" in text) is (level == "debug")


def read_log(home: Path, capsys: Captured, count: int = 50, **how: bool) -> str:
    context = CommandContext(home=home, json=how.get("json", False), color=False)
    assert show_logs(context, count, follow=False) == 0
    return capsys.readouterr().out


@pytest.fixture
def set_aside(tmp_path: Path) -> Path:
    home = Home(tmp_path / "home")
    home.prepare()
    log = LogFile(log_path(home), max_bytes=1000, keep=2)
    for number in range(30):
        tell(log, "line %d", number)
    log.close()
    return home.path


def test_the_newest_lines_are_read(set_aside: Path, capsys: Captured) -> None:
    items = json.loads(read_log(set_aside, capsys, 15, json=True))["items"]
    assert [item["message"] for item in items] == [f"line {number}" for number in range(15, 30)]
    text = read_log(set_aside, capsys, 2)
    assert [line.split("  ")[-2].strip() for line in text.splitlines()] == ["line 28", "line 29"]
    assert read_log(set_aside, capsys, 0) == ""
    none = set_aside / "none"
    assert "is empty" in read_log(none, capsys)
    assert json.loads(read_log(none, capsys, json=True)) == {"items": []}
    assert not none.exists()
    # Those of another program are marked: none of them is obeyed, hidden or taken for ours.
    with log_path(Home(set_aside)).open("ab") as file:
        file.write(b'\x1b[2J\x07\xff not JSON\n[1]\n{"level": "error", "x": "\\u0007\\u202e"}\n')
        file.write(b'{"message": "no end of line"')
    text = read_log(set_aside, capsys, 4)
    assert not set(text) & set("\x1b\x07\u202e")
    assert [line[:1] for line in text.splitlines()][1:3] == ["?", "?"]
    assert "no end of line" not in text
    items = json.loads(read_log(set_aside, capsys, 3, json=True))["items"]
    assert [set(item) for item in items] == [{"line"}, {"line"}, {"level", "x"}]


def test_following_goes_on_over_a_file_that_is_set_aside(set_aside: Path) -> None:
    words = ("logs", "-f", "-n", "1", "--json", "--home", str(set_aside))
    with subprocess.Popen([*CLI, *words], stdout=subprocess.PIPE, text=True) as following:
        assert json.loads(following.stdout.readline())["message"] == "line 29"
        log = LogFile(log_path(Home(set_aside)), max_bytes=1000, keep=2)
        for number in range(30, 60):
            tell(log, "line %d", number)
            assert json.loads(following.stdout.readline())["message"] == f"line {number}"
        log.close()
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 130


def test_the_settings_of_the_log_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[log]\nlevel = "debug"\nmax_mib = 0.5\nkeep = 9\n')
    expected = LogSettings(level="debug", max_mib=0.5, keep=9)
    assert load_settings(tmp_path / "config.toml").log == expected


@pytest.mark.parametrize(
    "text",
    ['level = "loud"', "level = 5", "level = []", "max_mib = 0", 'max_mib = "2"', "keep = 0",
     "keep = true", "path = 1"],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(f"[log]\n{text}\n")
    with pytest.raises(FileProblems, match=rf"config\.toml: log\.{text.split()[0]}: "):
        load_settings(tmp_path / "config.toml")
