"""`aileron connector new`: what it makes builds, passes its tests, and is called through the gate."""

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.making import program
from tests.support.server_harness import Attended, aileron, aileron_json
from tests.support.variants import ALL

BIN = Path(sys.executable).parent
DEBIAN_CRATES = Path("/usr/share/cargo/registry")
EDIT = {"id": "1", "text": "Milk, bread and 🧂\n"}
TypeLine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def type_line(folder: Path) -> TypeLine:
    environment = {**os.environ, "LANG": "C.UTF-8", "AILERON_HOME": str(folder / "home")}
    search = f"{BIN}:{os.environ['PATH']}"
    if DEBIAN_CRATES.is_dir():
        # Debian's Rust gets its crates as packages, and no others.
        (folder / "cargo").mkdir()
        (folder / "cargo" / "config.toml").write_text(
            f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{DEBIAN_CRATES}"\n'
        )
        environment["CARGO_HOME"] = str(folder / "cargo")
        search = f"{BIN}:/usr/bin:/bin"

    def run(line: str, path: str = search) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line], cwd=folder, env={**environment, "PATH": path},
            capture_output=True, text=True, timeout=800, check=False,
        )  # fmt: skip

    return run


def start_service(made: Path) -> Any:
    spec = importlib.util.spec_from_file_location("service", made / "service.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    running = module.listen()
    threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
    return running


# What is made without a language is built and called in test_newcomers.py.
@pytest.mark.skipif(not ALL, reason="takes a minute and a compiler: make test-all")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", ["zig", "go", "rust"])
def test_a_new_connector_is_built_tested_installed_and_called_through_the_gate(
    folder: Path, type_line: TypeLine, language: str
) -> None:
    made = type_line(f"aileron connector new my-notes --lang {language}")
    assert made.returncode == 0, made.stderr
    lines = [line.strip() for line in made.stdout.splitlines() if line.startswith("    ")]
    assert len(lines) == 3
    for line in lines:
        done = type_line(line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    home = folder / "home"
    aileron("action", "add", str(folder / "my-notes" / "actions"), home=home)
    service = start_service(folder / "my-notes")
    route = f"notes.example.com:443=127.0.0.1:{service.server_port}"
    with closing(Attended(home, first=("--route", route))) as console:
        words = [f"--arg={name}={value}" for name, value in EDIT.items()]
        pending = aileron_json("action", "run", "edit-note", *words, home=home, code=75)
        approval = pending["approval_id"]
        assert console.ready(approval)
        assert console.views[approval]["preview"] == "ready"
        assert service.notes["1"]["text"] == "Milk\nBread\n"
        assert console.approve(approval)
        assert console.state(approval, "completed", "failed")
        assert console.views[approval]["state"] == "completed"
        assert service.notes["1"]["text"] == EDIT["text"]
    service.shutdown()
    service.server_close()


@pytest.mark.parametrize("language", ["zig", "go", "rust"])
def test_without_its_compiler_a_connector_is_made_and_its_build_says_what_to_install(
    folder: Path, type_line: TypeLine, language: str
) -> None:
    aileron_json("connector", "new", "bare", "--lang", language, cwd=folder, home=folder / "home")
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", "grep", "cut"):
        found = shutil.which(tool)
        assert found is not None
        (tools / tool).symlink_to(found)
    done = type_line("sh bare/build.sh", path=str(tools))
    assert (done.returncode, done.stdout) == (1, "")
    (said,) = done.stderr.splitlines()
    assert f"{language.capitalize()} " in said
    assert "is needed" in said
    assert not (folder / "bare" / "connector.wasm").exists()


def test_nothing_is_overwritten_half_made_or_misnamed(folder: Path, type_line: TypeLine) -> None:
    """A name becomes a folder, a word in a shell, and a part of the connector's name."""
    there = program(folder / "there" / "manifest.toml", "mine")
    (folder / "file").write_text("mine")
    (folder / "link").symlink_to("nowhere")
    before = sorted(folder.rglob("*"))
    for name in ("there", "file", "link"):
        done = aileron("connector", "new", name, cwd=folder, home=folder / "home", code=1)
        assert f"{name} is already there" in done.stderr
        assert done.stdout == ""
    wrong = ("", "..", "/tmp/x", "a/b", "A", "1a", "a--b", "-a", "a-", "a b", "a\n", "ä", "a" * 41)
    for name in wrong:
        aileron("connector", "new", name, cwd=folder, home=folder / "home", code=2)
    # On a disk that is full: the same command works once there is room.
    done = type_line("ulimit -f 16; aileron connector new my-notes")
    assert done.returncode != 0
    assert "Created" not in done.stdout
    assert sorted(folder.rglob("*")) == before
    assert there.read_text() == "mine"
    assert type_line("aileron connector new my-notes").returncode == 0
