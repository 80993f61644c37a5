"""What a launch starts: what the agent's parent says and sets again, and the copy of the workers' program."""

import ast
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from aileron_core.connectors.builtin.connector import worker_files
from aileron_core.launch import agent_job
from aileron_core.launch.terminal import TerminalState
from tests.support import making


@pytest.mark.parametrize("first_line", ["#!/opt/nowhere/node", "#!/bin/sh\r", "#!{folder}/wrapper"])
def test_a_script_without_interpreter_ends_in_a_sentence(tmp_path: Path, first_line: str) -> None:
    """A traceback of ours tells nobody what to do. The last is a script itself."""
    making.program(tmp_path / "wrapper", "#!/opt/nowhere/bin/sh\n")
    program = tmp_path / "co\x1bdex"
    program.write_text(first_line.format(folder=tmp_path) + "\n", newline="")
    program.chmod(0o755)
    said = start_job(program)
    assert said.returncode == 127
    assert said.stderr.startswith("aileron launch: ")
    assert said.stderr.count("\n") == 1
    assert "is a script whose interpreter does not exist. Reinstall it." in said.stderr
    assert "\x1b" not in said.stderr
    assert "\\x1b" in said.stderr


def test_a_program_that_cannot_be_executed_ends_in_a_sentence(tmp_path: Path) -> None:
    program = making.program(tmp_path / "codex", "\x7fELF")
    said = start_job(program)
    assert said.returncode == 126
    assert said.stderr.startswith("aileron launch: ")
    assert "Traceback" not in said.stderr
    assert "Exec format error" in said.stderr
    # One whose interpreter is missing in a sandbox may be installed: its folder is not there.
    error = FileNotFoundError(2, "No such file")
    missing = agent_job.failed_start(str(program), error, in_sandbox=True)
    assert "is a script whose interpreter is not in the sandbox" in missing
    assert missing.endswith("or launch with --no-sandbox.")


def test_everything_is_frozen_in_a_sandbox_only(tmp_path: Path) -> None:
    """Outside one that would be every process of the person's."""
    said = start_job(tmp_path / "codex", scope="sandbox")
    assert said.returncode == 1
    assert "this is not a sandbox of Aileron's. Nothing was started." in said.stderr


def start_job(program: Path, *, scope: str = "group") -> subprocess.CompletedProcess[str]:
    """Have the job run *program*, here without a sandbox."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(agent_job.FOREGROUND)
        return subprocess.run(
            [sys.executable, "-I", agent_job.__file__, str(theirs.fileno()), scope, str(program)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            pass_fds=(theirs.fileno(),),
        )


@pytest.mark.parametrize(
    ("written", "replayed"),
    [
        (b"plain", b""),
        (b"\x1b[?1049h\x1b[?1000;1006h\x1b[?25l", b"\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?25l"),
        (b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l", b""),
        (b"\x1b[?7l\x1b[?2004h\x1bc", b""),
        (b"\x1b=", b"\x1b="),
        (b"\x1b=\x1b>", b""),
        (b"\x1b[>1u\x1b[>7u\x1b[>4;2m", b"\x1b[>7u\x1b[>4;2m"),
        (b"\x1b[>1u\x1b[>7u\x1b[<u", b"\x1b[>1u"),
        (b"\x1b[>1u\x1b[<9u\x1b[>4;2m\x1b[>4m", b""),
        (b"\x1b[?12345h\x1b[?3h", b""),
    ],
)
def test_what_the_agent_had_set_is_set_again(written: bytes, replayed: bytes) -> None:
    """And only that: an agent that reset its modes before it stopped sets them itself."""
    for cut in range(len(written)):
        state = TerminalState()
        state.scan(written[:cut])
        state.scan(written[cut:])
        assert state.replay_sequences() == replayed


def test_it_has_all_that_it_imports() -> None:
    """Of what its modules import anywhere: the standard library is there, and nothing else is."""
    names = [each.removesuffix(".pyc").removesuffix("/__init__") for each in worker_files()]
    copied = {each.replace("/", ".") for each in names}
    missing: set[str] = set()
    for name in copied - {"__main__"}:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        for node in ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                inner = {f"{node.module}.{each.name}" for each in node.names}
                modules = {each for each in inner if each in copied} or {node.module}
            elif isinstance(node, ast.Import):
                modules = {each.name for each in node.names}
            else:
                continue
            missing |= {
                each for each in modules if each.partition(".")[0] not in sys.stdlib_module_names
            } - copied
    assert missing == set()
