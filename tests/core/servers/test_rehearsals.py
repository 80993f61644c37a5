"""Calls of an MCP server that are rehearsed: by a real server, in real boxes, as an ordinary user."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from aileron_core.connectors.builtin.channel import ToolChannels
from aileron_core.connectors.builtin.rehearsed_command import RehearsedCommand
from aileron_core.connectors.protocol import MAX_DEPTH, is_deeper_than
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.rehearsal import Rehearsals, RehearsingConnector
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.errors import Unavailable
from tests.support.ordinary import give
from tests.support.processes import alive, eventually, with_descendants
from tests.support.rehearsed_server import RehearsedServer, rehearsed_server
from tests.support.variants import needs_bubblewrap

pytestmark = needs_bubblewrap

FILES = {"a.txt": "one\n", ".envrc": "mine\n", ".git/config": "[core]\n", "d/b.txt": "b\n"}
READ = {"op": "read", "args": {"path": "${args.path}"}}


@pytest.fixture(scope="module")
def shared_server() -> Iterator[RehearsedServer]:
    with rehearsed_server(FILES) as made:
        yield made


@pytest.fixture
def server(shared_server: RehearsedServer) -> RehearsedServer:
    """With the files as they were at first."""
    for name, text in FILES.items():
        (shared_server.project / name).write_text(text)
    return shared_server


def test_a_yes_makes_what_was_rehearsed_and_undo_takes_it_back(server: RehearsedServer) -> None:
    """The agent gets the rehearsed answer; what the server leaves in its own home is nobody's."""
    before = server.tree()
    call = server.call("append", path="a.txt", text="two\n")
    shown = call.preview()["output"]
    assert shown["rehearsal"].startswith("The tool answered.")
    assert (shown["text"], shown["changes"]) == ("a.txt has 8 bytes", ["changed a.txt"])
    assert shown["diff"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n"
    assert server.tree() == before
    done = call.commit()
    assert done["output"]["content"] == [{"type": "text", "text": "a.txt has 8 bytes"}]
    assert server.tree() == {**before, "a.txt": "one\ntwo\n"}
    assert (server.undo(done), server.tree()) == ({}, before)
    assert "append is called ‹ESC›[2J\n" in (server.home / "servers" / "notes.log").read_text()


def test_it_is_not_called_again_while_what_it_changed_is_as_it_was(server: RehearsedServer) -> None:
    """Two runs differ: each recheck would have read as a change."""
    call = server.call("stamp", path="a.txt")
    shown = call.preview()["output"]
    assert (call.preview()["output"], call.commit()["failure"]) == (shown, None)
    assert f"+{server.tree()['a.txt']}" in shown["diff"]


def test_what_changed_meanwhile_is_kept_and_shown_rehearsed_anew(server: RehearsedServer) -> None:
    call = server.call("append", path="a.txt", text="two\n")
    call.preview()
    (server.project / "a.txt").write_text("another\n")
    assert (call.commit()["failure"]["class_"], server.tree()["a.txt"]) == ("conflict", "another\n")
    assert call.commit()["failure"]["class_"] == "conflict", "nor is it called for real"
    assert "+two" in call.preview()["output"]["diff"]
    assert " another" in call.preview()["output"]["diff"]
    call.commit()
    assert server.tree()["a.txt"] == "another\ntwo\n"


def test_a_tool_that_fails_changes_nothing_and_its_agent_is_told(server: RehearsedServer) -> None:
    before = server.tree()
    call = server.call("fail", path="a.txt")
    assert call.preview()["output"]["text"] == "there is no room"
    done = call.commit()
    assert (done["failure"]["message"], done["writes_unanswered"]) == ("there is no room", 0)
    assert server.tree() == before


@pytest.mark.parametrize("path", [".envrc", ".git/config"])
def test_what_a_persons_own_tools_obey_is_read_only(server: RehearsedServer, path: str) -> None:
    shown = server.call("append", path=path, text="evil\n").preview()
    assert "Read-only file system" in shown["output"]["text"]


def test_a_new_file_that_a_persons_own_tools_would_obey_is_refused(server: RehearsedServer) -> None:
    before = server.tree()
    call = server.call("append", path=".vimrc", text="evil\n")
    for done in (call.preview(), call.preview(), call.commit()):
        assert done["failure"]["class_"] == "forbidden"
    assert server.tree() == before


@pytest.mark.parametrize(
    ("tool", "code", "why"),
    [
        ("connect", "", "It opens a network socket (IPv4)"),
        ("large", "", "The server answered nonsense, or over the 256 KiB"),
        ("leave", "", "The server ended before it answered tools/call"),
        ("do", "os.kill(os.getppid(), 9)", "The server answered nonsense"),
        ("do", "os.link(at, f'{at}2')", "It gives a.txt a second name"),
        ("do", "at.chmod(0o4755)", "It gives a.txt the rights of its owner"),
        ("do", "os.makedirs(at.parent / 'd/.git/hooks')", "It changes d/.git, a repository"),
    ],
)
def test_a_server_that_keeps_its_call_from_being_rehearsed_is_not_called_for_real(
    server: RehearsedServer, tool: str, code: str, why: str
) -> None:
    """There, no rule of a rehearsal would hold."""
    before = server.tree()
    call = server.call(tool, path="a.txt", code=code)
    for done in (call.preview(), call.preview(), call.commit()):
        assert done["failure"]["class_"] == "forbidden"
        assert done["failure"]["message"].startswith(why)
    assert server.tree() == before


def test_what_cannot_be_rehearsed_is_shown_by_the_servers_own_read_and_called_for_real() -> None:
    with rehearsed_server(FILES, write=("a.txt",), previews={"append": READ}) as server:
        call = server.call("append", path="a.txt", text="x")
        shown = call.preview()["output"]
        assert shown["rehearsal"].startswith("Not rehearsed. ")
        assert "is a single file" in shown["rehearsal"]
        assert shown["now"]["args"] == {"path": "a.txt"}
        assert call.commit()["output"]["for real"] == "append"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to another group")
def test_what_belongs_to_another_group_is_called_for_real(server: RehearsedServer) -> None:
    """The kernel copies no file whose group is not there in the box."""
    server.told()  # it has begun, and the folder is its own
    group = server.project.stat().st_gid
    os.chown(server.project, -1, 0)
    try:
        call = server.call("append", path="a.txt", text="two\n")
        shown = call.preview()["output"]
        assert "belongs to another group" in shown["rehearsal"]
        assert "Approving calls the tool for real." in shown["rehearsal"]
        assert call.commit()["output"]["for real"] == "append"
    finally:
        os.chown(server.project, -1, group)


def test_a_server_cannot_write_what_is_taken_for_its_answer(server: RehearsedServer) -> None:
    """Else it had a person see, and its agent get, what no rehearsal of the tool that was accepted has said."""
    code = "at.write_text('x'); os.open(f'/proc/{os.getppid()}/fd/1', os.O_WRONLY)"
    shown = server.call("do", path="a.txt", code=code).preview()["output"]
    assert "Permission denied" in shown["text"]


def test_a_rehearsal_whose_output_is_nonsense_is_dropped() -> None:
    """It would hold, under the answer of the rehearsal before."""
    answer = '{"listed": [], "answer": %s}'
    no_number = answer % '{"result": {"content": [], "structuredContent": NaN}}'
    deep = answer % f'{{"result": {"[" * 201}{"]" * 201}}}'
    for printed in ("", "[]", "null", answer % 5, "[" * 100_000, no_number, deep):
        command = RehearsedCommand(cast("Any", None))
        command.found = {"stdout": printed}
        made = RehearsingConnector(cast("Any", None), cast("Any", None))
        made._take_answer(cast("Any", None), command)
        assert command.found["fallback"].startswith("The server answered nonsense"), printed


@pytest.mark.parametrize(
    ("said", "kept"),
    [("'a\\ud83d'", "a\ufffd"), ("'[' * 250 + ']' * 250", "[" * 250 + "]" * 250)],
    ids=["half a character", "deep"],
)
def test_no_answer_hides_what_it_changed(server: RehearsedServer, said: str, kept: str) -> None:
    """Else a person would approve a change that they do not see, and its agent get no answer."""
    call = server.call("do", path="a.txt", code=f"at.write_text('x'); said = {said}")
    shown = call.preview()["output"]
    assert (shown["changes"], shown["text"]) == (["changed a.txt"], kept)
    assert not is_deeper_than(MAX_DEPTH, shown)
    assert call.commit()["output"]["content"] == [{"type": "text", "text": kept}]


def test_a_tool_that_is_another_one_is_not_called(server: RehearsedServer) -> None:
    """Others of the same server are."""
    before = server.tree()
    call = server.call("drift", path="a.txt", text="two\n")
    for done in (call.preview(), call.commit()):
        assert done["failure"]["class_"] == "hash_mismatch"
    assert (server.told()[-1], server.tree()) == ("differs", before)
    assert server.call("append", path="a.txt", text="x").preview()["failure"] is None


def test_a_call_that_has_ended_keeps_nothing(server: RehearsedServer) -> None:
    call = server.call("append", path="a.txt", text="two\n")
    call.preview()
    server.ask(end=call.number)
    assert "not kept any more" in call.commit()["failure"]["message"]
    assert server.tree() == FILES


def test_a_server_of_the_new_era_on_one_folder_of_several_and_a_listed_name() -> None:
    with rehearsed_server(FILES, write=(".", ".git", "d"), env={"REFUSES": "1"}) as server:
        for path in ("d/b.txt", ".git/config"):
            call = server.call("append", path=path, text="x\n")
            (change,) = call.preview()["output"]["changes"]
            assert change.endswith(f"changed {path}")
            assert call.commit()["failure"] is None
            assert server.tree()[path] == f"{FILES[path]}x\n"


def test_a_worker_that_is_killed_commits_nothing_and_the_next_rehearses_again() -> None:
    with rehearsed_server(FILES) as server:
        call, other = (server.call("append", path="a.txt", text="two\n") for _ in range(2))
        shown = call.preview()["output"]
        assert other.preview()["output"] == shown
        pids = with_descendants({server.process.pid})
        commands = {each: Path(f"/proc/{each}/cmdline").read_bytes() for each in pids}
        bwrap = [each for each, line in commands.items() if line.startswith(b"/usr/bin/bwrap")]
        os.kill(min(bwrap), signal.SIGKILL)
        eventually(lambda: not {*bwrap} & alive())
        assert call.commit()["failure"]["class_"] in ("unavailable", "outcome_unknown")
        assert (server.tree(), server.told()) == (FILES, ["ended"])
        assert (other.preview()["output"], other.commit()["failure"]) == (shown, None)
        assert server.tree()["a.txt"] == "one\ntwo\n"


def test_a_folder_that_was_replaced_is_rehearsed_as_it_is_now() -> None:
    """The mount of the old one would have shown, and got, what no path leads to any more."""
    with rehearsed_server(FILES) as server:
        call = server.call("append", path="a.txt", text="two\n")
        call.preview()
        server.project.rename(server.home / "old")
        shutil.copytree(server.home / "old", server.project)
        give(server.project)
        (server.project / "a.txt").write_text("another\n")
        assert " another\n+two\n" in call.preview()["output"]["diff"]
        call.commit()
        assert server.tree()["a.txt"] == "another\ntwo\n"


def test_nothing_is_left_when_the_console_is_killed() -> None:
    with rehearsed_server(FILES) as server:
        server.call("append", path="a.txt", text="two\n").preview()
        pids = with_descendants({server.process.pid})
        assert len(pids) > 2
        server.process.kill()
        eventually(lambda: not pids & alive(), f"the end of {pids}", seconds=5)


async def test_a_server_that_is_not_accepted_any_more_starts_no_worker(tmp_path: Path) -> None:
    """A call that waited may look again: only what was accepted is run."""
    boxes = BoxedServers(tmp_path, tmp_path, {}, tree=Path)
    rehearsals = Rehearsals(
        "notes", ServerTable(program=("/bin/true",)), (), boxes=boxes, home=tmp_path,
        channels=ToolChannels(), differs=lambda _: None, ended=lambda _: None,
    )  # fmt: skip
    await rehearsals.close()
    with pytest.raises(Unavailable, match="not accepted any more"):
        await rehearsals.worker()
