"""Who opened a session, from the kernel: kept in the record, whatever its name looks like."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aileron_core.console_port.session_terms import ProcessView
from aileron_core.sessions.processes import Holders, is_ancestor, pids_at, read_process
from tests.support.core_harness import Core

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what /proc says")
HOSTILE = b"ev\x1b[31mil \xff(x) 1 2"


@contextmanager
def program_of(folder: Path, name: bytes = b"agent") -> Iterator[int]:
    place = folder / os.fsdecode(name)
    place.mkdir()
    program = place / os.fsdecode(name)
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"], cwd=place) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_the_kernel_names_program_folder_parents_and_start(tmp_path: Path) -> None:
    """Blanks, parentheses and bytes that are no UTF-8 in names mislead nobody: they are shown in marks."""
    for name, shown in ((b"agent", "agent"), (HOSTILE, "ev\x1b[31mil \\xff(x) 1 2")):
        with program_of(tmp_path, name) as pid:
            found, place = read_process(pid), f"{tmp_path}/{shown}"
            assert (found.pid, found.cwd, found.executable) == (pid, place, f"{place}/{shown}")
            assert found.parents[0] == (os.getpid(), Path("/proc/self/comm").read_text().strip())
            assert 1 <= len(found.parents) <= 8
            assert all(is_ancestor(parent, pid) for parent, _ in found.parents if parent > 1)
            assert abs(time.time() - found.started_at) < 60
            assert ProcessView.from_json(found.to_json()) == found
        assert read_process(pid) is None
    deep = tmp_path.joinpath(*["d" * 200] * 8)
    deep.mkdir(parents=True)
    with program_of(deep) as pid:
        found = read_process(pid)
    assert len(found.cwd) < 1100
    assert found.cwd.endswith(f"… ({len(str(deep / 'agent'))} characters)")


def test_what_another_program_wrote_in_its_place_is_nobody() -> None:
    good = {"pid": 1, "executable": "", "cwd": "", "parents": [], "started_at": 0}
    assert ProcessView.from_json(good) is not None
    for wrong in ({"pid": "x"}, {"parents": [[1]]}, {"started_at": {}}):
        assert ProcessView.from_json({**good, **wrong}) is None, wrong
    assert ProcessView.from_json(None) is ProcessView.from_json({}) is None


async def test_who_opened_it_outlives_a_restart_and_the_session_itself(home: Path) -> None:
    """The console shows after a restart whom the kernel saw at the opening, no one of today."""
    async with Core.open(home) as core:
        mine = core.session.process
        assert mine.pid == os.getpid()
        (record,) = await core.records("session.opened")
        assert record["process"] == mine.to_json()
        (view,) = core.app.publisher.sessions()
        assert (view.process.pid, view.process.parents) == (mine.pid, mine.parents)
        session_id = core.session.session_id
    async with Core.open(home) as core:
        assert core.app.sessions.get(session_id).process == mine
        await core.app.session_service.end(session_id, "it was ended")
    async with Core.open(home) as core:
        assert (await core.app.session_service.load())[session_id].process == mine


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_process_at_the_far_end_of_a_connection_is_found(family: socket.AddressFamily) -> None:
    """Also one that connects over IPv6 to an address of IPv4; none where nobody is connected any more."""
    script = (
        "import socket, sys; client = socket.socket(int(sys.argv[1])); "
        "client.connect((sys.argv[2], int(sys.argv[3]))); sys.stdin.read()"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server: tuple[str, int] = listener.getsockname()
        name = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
        command = [sys.executable, "-I", "-c", script, str(int(family)), name, str(server[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            accepted, client = listener.accept()
            with accepted:
                assert pids_at(client, server) == Holders(frozenset({process.pid}))
                assert pids_at(server, client) == Holders(frozenset({os.getpid()}))
                process.kill()
                process.wait(20)
                assert accepted.recv(1) == b""
                assert pids_at(client, server) == Holders()


def test_a_connection_that_nobody_holds_just_now_is_one_of_ours_that_hides() -> None:
    """It is in a message that its sender has sent to itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ends = client.getsockname(), client.getpeername()
        near, far = socket.socketpair()
        with near, far, client:
            socket.send_fds(near, [b"x"], [client.fileno()])
            client.close()
            found = pids_at(*ends)
            assert not found.seen
            assert os.getpid() not in found.pids
            _, held, *_ = socket.recv_fds(far, 1, 1)
            assert pids_at(*ends) == Holders(frozenset({os.getpid()}))
            os.close(held[0])
