"""The sandboxes of the built-in tools, in real launches as an ordinary user: what they contain, and when they end; and the
relay between the console and their workers, on real sockets and pipes.

Run as a program with FOLDER SANDBOX, this file launches `codex` of a folder with built-in tools, both of whose workers
run commands."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from aileron_core.connectors.builtin.connector import worker_files
from aileron_core.connectors.builtin.worker import frames
from aileron_core.connectors.builtin.worker_process import ToolWorker
from aileron_core.containment.git.hidden_repositories import README
from aileron_core.errors import Unavailable
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.launcher import launch
from aileron_core.launch.prepare import LaunchRequest
from aileron_core.launch.tools.relay import ToolRelay, frozen
from aileron_core.launch.tools.sandboxes import tool_networks
from aileron_core.settings import LaunchPaths
from aileron_tui.cli.launching import HomeSessions
from tests.support.ordinary import AS_ORDINARY, OWNS, ROOT, give, ordinary_folder
from tests.support.processes import eventually, running_with
from tests.support.tool_console import SECONDS, SESSION, ToolConsole, tool_console

WORKER = b"""
import json, os, struct, subprocess, sys
if sys.argv[1] == "commands":
    from pathlib import Path
    from aileron_core.connectors.builtin.worker.command_worker import serve
    sys.exit(serve(Path(sys.argv[2]), sys.argv[3:]))
def say(frame):
    data = json.dumps(frame).encode()
    os.write(1, struct.pack(">I", len(data)) + data)
