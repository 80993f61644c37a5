"""What the first program in the sandbox says where the agent cannot be started."""

import subprocess
import sys
from pathlib import Path

import pytest

from aileron_core.containment import sandbox_init


@pytest.mark.parametrize(
    "first_line",
    ["#!/opt/nowhere/bin/node", "#!/bin/sh\r", "#!{folder}/wrapper"],
    ids=["not there", "with a carriage return", "a script itself"],
)
def test_a_script_without_its_interpreter_ends_in_a_sentence(
    tmp_path: Path, first_line: str
) -> None:
    """The folder of an interpreter may not be in the sandbox; a traceback of ours tells nobody that."""
    (tmp_path / "wrapper").write_text("#!/opt/nowhere/bin/sh\n")
    (tmp_path / "wrapper").chmod(0o755)
    program = tmp_path / "co\x1bdex"
    program.write_text(first_line.format(folder=tmp_path) + "\n", newline="")
    program.chmod(0o755)
    said = start(program)
    assert said.returncode == 127
    assert said.stderr.startswith("aileron launch: ")
    assert said.stderr.count("\n") == 1
    assert "is a script whose interpreter is not in the sandbox" in said.stderr
    assert "--no-sandbox" in said.stderr
    assert "\x1b" not in said.stderr
    assert "\\x1b" in said.stderr


def test_a_program_that_cannot_be_executed_ends_in_a_sentence(tmp_path: Path) -> None:
    """As a shell says it."""
    program = tmp_path / "codex"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    said = start(program)
    assert said.returncode == 126
    assert said.stderr.startswith("aileron launch: ")
    assert "Traceback" not in said.stderr
    assert "Exec format error" in said.stderr


def start(program: Path) -> subprocess.CompletedProcess[str]:
    """Have the first program of a sandbox become *program*, here without a sandbox."""
    return subprocess.run(
        [sys.executable, "-I", sandbox_init.__file__, "0", str(program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
