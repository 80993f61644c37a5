"""The wheel, installed outside the checkout: what is in it, and that all of it works from there."""

import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.installing import ROOT, Installed, build_sdist, build_wheel
from tests.support.server_harness import eventually
from tests.support.variants import ALL, variants

PACKAGES = ("aileron_core", "aileron_mcp", "aileron_tui")


@pytest.fixture
def home(folder: Path) -> Path:
    """A home that does not exist yet, beside nothing of the checkout."""
    return folder / "home"


def run_installed(
    installed: Installed, home: Path, *words: str, code: int = 0, **more: Any
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(installed.bin / words[0]), *words[1:]],
        env=installed.environment(home, **more), cwd=home.parent, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def wheel_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def sources() -> set[str]:
    """Return what belongs into the wheel: all that git has of the three packages, links followed."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *PACKAGES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    found: set[str] = set()
    for name in listed:
        path = ROOT / name
        inner = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        found |= {str(each.relative_to(ROOT)) for each in inner if "__pycache__" not in each.parts}
    return found


def test_the_wheel_holds_the_three_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    """Words, styles, types, settings and the example; no tests, no compiled leftovers."""
    inside = {
        name for name in wheel_files(wheel) if not re.match(r"aileron-[^/]*\.dist-info/", name)
    }
    scripts = {name for name in inside if re.match(r"aileron-[^/]*\.data/scripts/", name)}
    assert {name.rpartition("/")[2] for name in scripts} == {"aileron", "aileron-mcp"}
    assert inside - scripts == sources()
    for needed in (
        "aileron_core/words.txt", "aileron_tui/styles/app.tcss", "aileron_core/py.typed",
        "aileron_mcp/py.typed", "aileron_tui/py.typed", "aileron_tui/suite/config.toml",
        "aileron_tui/suite/examples/connectors/mail-drafts/connector.wasm",
        "aileron_tui/suite/examples/actions/send-draft.md",
        "aileron_tui/suite/examples/mailbox/server.py",
        "aileron_tui/suite/examples/demo/actions/readdress-draft.md",
        "aileron_tui/suite/connectors/python/micropython.wasm",
        "aileron_tui/suite/connectors/zig/connector.zig",
    ):  # fmt: skip
        assert needed in inside


def test_the_wheel_names_its_programs_licence_and_python(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (folder,) = {name.split("/")[0] for name in opened.namelist() if ".dist-info/" in name}
        facts = opened.read(f"{folder}/METADATA").decode()
        assert f"{folder}/licenses/LICENSE" in opened.namelist()
    assert "Requires-Python: >=3.11" in facts
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.skipif(not ALL, reason="builds both once more: make test-all")
def test_the_wheel_of_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path) -> None:
    """What is built from the archive holds what is built from the checkout, byte for byte."""
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


def test_the_programs_run_from_the_wheel_and_not_from_the_checkout(
    installed: Installed, home: Path
) -> None:
    text = run_installed(installed, home, "aileron", "version").stdout
    assert re.fullmatch(r"aileron \d+\.\d+\.\d+\S*\n", text)
    assert "aileron-mcp" in run_installed(installed, home, "aileron-mcp", "--help").stdout
    asked = (
        "import aileron_core, aileron_mcp, aileron_tui.app, sys; print(sys.path); "
        "print([p.__path__[0] for p in (aileron_core, aileron_mcp, aileron_tui)])"
    )
    done = subprocess.run(
        [installed.python, "-I", "-c", asked], capture_output=True, text=True, check=True
    )
    path, found = done.stdout.splitlines()
    assert str(ROOT) not in json.loads(path.replace("'", '"'))
    assert found.count(str(installed.packages)) == 3


PROGRAMS = [("aileron", "version"), ("aileron-mcp", "--version")]


def planted(folder: Path) -> dict[str, str]:
    """Return an environment that has Python run code before any program; its mark is `ran`."""
    folder.mkdir()
    code = f"open({str(folder / 'ran')!r}, 'w').close(); raise SystemExit('planted')\n"
    for name in (
        "click",
        "json",
        "http",
        "sitecustomize",
        "usercustomize",
        "aileron_core",
        "start",
    ):
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
    environment = planted(home.parent / "planted")
    done = subprocess.run(
        [str(installed.bin / program[0]), program[1]],
        cwd=home.parent / "planted" if here else home.parent, capture_output=True, text=True,
        env=installed.environment(home, **environment), stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{program[0]} ")
    assert not (home.parent / "planted" / "ran").exists()


@pytest.mark.parametrize("program", variants(PROGRAMS), ids=lambda words: words[0])
def test_the_programs_are_found_through_links_and_blanks(
    installed: Installed, wheel: Path, home: Path, program: tuple[str, str]
) -> None:
    """As pipx and uv link them into ~/.local/bin; a link of a link, relative too; one without a Python."""
    name, word = program
    bin_ = home.parent / "a blank" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / name).symlink_to(installed.bin / name)
    (bin_ / "again").symlink_to(Path("..", "bin", name))
    environment = installed.environment(home)
    environment["PATH"] = f"{bin_}:{environment['PATH']}"
    for command in (str(bin_ / "again"), name, "./again"):
        said = subprocess.run(
            [command, word], cwd=bin_, env=environment, capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stderr) == (0, ""), command
    (bin_ / "alone").write_bytes((installed.bin / name).read_bytes())
    (bin_ / "alone").chmod(0o755)
    said = subprocess.run([str(bin_ / "alone")], capture_output=True, text=True, check=False)
    assert said.returncode == 127
    assert "does not exist, or you cannot run it" in said.stderr
    spaced = Installed(home.parent / "in a blank", wheel)
    assert run_installed(spaced, home, name, word).stdout.startswith(f"{name} ")


def test_the_relay_runs_isolated_too(installed: Installed, home: Path) -> None:
    """What an agent's project puts on Python's path is not on the relay's."""
    (home.parent / "planted").mkdir()
    (home.parent / "planted" / "aileron_mcp.py").write_text("raise SystemExit('planted')\n")
    relay = subprocess.Popen(
        [str(installed.bin / "aileron-mcp")], cwd=home.parent / "planted",
        env=installed.environment(home, AILERON_WAIT_SECONDS="300"), stdin=subprocess.PIPE,
    )  # fmt: skip
    command = Path(f"/proc/{relay.pid}/cmdline")
    if command.exists():
        isolated = [b"-I", b"-m", b"aileron_mcp.relay"]
        eventually(lambda: command.read_bytes().split(b"\0")[1:4] == isolated, "isolated")
    assert relay.stdin is not None
    relay.stdin.close()
    assert relay.wait(60) == 0


SUITE = (
    "tests/process/test_serve_wire.py", "tests/process/test_mcp_real.py", "tests/fast/cli",
    "tests/fast/storage", "tests/fast/server", "tests/process/test_cli_commands.py",
)  # fmt: skip


@pytest.mark.skipif(not ALL, reason="the suite once more: make test-all")
@pytest.mark.timeout(600)  # each of its tests has its own limit, and names itself there
def test_the_suite_passes_against_the_wheel(installed: Installed, tmp_path: Path) -> None:
    """Tests and examples without the packages beside them: what they import is the wheel's."""
    for name in ("tests", "examples", "docs"):
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("__pycache__", "node_modules"),
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = subprocess.run(
        [installed.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not repositorys_own", *SUITE],
        cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    assert re.search(r"[1-9]\d+ passed", done.stdout)
