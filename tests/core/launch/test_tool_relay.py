"""The relay between the console and the workers of the built-in tools, on real sockets and pipes."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.connectors.builtin.worker import frames
from aileron_core.connectors.builtin.worker_process import ToolWorker
from aileron_core.errors import Unavailable
from aileron_core.launch.tools.relay import ToolRelay
from tests.support.processes import eventually
from tests.support.tool_console import SECONDS, SESSION, ToolConsole, tool_console

WORKER = """
import importlib.util, os, sys, threading, time
spec = importlib.util.spec_from_file_location("frames", sys.argv[1])
frames = importlib.util.module_from_spec(spec)
spec.loader.exec_module(frames)
def say(frame): os.write(1, frames.frame_bytes(frame))
say({"ready": True, "features": {"worker": sys.argv[2]}})
waiting = []
while (frame := frames.read_frame(sys.stdin.buffer)) is not None:
    match frame:
        case {"id": n, "op": "echo", "args": args}: say({"id": n, "result": args, "ended": "not its to say"})
        case {"id": n, "op": "wait"}: waiting.append(n)
        case {"id": n, "op": "waiting"}: say({"id": n, "result": {"waiting": len(waiting)}})
        case {"id": n, "op": "forge"}:
            say({"ended": "forged"}); say({"id": n, "result": {}})
            for each in range(n + 1): say({"id": each, "result": {"forged": True}})
        case {"id": n, "op": "pid"}: say({"id": n, "result": {"pid": os.getpid(), "group": os.getpgrp()}})
        case {"id": n, "op": "end"}: sys.exit(3)
        case {"cancel": n}: waiting.remove(n); say({"id": n, "error": {"class": "stopped", "message": "It."}})
"""


def started_worker(folder: Path, kind: str, program: str = WORKER) -> ToolWorker:
    path = folder / f"{kind}.errors"
    command = [sys.executable, "-I", "-c", program, frames.__file__, kind]
    return ToolWorker(kind, command, env={}, cwd=str(folder), errors=path)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[ToolConsole]:
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    with tool_console(home) as serving:
        yield serving


@pytest.fixture
def tool_relay(peer: ToolConsole, tmp_path: Path) -> Iterator[ToolRelay]:
    workers = [started_worker(tmp_path, kind) for kind in ("files", "commands")]
    made = ToolRelay(peer.home, SESSION, workers, contained=False)
    try:
        made.open()
        assert peer.attached.is_set()  # before anything may be asked
        made.start()
        yield made
    finally:
        made.stop()


def test_calls_and_answers_pass_and_nothing_made_up(
    peer: ToolConsole, tool_relay: ToolRelay
) -> None:
    assert peer.features == {kind: {"worker": kind} for kind in ("files", "commands")}
    large = "é" * 500_000
    for kind in ("files", "commands"):
        frame = peer.ask(kind, "echo", text=large)
        assert frame == {"id": frame["id"], "result": {"text": large}}
    peer.send("files", {"id": 901, "op": "wait", "args": {}})
    assert peer.ask("files", "waiting")["result"] == {"waiting": 1}
    assert peer.ask("commands", "forge")["result"] == {}
    assert peer.ask("commands", "echo", text="next")["result"] == {"text": "next"}
    assert peer.ask("files", "echo", text="next")["result"] == {"text": "next"}
    assert len(peer.connected) == 3  # the stream, and one for each worker's answers
    pid = peer.ask("commands", "pid")["result"]
    assert pid["pid"] == pid["group"] != os.getpgrp()  # no key of the terminal reaches it


def test_a_call_ends_alone_and_with_its_console(peer: ToolConsole, tool_relay: ToolRelay) -> None:
    """A number of the next console's means another call: it gets no answer to one that it did not make."""
    for number in (901, 902):
        peer.send("commands", {"id": number, "op": "wait", "args": {}})
    peer.send("commands", {"cancel": 901})
    by, frame = peer.results.get(timeout=SECONDS)
    assert (by, frame["id"], frame["error"]["class"]) == ("commands", 901, "stopped")
    assert peer.ask("commands", "waiting")["result"] == {"waiting": 1}
    peer.break_stream()
    assert peer.attached.wait(SECONDS)
    assert peer.ask("commands", "waiting")["result"] == {"waiting": 0}
    assert peer.results.empty()


def test_a_worker_that_ends_is_told_and_the_other_goes_on(
    peer: ToolConsole, tool_relay: ToolRelay
) -> None:
    peer.send("commands", {"id": 901, "op": "end", "args": {}})
    by, frame = peer.results.get(timeout=SECONDS)
    assert (by, list(frame)) == ("commands", ["ended"])
    assert "worker of the built-in tools for commands has ended" in frame["ended"]
    assert peer.ask("commands", "echo")["error"]["class"] == "io"
    assert peer.ask("files", "echo")["result"] == {}
    peer.break_stream()
    assert peer.results.get(timeout=SECONDS) == ("commands", frame)
    pid = peer.ask("files", "pid")["result"]["pid"]
    peer.gone = True
    peer.break_stream()
    eventually(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit('no such thing')", "it ended (no such thing)"),
        ("print('hello, hello')", "its first words make no sense"),
        ("import time; time.sleep(60)", "not ready after 20 seconds"),
    ],
)
def test_a_worker_that_does_not_start_says_why(tmp_path: Path, program: str, why: str) -> None:
    started = started_worker(tmp_path, "files", program)
    seconds = 0.2 if "sleep" in program else SECONDS
    with pytest.raises(Unavailable) as failed:
        started.wait_until_ready(time.monotonic() + seconds)
    assert f"did not start: {why}" in failed.value.message
    started.close_input()
    started._process.kill()
    started.wait()
