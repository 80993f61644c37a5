"""The built wheel, and environments outside the checkout that hold it."""

import os
import subprocess
import sys
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]


def run_tool(*command: str | Path, **more: object) -> str:
    """Run a tool to its end and return what it printed; a failure repeats that."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, **more
    )  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def build_wheel(source: Path, folder: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run_tool(*pip, "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def build_sdist(source: Path, folder: Path) -> Path:
    call = "from hatchling.build import build_sdist; import sys; build_sdist(sys.argv[1])"
    run_tool(sys.executable, "-c", call, folder, cwd=source)
    (made,) = folder.glob("*.tar.gz")
    return made


def new_environment(folder: Path) -> Path:
    run_tool(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


class Installed:
    """A virtual environment with the wheel in it; what it depends on is lent by this one.

    Aileron itself is the wheel's alone: the folder is a plain entry of the path, so its editable
    install is not read.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.python = new_environment(folder)
        pip = (sys.executable, "-m", "pip", "--python", str(self.python))
        run_tool(*pip, "install", "-q", "--no-deps", "--no-index", wheel)
        self.packages = next((folder / "lib").glob("python*/site-packages"))
        lent = Path(click.__file__).parents[1]
        (self.packages / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
        self.bin = folder / "bin"

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        """Return what a person's shell would hold, and nothing of this process's own."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(home.parent), "AILERON_HOME": str(home), **more}
