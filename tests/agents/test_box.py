"""The box of an MCP server, as hostile and published programs in it meet it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.network.host_network import HostNetwork
from aileron_core.connectors.network.host_resolver import HostList
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.table import ServerTable
from tests.support.ordinary import AS_ORDINARY, OWNS, ordinary_folder, run_as_ordinary
from tests.support.processes import eventually, running_with
from tests.support.tls import certificate
from tests.support.variants import needs_bubblewrap

CHILD = Path(__file__).parent / "box_child.py"
pytestmark = needs_bubblewrap
EROFS = "OSError 30"


@pytest.fixture(scope="module")
def result() -> Iterator[dict[str, Any]]:
    with ordinary_folder() as folder:
        certificate(folder, "api.example", "evil.example")
        yield json.loads(run_as_ordinary(CHILD, folder).stdout)


def test_nothing_of_the_machine_is_there_but_a_listed_host(result: dict[str, Any]) -> None:
    """Over TLS, with the person's own certificates; what was reached or refused is known."""
    for met in (result["read"], result["write"], result["offline"]):
        assert met["other host"].startswith("gaierror")
        assert met["loopback"].startswith("ConnectionRefusedError")
        assert met["metadata"].startswith("OSError 101")
        assert met["ssh"].startswith("FileNotFoundError")
        assert met["aileron"] == ["store"]
        assert met["home"] == [".aileron", "work"]
        assert not {"shadow", "hostname", "machine-id", "ssh"} & {*met["etc"]}
        assert met["processes"] == ["/usr/bin/bwrap", "/usr/bin/python3"]
        assert met["parent's environment"] == ""
        assert met["environment"].keys() == {
            "HOME", "LANG", "MODE", "PATH", "PWD", "SSL_CERT_FILE", "TOKEN",
        }  # fmt: skip
        assert met["arguments"] == ["the ${secret.TOKEN}"]
        assert met["namespace"] == 1
        assert (met["unix socket"], met["unix pair"]) == ("OSError 97", 2)
        assert met["descriptors"] == []
        assert met["unlisted"].startswith("FileNotFoundError")
        assert {met[name] for name in ("root", "usr", "tree")} == {EROFS}
        assert met["own home"] == "written"
    port = result["port"]
    assert result["read"]["host"] == result["write"]["host"] == "served"
    api = [f"api.example:{port}"]
    assert result["write"]["reached"] == [api, api, []]  # another call's answer takes none away
    assert ["probe", "evil.example:443", ""] in result["refused"]
    assert result["offline"]["host"].startswith("gaierror")
    assert result["offline"]["reached"] == [[], [], []]


def test_files_are_read_only_for_a_read_and_written_during_calls_alone(
    result: dict[str, Any],
) -> None:
    """What a person's own tools obey stays read-only, is moved away where it is new, and ends a server that made it."""
    writes = {name for name in result["read"] if name.startswith("write ")}
    assert len(writes) == 8
    assert {result["read"][name] for name in writes} == {EROFS}
    assert result["read"]["read"] == "outside"
    assert {name for name in writes if result["write"][name] == "written"} == {
        "write notes", "write new", "write .vscode/tasks.json", "write .vimrc", "write ../plain/.git",
    }  # fmt: skip
    assert {result["write"][name] for name in writes} == {"written", EROFS}
    assert result["notes"] == "from inside"
    assert result["read"]["moved"] == []
    assert [each.split(": ")[1].split(". ")[0] for each in sorted(result["write"]["moved"])] == [
        ".vimrc is new", ".git is new",
    ]  # fmt: skip
    assert result["write"]["left"] == []
    paused = result["paused"]
    assert paused[""] == {
        "pauses": [True, True], "grows": [False, True, False], "resumes": [True, False], "moved": [], "git": True,
    }  # fmt: skip
    (moved,) = paused["git"].pop("moved")
    assert ".git is new. It was moved to" in moved
    ended = {"pauses": [False], "resumes": [False], "git": False}
    assert paused["git"] == {**ended, "grows": [False, False]}
    assert paused["opened"] == {**ended, "grows": [True, True], "moved": []}
    (uncovered,) = paused["saved"].pop("moved")
    assert "paused ('saved',)/.envrc was replaced while the server ran" in uncovered
    saved = {"pauses": [True, False], "grows": [False, True], "resumes": [True], "git": False}
    assert paused["saved"] == saved
    kept = {**ended, "pauses": [True], "grows": [False, False], "moved": []}
    assert paused["kept"] == kept
    assert paused["file"] == {
        "pauses": [True], "grows": [False, True], "resumes": [True], "moved": [], "git": False,
    }  # fmt: skip


def test_a_published_server_lists_its_tools_in_both_modes(result: dict[str, Any]) -> None:
    """It writes in one of them only."""
    if not result["fs"]:
        pytest.skip("`make node` puts it into tests/node/servers")
    read, write = result["fs"]["read"], result["fs"]["write"]
    assert read["tools"] == write["tools"]
    assert {"read_text_file", "edit_file", "write_file"} <= {*read["tools"]}
    assert "EROFS" in read["wrote"]
    assert write["wrote"].startswith("Successfully wrote")


def test_what_cannot_start_says_why_and_a_program_waits_for_a_word(result: dict[str, Any]) -> None:
    """A console that is killed meanwhile leaves no program; where closing raised, calls would wait for ever."""
    why = result["why not"]
    assert why.pop("") == ""
    for reason, sentence in why.items():
        assert reason in sentence
        assert "launch" not in sentence
    assert result["exchanged"].startswith(f"{result['listed']} became another while")
    assert result["unsaid"] is False
    assert result["ended"] == "closed"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can try as root")
def test_roots_console_starts_no_server(tmp_path: Path) -> None:
    boxes = BoxedServers(tmp_path, tmp_path, {}, tree=Path)
    why = boxes.why_not(ServerTable(program=("/usr/bin/true",)))
    assert "runs as root" in why
    assert "--no-sandbox" not in why


def test_a_network_that_was_never_started_has_no_descriptor() -> None:
    """A start that fails before its box is made leaves none."""
    before = [*Path("/proc/self/fd").iterdir()]
    network = HostNetwork(HostList(("api.example:443",)), lambda _: True)
    assert [*Path("/proc/self/fd").iterdir()] == before
    network.stop()


@pytest.mark.real
def test_a_box_ends_with_its_console() -> None:
    """Killed, it can end nothing itself: a server that is deaf, and what it left in the background, end too."""
    with ordinary_folder() as folder:
        certificate(folder, "api.example")
        word = f"\0{folder.name}\0"  # an argument of each process in a box
        command = [*AS_ORDINARY, sys.executable, str(CHILD), str(folder), "killed"]
        env = {**os.environ, OWNS: str(folder)}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as console:
            assert console.stdout
            assert console.stdout.readline() == "running\n"
            assert len(running_with(word)) >= 6
            console.send_signal(signal.SIGKILL)
        eventually(lambda: running_with(word) == [], seconds=5)