say({"ready": True, "features": {}})
while head := sys.stdin.buffer.read(4):
    frame = json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
    done = subprocess.run(
        ["/bin/sh", "-c", frame["args"]["command"]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, text=True,
    )
    say({"id": frame["id"], "result": {"stdout": done.stdout}})
"""
"""The files worker runs no program: in its place is one that does. That of commands is the real one."""


def try_sandbox() -> None:
    folder, sandbox = Path(sys.argv[1]), cast("Any", sys.argv[2])
    request = LaunchRequest(
        agent=AGENTS["codex"],
        args=(),
        project=folder / "project",
        home=folder / "person",
        aileron_home=folder / "aileron",
        env=dict(os.environ),
        relay={},
        sandbox=sandbox,
        allow_abstract=True,
        gateway=False,
        typed_paths=LaunchPaths(read=("~/notes",)) if sandbox != "off" else LaunchPaths(),
        worker=lambda: {**worker_files(), "__main__.py": WORKER},
        builtins="beside",
    )
    person = cast("Any", SimpleNamespace(say=partial(print, file=sys.stderr)))
    sys.exit(launch(request, HomeSessions(request.aileron_home), person))


AGENT = "#!/bin/sh\ndate +%s.%N > started\nuntil [ -e go ]; do sleep 0.05; done\n"
KINDS = ("files", "commands")


@dataclass
class Launched:
    folder: Path
    console: ToolConsole
    process: "subprocess.Popen[str]"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def run(self, kind: str, script: str) -> str:
        return self.console.ask(kind, "run", command=script)["result"]["stdout"].strip()

    def pids(self, text: str = "") -> list[int]:
        """Return the processes whose command line has *text* and this project in it."""
        return running_with(text, str(self.project))


def tool_environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{folder}/person/bin:{folder}/person/.local/bin:/usr/bin:/bin",
        "HOME": f"{folder}/person", "LANG": "C.UTF-8", "OPENAI_API_KEY": "a key",
        "AILERON_TOKEN": "a token",
    }  # fmt: skip


@contextlib.contextmanager
def launched(sandbox: str) -> Iterator[Launched]:
    if shutil.which("bwrap", path="/usr/bin:/bin") is None:
        pytest.skip("needs bubblewrap")
    with ordinary_folder() as folder:
        (folder / "aileron/run").mkdir(parents=True)
        subprocess.run(["git", "init", "-q", folder / "project"], check=True)
        for name, text in {
            "project/.envrc": "mine",
            "project/secret": "password",
            "project/aileron.toml": '[launch]\nhide = ["secret"]\n',
            "person/.codex/auth.json": "login",
            "person/.gitconfig": "[user]\nname = Ada\nemail = a@b\n",
            "person/notes/today": "milk",
            "person/bin/mine": "#!/bin/sh\necho my own tool\n",
            "person/bin/codex": AGENT,
            "person/.local/pipx/venvs/mytool/bin/mytool": "#!/bin/sh\necho of pipx\n",
            "person/.nodes/v22/bin/node": "#!/bin/sh\necho of node\n",
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        person = folder / "person"  # with links as pipx, `uv tool`, npm, Node's managers make them
        (person / ".local/bin").mkdir()
        tool = person / ".local/pipx/venvs/mytool/bin/mytool"
        (person / ".local/bin/mytool").symlink_to(tool)
        (person / ".local/bin/node").symlink_to("../../.nodes/current/bin/node")
        (person / ".nodes/current").symlink_to("v22")
        for each in person.glob("**/bin/*"):
            each.chmod(0o755)
        give(folder)
        (folder / "aileron").chmod(0o700)
        env = {**tool_environment(folder), OWNS: str(folder)}
        started = folder / "project" / "started"
        with tool_console(folder / "aileron") as console:
            process = subprocess.Popen(
                [*AS_ORDINARY, sys.executable, "-m", "tests.core.launch.test_tool_sandboxes", str(folder), sandbox],
                env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                eventually(lambda: console.attached.is_set() or process.poll() is not None)
                assert process.poll() is None, process.communicate()[1]
                attached = time.time()
                eventually(started.exists)
                assert attached < float(eventually(started.read_text)) + 0.05
                yield Launched(folder, console, process)
            finally:
                process.kill()
                process.communicate(timeout=30)
                launch = Launched(folder, console, process)
                eventually(lambda: not launch.pids())  # however it ends, nothing of it stays


def dry_run(folder: Path, *words: str) -> str:
    """Return what `aileron launch --dry-run` says of the launch that `there` is."""
    done = subprocess.run(
        [*AS_ORDINARY, sys.executable, "-m", "aileron_tui.cli", "--home", f"{folder}/aileron",
         "launch", "codex", "--dry-run", "--builtins", "--read", "~/notes", "--no-gateway",
         "--allow-abstract-sockets", *words],
        env=tool_environment(folder), cwd=folder / "project", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sandboxed() -> Iterator[Launched]:
    with launched("on") as launch:
        yield launch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("ls -A {folder}", "person\nproject"),  # no home of Aileron's
        ("ls -A ~/.codex || echo none", "none"),
        ("ls -AR /run | grep -e sock -e relay -e token || echo none", "none"),
        ("env | grep -e AILERON -e KEY || echo none", "none"),
        ("grep -l -x -e codex /proc/[0-9]*/comm || echo none", "none"),
        ("ls -A /tmp", "{name}"),
        ("cat secret", ""),
        ("cat .envrc; echo theirs > .envrc || echo protected", "mineprotected"),
        ("ls .git/hooks > /dev/null; touch .git/hooks/x || echo protected", "protected"),
        ("echo ours > made; cat made", "ours"),
        ("cat ~/notes/today; touch ~/notes/x || echo read-only", "milkread-only"),
        ("mine", "my own tool"),
        ("mytool; node", "of pipx\nof node"),
        ("git config user.name", "Ada"),
        ("grep -c -e '^CapEff:.0*$' -e '^Seccomp:.2$' /proc/self/status", "2"),
    ],
)
def test_both_have_what_the_session_may_use_and_nothing_of_its_agents(
    sandboxed: Launched, kind: str, script: str, output: str
) -> None:
    found = sandboxed.run(kind, script.replace("{folder}", str(sandboxed.folder)))
    assert found == output.replace("{name}", sandboxed.folder.name)


def test_a_dry_run_lists_what_each_has_and_commands_have_a_network(sandboxed: Launched) -> None:
    """Links too, which bubblewrap makes in no home that has them."""
    sandboxes = json.loads(dry_run(sandboxed.folder, "--json"))["tool_sandboxes"]
    table = dry_run(sandboxed.folder).partition("both have:")[2].partition("  command ")[0]
    for kind in KINDS:
        mounts = {(each["path"], each["how"] == "link") for each in sandboxes[kind]["mounts"]}
        planned = {each for each in mounts if each[0].startswith(f"{sandboxed.folder}/")}
        assert (f"{sandboxed.folder}/person/.local/bin/mytool", True) in planned
        mounted = sandboxed.run(kind, "cut -d ' ' -f 5 /proc/self/mountinfo | sort -u").splitlines()
        links = sandboxed.run(kind, "find ~ -xdev -type l").splitlines()
        found = {*((each, False) for each in mounted), *((each, True) for each in links)}
        assert planned <= found
        if kind == "files":  # the worker of commands lays more over what it has, for rehearsals
            assert planned == {each for each in found if each[0].startswith(f"{sandboxed.folder}/")}
        assert all(path.replace(f"{sandboxed.folder}/person", "~") in table for path, _ in planned)
    outside = Path("/proc/net/dev").read_text().count(":")
    assert [sandboxed.run(kind, "grep -c : /proc/net/dev") for kind in KINDS] == ["1", str(outside)]


def test_git_goes_on_in_a_repository_that_a_command_makes(sandboxed: Launched) -> None:
    """It is hidden from the person's git meanwhile, as one of the agent's is, but from no command."""
    hidden = sandboxed.project / "hidden"
    script = "git init -q sub; cd sub; git commit -qm one --allow-empty; until [ -e ../hidden ]; do sleep 0.02; done"
    command = f"{script}; git commit -qm two --allow-empty"
    sandboxed.console.send("commands", {"id": 902, "op": "run", "args": {"command": command}})
    git = sandboxed.project / "sub" / ".git"
    eventually(lambda: {each.name for each in git.glob("*")} == {README})
    hidden.touch()
    by, frame = sandboxed.console.results.get(timeout=30)
    assert (by, frame["result"]["exit_code"]) == ("commands", 0)
    assert sandboxed.run("commands", "cd sub; git log --format=%s%an") == "twoAda\noneAda"


def test_a_command_runs_until_the_launcher_is_gone(sandboxed: Launched) -> None:
    """It is killed at the end of these tests, and all processes are looked for then."""
    command = f"sleep 999; : {sandboxed.project}"
    sandboxed.console.send("commands", {"id": 901, "op": "run", "args": {"command": command}})
    eventually(lambda: sandboxed.pids("sleep 999"))


def test_without_a_sandbox_the_workers_are_processes_with_nothing_of_aileron() -> None:
    with launched("off") as launch:
        assert launch.console.opened["builtins"] == "beside"
        for kind in KINDS:
            assert launch.run(kind, "env | grep AILERON || pwd") == str(launch.project)
            assert launch.pids(kind)


def test_commands_share_the_sessions_network_where_it_is_whole() -> None:
    folder = Path("/nonexistent")
    for sandbox in ("on", "hosts", "offline"):
        request = LaunchRequest(
            agent=AGENTS["codex"], args=(), project=folder, home=folder, aileron_home=folder, env={},
            relay={}, sandbox=sandbox,
        )  # fmt: skip
        assert tool_networks(request) == {"files": False, "commands": sandbox == "on"}


def test_what_runs_is_stopped_and_goes_on() -> None:
    counting = "n=0; while :; do n=$((n+1)); (echo $n); done"
    with subprocess.Popen(
        ["sh", "-c", f"sh -c '{counting}' & wait"], start_new_session=True, stdout=subprocess.PIPE
    ) as at:
        assert at.stdout is not None
        try:
            at.stdout.readline()
            with frozen([at.pid]):
                while select.select([at.stdout], [], [], 0.05)[0]:  # what was said before
                    os.read(at.stdout.fileno(), 65536)
                assert not select.select([at.stdout], [], [], 0.1)[0]
            assert select.select([at.stdout], [], [], 5)[0]
        finally:
            os.killpg(at.pid, signal.SIGKILL)


RELAYED = """
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


def started_worker(folder: Path, kind: str, program: str = RELAYED) -> ToolWorker:
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
def relay(peer: ToolConsole, tmp_path: Path) -> Iterator[ToolRelay]:
    workers = [started_worker(tmp_path, kind) for kind in ("files", "commands")]
    made = ToolRelay(peer.home, SESSION, workers, contained=False)
    try:
        made.open()
        assert peer.attached.is_set()  # before anything may be asked
        made.start()
        yield made
    finally:
        made.stop()


def test_calls_and_answers_pass_and_nothing_made_up(peer: ToolConsole, relay: ToolRelay) -> None:
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


def test_a_call_ends_alone_and_with_its_console(peer: ToolConsole, relay: ToolRelay) -> None:
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
    peer: ToolConsole, relay: ToolRelay
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


if __name__ == "__main__":
    try_sandbox()
