"""Installing as people do, with everything fetched; part of `make test-all`, it needs the network."""

import os
import sys
from pathlib import Path

import pytest

SUPPORT = str(Path(__file__).parents[1] / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)

from installing import ROOT, build_wheel, new_environment, run  # noqa: E402

pytestmark = pytest.mark.skipif(
    "AILERON_TEST_ALL" not in os.environ, reason="fetches packages: make test-all"
)
MINUTES = 15 * 60


def tool(folder: Path, name: str) -> Path:
    """Install the installer *name* into an environment of its own and return its program."""
    python = new_environment(folder / name)
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", name)
    return python.parent / name


def works(programs: Path, home: Path) -> None:
    """Run what was installed, from a folder that has nothing of the checkout."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "AILERON_HOME": str(home / "a")}

    def said(*words: str) -> str:
        return run(*words, cwd=home, env=environment)

    assert said(programs / "aileron", "version").startswith("aileron ")
    assert "config.toml" in said(programs / "aileron", "init", "--example")
    assert "send-draft" in said(programs / "aileron", "action", "list")
    assert "aileron-mcp" in said(programs / "aileron-mcp", "--help")


def test_pip_installs_the_wheel_with_what_it_depends_on(tmp_path: Path) -> None:
    """Into an empty environment, with nothing lent; `pip check` finds no conflict."""
    wheel = build_wheel(ROOT, tmp_path)
    python = new_environment(tmp_path / "venv")
    pip = (sys.executable, "-m", "pip", "--python", str(python))
    run(*pip, "install", "-q", wheel, timeout=MINUTES)
    assert "No broken requirements" in run(*pip, "check")
    works(python.parent, tmp_path)


def test_pipx_installs_the_checkout(tmp_path: Path) -> None:
    """`pipx install .`"""
    pipx = tool(tmp_path, "pipx")
    environment = {**os.environ, "PIPX_HOME": str(tmp_path / "p"), "PIPX_BIN_DIR": str(tmp_path / "b")}  # fmt: skip
    run(
        pipx, "install", "--python", sys.executable, ".", cwd=ROOT, env=environment, timeout=MINUTES
    )
    works(tmp_path / "b", tmp_path)


def test_uv_installs_the_checkout_as_a_tool(tmp_path: Path) -> None:
    """`uv tool install .`"""
    uv = tool(tmp_path, "uv")
    environment = {
        **os.environ, "UV_TOOL_DIR": str(tmp_path / "t"), "UV_TOOL_BIN_DIR": str(tmp_path / "b"),
        "UV_PYTHON": sys.executable,
    }  # fmt: skip
    run(uv, "tool", "install", ".", cwd=ROOT, env=environment, timeout=MINUTES)
    works(tmp_path / "b", tmp_path)
