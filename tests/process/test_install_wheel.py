"""The wheel, installed outside the checkout: what is in it, and that all of it works from there.

Installed as people do it, with everything fetched, it is in `make test-all`: that needs the network.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.installing import Installed, build_sdist, build_wheel, new_environment, run_tool
from tests.support.making import program as program_file
from tests.support.server_harness import ROOT
from tests.support.variants import ALL, variants

PACKAGES = ("aileron_core", "aileron_mcp", "aileron_tui")


@pytest.fixture
def home(folder: Path) -> Path:
    """A home that does not exist yet, beside nothing of the checkout."""
    return folder / "home"


def run_installed(
    installed: Installed, home: Path, *words: str, cwd: Path | None = None, **more: str
) -> str:
    """Return what one of its programs prints; it says nothing else, and ends with 0."""
    done = subprocess.run(
        [str(installed.bin / words[0]), *words[1:]], env=installed.environment(home, **more),
        cwd=cwd or home.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def wheel_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def sources() -> set[str]:
    """Return what belongs into the wheel: all that git has of the three packages, links followed."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", *PACKAGES]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    found: set[str] = set()
    for name in listed:
        path = ROOT / name
        inner = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        found |= {str(each.relative_to(ROOT)) for each in inner if "__pycache__" not in each.parts}
    return found


def test_the_wheel_holds_the_three_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    """It names its programs, its licence and the Python that it needs."""
    every = wheel_files(wheel)
    inside = {name for name in every if not re.match(r"aileron-[^/]*\.dist-info/", name)}
    scripts = {name for name in inside if re.match(r"aileron-[^/]*\.data/scripts/", name)}
    assert {name.rpartition("/")[2] for name in scripts} == {"aileron", "aileron-mcp"}
    assert inside - scripts == sources()
    examples = "aileron_tui/suite/examples"
    assert inside >= {
        "aileron_core/words.txt", "aileron_tui/styles/app.tcss", "aileron_tui/suite/config.toml",
        *(f"{package}/py.typed" for package in PACKAGES),
        f"{examples}/connectors/mail-drafts/connector.wasm", f"{examples}/actions/send-draft.md",
        f"{examples}/mailbox/server.py", f"{examples}/demo/actions/readdress-draft.md",
        "aileron_tui/suite/connectors/python/micropython.wasm",
        "aileron_tui/suite/connectors/zig/connector.zig",
    }  # fmt: skip
    (info,) = {name.split("/")[0] for name in every if ".dist-info/" in name}
    assert f"{info}/licenses/LICENSE" in every
    with zipfile.ZipFile(wheel) as opened:
        facts = opened.read(f"{info}/METADATA").decode()
    assert "Requires-Python: >=3.11" in facts
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.skipif(not ALL, reason="builds both once more: make test-all")
def test_the_wheel_of_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path) -> None:
    made = build_sdist(ROOT, tmp_path)
    with tarfile.open(made) as opened:
        opened.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "tests/conftest.py"):
        assert (source / name).is_file(), name
    (tmp_path / "again").mkdir()
    again = build_wheel(source, tmp_path / "again")
    assert wheel_files(again) == wheel_files(wheel)
    with zipfile.ZipFile(again) as ours, zipfile.ZipFile(wheel) as theirs:
        for name in wheel_files(wheel):
            if name.startswith(PACKAGES):
                assert ours.read(name) == theirs.read(name), name


def test_the_programs_run_from_the_wheel_not_the_checkout(installed: Installed, home: Path) -> None:
    text = run_installed(installed, home, "aileron", "version")
    assert re.fullmatch(r"aileron \d+\.\d+\.\d+\S*\n", text)
    assert "aileron-mcp" in run_installed(installed, home, "aileron-mcp", "--help")
    asked = (
        "import aileron_core, aileron_mcp, aileron_tui.app, sys; print(sys.path); "
        "print([p.__path__[0] for p in (aileron_core, aileron_mcp, aileron_tui)])"
    )
    said = subprocess.check_output([installed.python, "-I", "-c", asked], text=True)
    path, found = said.splitlines()
    assert str(ROOT) not in json.loads(path.replace("'", '"'))
    assert found.count(str(installed.packages)) == 3


PROGRAMS = [("aileron", "version"), ("aileron-mcp", "--version")]


