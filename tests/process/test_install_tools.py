"""Installing as people do, with everything fetched; part of `make test-all`, it needs the network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.installing import ROOT, new_environment, run_tool
from tests.support.variants import ALL

pytestmark = pytest.mark.skipif(not ALL, reason="fetches packages: make test-all")
MINUTES = 15 * 60


def tool(folder: Path, name: str) -> Path:
    """Install the installer *name* into an environment of its own and return its program."""
    python = new_environment(folder / name)
    run_tool(sys.executable, "-m", "pip", "--python", python, "install", "-q", name)
    return python.parent / name


def works(programs: Path, home: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "AILERON_HOME": str(home / "a")}

    def said(*words: str) -> str:
        return run_tool(*words, cwd=home, env=environment)

    assert said(programs / "aileron", "version").startswith("aileron ")
    assert "config.toml" in said(programs / "aileron", "init", "--example")
    assert "send-draft" in said(programs / "aileron", "action", "list")
    assert "aileron-mcp" in said(programs / "aileron-mcp", "--help")


def test_pipx_installs_the_checkout(tmp_path: Path) -> None:
    pipx = tool(tmp_path, "pipx")
    environment = {**os.environ, "PIPX_HOME": str(tmp_path / "p"), "PIPX_BIN_DIR": str(tmp_path / "b")}  # fmt: skip
    run_tool(
        pipx, "install", "--python", sys.executable, ".", cwd=ROOT, env=environment, timeout=MINUTES
    )
    works(tmp_path / "b", tmp_path)


def uv_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment in which uv keeps everything in *folder*."""
    kept = {"UV_TOOL_DIR": str(folder / "t"), "UV_TOOL_BIN_DIR": str(folder / "b")}
    cache = {"UV_CACHE_DIR": str(folder / "cache"), "UV_PYTHON": sys.executable}
    return {**os.environ, **kept, **cache, **more}


def linked(folder: Path) -> int:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(path.stat().st_nlink > 1 for path in files)


def test_uv_installs_the_checkout_as_a_tool(tmp_path: Path) -> None:
    """`uv tool install .`, as the README has it: no file is one of uv's cache."""
    uv = tool(tmp_path, "uv")
    environment = uv_environment(tmp_path, UV_LINK_MODE="copy")
    run_tool(uv, "tool", "install", ".", cwd=ROOT, env=environment, timeout=MINUTES)
    works(tmp_path / "b", tmp_path)
    assert linked(tmp_path / "t") == 0


def test_a_tool_that_uv_linked_from_its_cache_is_reported_and_mended(tmp_path: Path) -> None:
    """The doctor says so with the command that mends it, and that command does."""
    uv = tool(tmp_path, "uv")
    environment = uv_environment(tmp_path, UV_LINK_MODE="hardlink")
    run_tool(uv, "tool", "install", ".", cwd=ROOT, env=environment, timeout=MINUTES)
    assert linked(tmp_path / "t") > 1000
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "AILERON_HOME": str(tmp_path / "a")}
    doctor = [str(tmp_path / "b" / "aileron"), "doctor", "--json"]
    said = subprocess.run(doctor, env=own, capture_output=True, text=True, check=False).stdout
    (finding,) = (each for each in json.loads(said)["findings"] if "UV_LINK_MODE" in each["text"])
    command = finding["text"].split("`")[1]
    assert command == "UV_LINK_MODE=copy uv tool upgrade --reinstall aileron"
    path = {"PATH": f"{uv.parent}:{os.environ['PATH']}"}
    run_tool("sh", "-c", command, env={**environment, **path}, timeout=MINUTES)
    assert linked(tmp_path / "t") == 0
    works(tmp_path / "b", tmp_path)
