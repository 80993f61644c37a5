"""The built-in tools in a launch: an agent's calls through the gate to the session's workers, and back."""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents_bench import Bench
from tests.agents.at_terminal import Terminal
from tests.support.processes import eventually, running_with
from tests.support.variants import variants

AGENT = Path(__file__).parent / "mcp_agent.py"


def launched_calling(
    bench: Bench, *made: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()
) -> Any:
    env = bench.stand_in(f"#!/usr/bin/env python3\n{AGENT.read_text()}")
    return bench.launched("codex", json.dumps(made), options=options, env=env)


def answers(output: str) -> list[dict[str, Any]]:
    lines = [line for line in output.splitlines() if line.startswith("ANSWER ")]
    assert lines, output
    return [json.loads(line.removeprefix("ANSWER ")) for line in lines]


def approve_next(bench: Bench, tool: str, before: Callable[[], bool] = lambda: True) -> None:
    """Approve the next call of *tool* that waits for a person, once its preview is there and *before* holds."""
    name = f"builtin.{tool.lower()}"

    def waiting() -> list[dict[str, Any]]:
        views = bench.console.views.values()
        open_ = [each for each in views if each["action"] == name and each["state"] == "pending"]
        return [each for each in open_ if each["digest"] and each["preview"] != "fetching"]

    assert bench.console.until(lambda: bool(waiting()))
    (view,) = waiting()
    assert before()
    bench.console.approve(view["approval_id"])


def test_a_read_runs_unasked_a_write_is_asked_and_a_secret_denied(bench: Bench) -> None:
    bench.write(".codex/auth.json", '{"token": "x"}')
    (bench.project / "a.txt").write_text("one\ntwo\n")
    (bench.project / ".env").write_text("KEY=secret")
    made = (
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"file_path": ".env"}),
        ("Grep", {"pattern": "secret|two", "output_mode": "content"}),
        ("Write", {"file_path": "a.txt", "content": "one\nthree\n"}),
        ("Bash", {"command": "cat a.txt; date +%s%N | tee made; ls -A $HOME"}),
    )
    with launched_calling(bench, *made, options=("--builtins",)) as agent:
        approve_next(bench, "Write")
        approve_next(bench, "Bash", lambda: not (bench.project / "made").exists())
        approved = time.time_ns()
        ended = agent.end()
    listed, read, secret, found, _wrote, ran = answers(ended.output)
    assert {"Read", "Write", "Edit", "Bash", "Glob", "Grep"} <= {*listed["tools"]}
    assert "two" in read["text"]
    assert secret["failed"]
    assert "KEY=secret" not in ended.output
    assert "two" in found["text"]
    assert (bench.project / "a.txt").read_text() == "one\nthree\n"
    assert "three" in ran["text"]
    # It ran once, in its rehearsal, before the yes; what was kept is what that printed.
    assert (bench.project / "made").read_text().strip() in ran["text"]
    assert int((bench.project / "made").read_text()) < approved
    assert "auth.json" not in ran["text"]
    assert ".codex" not in ran["text"]


STAYS = (
    # A command that wants the network is not rehearsed: what runs is what was approved.
    """python3 -c 'import socket; socket.create_connection(("127.0.0.1", 9))'; """
    "sleep {0} & (trap '' HUP INT TERM; sleep {0}) & setsid sleep {0} & touch running; wait"
)


def end_by(ends: str, bench: Bench, terminal: Terminal) -> None:
    if "Ctrl-C" in ends:
        terminal.type("\x03")
    if "launcher" in ends:
        terminal.process.kill()
    if "console" in ends:
        bench.console.process.kill()


_ENDS = ("Ctrl-C", "launcher", "console")


@pytest.mark.parametrize(
    ("options", "ends"), variants(itertools.product(((), ("--no-sandbox",)), _ENDS), 4)
)
def test_nothing_of_a_command_outlives(bench: Bench, ends: str, options: tuple[str, ...]) -> None:
    """What is in the background, deaf to signals or in a session of its own, too."""
    seconds = f"600.{os.getpid()}"  # no other test's
    made = json.dumps([("Bash", {"command": STAYS.format(seconds)})])
    stays = "import atexit, time\natexit.register(time.sleep, 600)" if ends == "console" else ""
    begin = f"#!/usr/bin/env python3\nimport sys\nsys.argv.append({made!r})\n{stays}\n"
    terminal = Terminal(bench, begin + AGENT.read_text(), "--builtins", *options)
    with contextlib.closing(terminal):
        approve_next(bench, "Bash")
        eventually((bench.project / "running").exists)
        eventually(lambda: len(running_with(f"sleep\0{seconds}")) == 3)
        end_by(ends, bench, terminal)
        eventually(lambda: not running_with(f"sleep\0{seconds}"))


@pytest.mark.parametrize("ends", ["launcher", "console", "launcher and console"])
def test_a_commit_that_was_under_way_is_made_or_taken_back(bench: Bench, ends: str) -> None:
    """By what goes on, or by the next console; nothing of it is left beside the files."""
    files = [bench.project / f"{each}" for each in range(150)]
    for each in files:
        each.write_text("old\n")
    made = json.dumps([("Bash", {"command": "for i in $(seq 0 149); do echo new > $i; done"})])
    begin = f"#!/usr/bin/env python3\nimport sys\nsys.argv.append({made!r})\n"
    terminal = Terminal(bench, begin + AGENT.read_text(), "--builtins")
    inode = files[75].stat().st_ino
    with contextlib.closing(terminal):
        approve_next(bench, "Bash")
        eventually(lambda: files[75].stat().st_ino != inode)
        end_by(ends, bench, terminal)
        if "console" in ends:
            bench.console.end(signal.SIGKILL)
            bench.console.start()
        eventually(lambda: not running_with(str(bench.project)))
        eventually(lambda: not [*bench.console.home.glob("commits/*")])
        assert {each.read_text() for each in files} in ({"old\n"}, {"new\n"})
        assert not [*bench.project.glob(".aileron-*")]