def planted(folder: Path) -> dict[str, str]:
    """Return an environment that has Python run code before any program; its mark is `ran`."""
    folder.mkdir()
    code = f"open({str(folder / 'ran')!r}, 'w').close(); raise SystemExit('planted')\n"
    shadowed = ("click", "json", "http", "sitecustomize", "usercustomize", "start")
    for name in (*shadowed, "aileron_core", "aileron_mcp"):
        (folder / f"{name}.py").write_text(code)
    return {
        "PYTHONPATH": str(folder), "PYTHONSTARTUP": str(folder / "start.py"), "PYTHONINSPECT": "1",
        "PYTHONHOME": str(folder), "PYTHONUSERBASE": str(folder), "PYTHONWARNINGS": "error::click.X",
        "PYTHONBREAKPOINT": "start.x",
    }  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda words: words[0])
@pytest.mark.parametrize("here", [False, True], ids=["elsewhere", "in the folder"])
def test_nothing_in_the_environment_or_the_folder_runs(
    installed: Installed, home: Path, program: tuple[str, str], here: bool
) -> None:
    """Not even before the program could start itself again: its Python starts with -I."""
    folder = home.parent / "planted"
    cwd, environment = folder if here else home.parent, planted(folder)
    said = run_installed(installed, home, *program, cwd=cwd, **environment)
    assert said.startswith(f"{program[0]} ")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("program", variants(PROGRAMS), ids=lambda words: words[0])
def test_the_programs_are_found_through_links_and_blanks(
    installed: Installed, wheel: Path, home: Path, program: tuple[str, str]
) -> None:
    name, word = program
    bin_ = home.parent / "a blank" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / name).symlink_to(installed.bin / name)
    (bin_ / "again").symlink_to(Path("..", "bin", name))
    environment = installed.environment(home, PATH=f"{bin_}:{os.environ['PATH']}")
    for command in (str(bin_ / "again"), name, "./again"):
        run_tool(command, word, cwd=bin_, env=environment)
    program_file(bin_ / "alone", (installed.bin / name).read_text())
    said = subprocess.run([str(bin_ / "alone")], capture_output=True, text=True, check=False)
    assert said.returncode == 127
    assert "does not exist, or you cannot run it" in said.stderr
    spaced = Installed(home.parent / "in a blank", wheel)
    assert run_installed(spaced, home, name, word).startswith(f"{name} ")


SUITE = (
    "tests/process/test_serve_wire.py", "tests/process/test_mcp_clients.py", "tests/fast/cli",
    "tests/fast/storage", "tests/fast/server", "tests/process/test_cli_commands.py",
)  # fmt: skip


@pytest.mark.skipif(not ALL, reason="the suite once more: make test-all")
@pytest.mark.timeout(600)  # each of its tests has its own limit, and names itself there
def test_the_suite_passes_against_the_wheel(installed: Installed, tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("__pycache__", "node_modules")
    for name in ("tests", "examples", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not repositorys_own", *SUITE],
        cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    assert re.search(r"[1-9]\d+ passed", done.stdout)


fetching = pytest.mark.skipif(not ALL, reason="fetches packages: make test-all")
MINUTES = 15 * 60


def install_tool(folder: Path, name: str) -> Path:
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


@fetching
def test_pipx_installs_the_checkout(tmp_path: Path) -> None:
    pipx = install_tool(tmp_path, "pipx")
    kept = {"PIPX_HOME": str(tmp_path / "p"), "PIPX_BIN_DIR": str(tmp_path / "b")}
    command = (pipx, "install", "--python", sys.executable, ".")
    run_tool(*command, cwd=ROOT, env={**os.environ, **kept}, timeout=MINUTES)
    works(tmp_path / "b", tmp_path)


def uv_environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {"UV_TOOL_DIR": str(folder / "t"), "UV_TOOL_BIN_DIR": str(folder / "b")}
    cache = {"UV_CACHE_DIR": str(folder / "cache"), "UV_PYTHON": sys.executable}
    return {**os.environ, **kept, **cache, **more}


def linked(folder: Path) -> int:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(path.stat().st_nlink > 1 for path in files)


@fetching
def test_uv_installs_the_checkout_as_a_tool(tmp_path: Path) -> None:
    """`uv tool install .`, as the README has it: no file is one of uv's cache."""
    uv = install_tool(tmp_path, "uv")
    environment = uv_environment(tmp_path, UV_LINK_MODE="copy")
    run_tool(uv, "tool", "install", ".", cwd=ROOT, env=environment, timeout=MINUTES)
    works(tmp_path / "b", tmp_path)
    assert linked(tmp_path / "t") == 0


@fetching
def test_a_tool_that_uv_linked_from_its_cache_is_reported_and_mended(tmp_path: Path) -> None:
    uv = install_tool(tmp_path, "uv")
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
