"""The processes of MCP servers: shared, bounded, ended, and what they write."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from aileron_core.clock import SystemClock
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.protocol import Limits, OpResult, RequestToSign
from aileron_core.connectors.servers.process import ServerLog, ServerProcesses, list_tools
from aileron_core.errors import HashMismatch, Unavailable
from tests.support.core_harness import PATIENCE, run
from tests.support.mcp_servers import Unboxed, UnboxedServers, connector, notes, table
from tests.support.processes import eventually

LIMITS = Limits(wall_seconds=PATIENCE)
CHANGED = "The server has changed."


@dataclass(frozen=True)
class Account:
    """An account of the kind `environment`."""

    values: Mapping[str, str]
    kind: str = "environment"
    hosts: tuple[str, ...] = ()

    def headers(self, request: RequestToSign) -> Mapping[str, str]:
        return {}

    def environment(self) -> Mapping[str, str]:
        return self.values

    def secrets(self) -> Sequence[bytes]:
        return [each.encode() for each in self.values.values()]

    def note_answer(self, status: int, body: bytes) -> None:
        pass


def starts(folder: Path) -> list[int]:
    """Return the process ids of the starts that the server noted."""
    return [int(each.split()[1]) for each in notes(folder) if each.startswith("start ")]


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_calls_of_all_sessions_use_one_process_and_no_read_the_one_that_writes(
    servers: ServerProcesses, unboxed: UnboxedServers, tmp_path: Path
) -> None:
    """A server with files has a process for reads besides the one for gated calls."""

    async def many(**more: object) -> list[OpResult]:
        small = table(tmp_path, **more)
        calls = [
            connector(servers, small).call(op, {"n": n}, limits=LIMITS)
            for n, op in enumerate(["get", "set"] * 5)
        ]
        return await asyncio.gather(*calls)

    answers = run(many())
    assert [each.output["content"][0]["text"] for each in answers] == [  # type: ignore[index,call-overload]
        f'{{"n": {n}}}' for n in range(10)
    ]
    assert unboxed.started == ["read"]
    servers.stop_running()
    run(many(files_write=(str(tmp_path),)))
    assert sorted(unboxed.started[1:]) == ["read", "write"]


def test_an_idle_process_ends_and_the_next_call_starts_another(
    unboxed: UnboxedServers, tmp_path: Path
) -> None:
    servers = ServerProcesses(unboxed, idle_seconds=0.2)
    small = connector(servers, table(tmp_path))
    assert run(small.call("get", {}, limits=LIMITS)).failure is None
    wait_until_gone(starts(tmp_path)[0])
    assert run(small.call("get", {}, limits=LIMITS)).failure is None
    assert len(starts(tmp_path)) == 2
    servers.close()


def test_a_process_writes_its_files_during_calls_alone(
    unboxed: UnboxedServers, tmp_path: Path
) -> None:
    """A yes is no leave to write ten minutes later; what it remembers it goes on with."""
    servers = ServerProcesses(unboxed)
    small = connector(servers, table(tmp_path, files_write=(str(tmp_path),)))
    for op in ("get", "set"):
        assert run(small.call(op, {}, limits=LIMITS)).failure is None
    for_reads, for_writes = starts(tmp_path)
    for count in (1, 2):
        eventually(lambda count=count: unboxed.pauses == [for_writes] * count)
        assert run(small.call("set", {}, limits=LIMITS)).failure is None
    eventually(lambda: len(unboxed.pauses) == 3)
    unboxed.can_resume = False  # its files are others now
    result = run(small.call("set", {}, limits=LIMITS))
    assert (result.failure, result.requests_sent) == (None, 1)
    assert not Path(f"/proc/{for_writes}").exists()
    *before, last = starts(tmp_path)
    assert before == [for_reads, for_writes]
    assert notes(tmp_path).count("call set") == 4
    unboxed.can_pause = False  # it has a file open
    assert run(small.call("set", {}, limits=LIMITS)).failure is None
    wait_until_gone(last)
    assert run(small.call("set", {}, limits=LIMITS)).failure is None
    assert len(starts(tmp_path)) == 4
    servers.close()


def test_a_process_that_cannot_be_started_anew_says_why(
    unboxed: UnboxedServers, tmp_path: Path
) -> None:
    servers = ServerProcesses(unboxed)
    source = """
    def call(id, name, args):
        if not os.fork():  # has its standard error open for longer than it lives
            os.setsid()
            time.sleep(10)
            os._exit(0)
        send(id=id, result=text(""))
    """
    small = connector(servers, table(tmp_path, source, files_write=(str(tmp_path),)))
    assert run(small.call("set", {}, limits=LIMITS)).failure is None
    eventually(lambda: unboxed.pauses)
    unboxed.can_resume, unboxed.refusal = False, "The folder is gone."
    failure = run(small.call("set", {}, limits=LIMITS)).failure
    assert failure is not None
    assert failure.message == unboxed.refusal
    servers.close()


def test_what_was_moved_away_after_a_server_is_in_its_log(
    servers: ServerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Unboxed.stop
    monkeypatch.setattr(Unboxed, "stop", lambda self: (*stop(self), ".envrc is new."))
    assert run(connector(servers, table(tmp_path)).call("get", {}, limits=LIMITS)).failure is None
    servers.close()
    assert "Aileron: .envrc is new." in (tmp_path / "servers" / "small.log").read_text()


def test_three_ends_within_a_minute_hold_a_server_until_a_person_releases_it(
    unboxed: UnboxedServers, tmp_path: Path
) -> None:
    held: list[str] = []
    servers = ServerProcesses(unboxed, on_held=held.append)
    small = connector(servers, table(tmp_path, "def call(*_): os._exit(1)"))
    for _ in range(5):
        result = run(small.call("get", {}, limits=LIMITS))
    assert result.failure is not None
    assert (result.failure.class_, result.requests_sent) == ("unavailable", 0)
    assert (len(starts(tmp_path)), held, [*servers.held]) == (3, ["small"], ["small"])
    servers.release("small")
    for _ in range(2):
        run(small.call("get", {}, limits=LIMITS))
    assert len(starts(tmp_path)) == 5
    servers.close()


def test_a_server_that_is_not_in_the_store_as_it_was_accepted_is_not_started_nor_called(
    servers: ServerProcesses, unboxed: UnboxedServers, tmp_path: Path
) -> None:
    is_there = False

    def check() -> None:
        if not is_there:
            raise HashMismatch(CHANGED)

    small = replace(connector(servers, table(tmp_path)), check=check)
    assert run(small.call("set", {}, limits=LIMITS)).failure == HashMismatch(CHANGED).to_failure()
    assert unboxed.started == []
    is_there = True
    assert run(small.call("set", {}, limits=LIMITS)).failure is None
    is_there = False
    assert run(small.call("set", {}, limits=LIMITS)).failure == HashMismatch(CHANGED).to_failure()
    assert notes(tmp_path).count("call set") == 1


def test_a_start_does_not_use_up_a_calls_time(servers: ServerProcesses, tmp_path: Path) -> None:
    source = """
    def initialize(id, params, known=initialize):
        time.sleep(1.2)
        known(id, params)
    """
    small = connector(servers, table(tmp_path, source))
    assert run(small.call("set", {}, limits=Limits(wall_seconds=1))).failure is None


def test_a_flood_is_read_later_and_delays_no_one_else(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    """More than 2,000 unasked messages a second wait in the server's pipe."""
    source = """
    def call(id, name, args):
        for n in range(5_000 if name == "set" else 0):
            send(method="notifications/message", params={"level": "info", "data": n})
        send(id=id, result=text("ok"))
    """
    small = connector(servers, table(tmp_path, source))

    async def flooded() -> tuple[float, int]:
        await small.call("get", {}, limits=LIMITS)
        began, turns = time.monotonic(), 0
        call = asyncio.get_running_loop().create_task(small.call("set", {}, limits=LIMITS))
        while not call.done():
            await asyncio.sleep(0.005)
            turns += 1
        assert (await call).failure is None
        return time.monotonic() - began, turns

    took, turns = run(flooded())
    assert took >= 2.0
    assert turns >= 20  # of about 400; of a loop that had to wait for the reading, 3


def test_a_secret_with_a_letter_written_by_its_number_is_removed_too(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    r"""Some encoders write `=` as `\u003d`."""
    source = r"""
    def call(id, name, args):
        send(id=id, result=text("used TOKEN"))

    def write(value, known=write):
        known(value.replace("TOKEN", os.environ["TOKEN"].replace("=", "\\u003d").replace("2", "\\u0032")))
    """
    with_word = connector(servers, table(tmp_path, source, secrets=("TOKEN",)))
    account = Account({"TOKEN": "hunter2-hunter=="})
    answer = run(with_word.call("set", {}, limits=LIMITS, credential=account))
    assert answer.output == {
        "content": [{"type": "text", "text": "used [removed]"}],
        "isError": False,
    }


def test_a_servers_last_lines_are_in_its_log_escaped_and_without_its_secret(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    source = r"""
    def call(id, name, args):
        print("\x1b[2Jtoken " + os.environ["TOKEN"], file=sys.stderr, flush=True)
        send(id=id, result=text("used " + os.environ["TOKEN"] + " and " + sys.argv[1]))
    """
    needs = table(tmp_path, source, secrets=("TOKEN",))
    given = replace(needs, program=(*needs.program, "${secret.TOKEN}"))
    with_word = connector(servers, given)
    account = Account({"TOKEN": "hunter2-hunter2"})
    answer = run(with_word.call("set", {}, limits=LIMITS, credential=account))
    assert answer.output == {
        "content": [{"type": "text", "text": "used [removed] and [removed]"}],
        "isError": False,
    }
    run(with_word.call("set", {}, limits=LIMITS, credential=Account({"TOKEN": "another-one"})))
    assert len(starts(tmp_path)) == 2
    servers.close()
    log = tmp_path / "servers" / "small.log"
    assert log.stat().st_mode & 0o777 == 0o600
    lines = log.read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["‹ESC›[2Jtoken [removed]"] * 2
    without = run(with_word.call("set", {}, limits=LIMITS))
    assert without.failure is not None
    assert without.failure.class_ == "binding_required"


def test_an_answer_that_is_nested_too_deeply_is_the_servers_fault(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    source = """
    def call(id, name, args):
        write('{"jsonrpc":"2.0","id":%d,"result":' % id + '{"a":' * 5000 + "1" + "}" * 5001)
    """
    result = run(connector(servers, table(tmp_path, source)).call("set", {}, limits=LIMITS))
    assert result.failure is not None
    assert "sent a message that is no JSON, or nested too deeply" in result.failure.message


@pytest.mark.parametrize("before", ["x" * 2028, "x" * 2028 + "\\n", "x" * 2048])
def test_no_part_of_a_secret_is_in_a_log_where_a_line_is_cut_or_read_in_two(
    servers: ServerProcesses, tmp_path: Path, before: str
) -> None:
    source = f"""
    def call(id, name, args):
        at = len(os.environ["TOKEN"]) // 2
        for part in ("{before}" + os.environ["TOKEN"][:at], os.environ["TOKEN"][at:] + "{before}\\n"):
            sys.stderr.write(part)
            sys.stderr.flush()
            time.sleep(0.1)
        send(id=id, result=text("done"))
    """
    small = connector(servers, table(tmp_path, source, secrets=("TOKEN",)))
    account = Account({"TOKEN": "hunter2-hunter2-hunter2"})
    assert run(small.call("get", {}, limits=LIMITS, credential=account)).failure is None
    servers.close()
    said = (tmp_path / "servers" / "small.log").read_text()
    assert "hunter" not in said
    assert "[removed]" in "".join(line.split(" ", 1)[1] for line in said.splitlines())
    assert said.count("x") == 2 * before.count("x")


def test_a_log_has_at_most_4_mib(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "logs" / "small.log", Scrubber(()), SystemClock())
    for number in range(100):
        log.write(b"%d " % number + b"x" * 64 * 1024)
    log.close()
    log.write(b"later")
    path = tmp_path / "logs" / "small.log"
    assert path.stat().st_size <= 4 * 1024 * 1024
    lines = path.read_text().splitlines()
    assert "deleted" in lines[0]
    assert lines[-1].split()[1] == "99"


def test_a_servers_close_ends_what_hears_nothing(unboxed: UnboxedServers, tmp_path: Path) -> None:
    servers = ServerProcesses(unboxed)
    source = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def read():
        line = sys.stdin.readline()
        return json.loads(line) if line else time.sleep(600)
    """
    small = connector(servers, table(tmp_path, source))
    assert run(small.call("get", {}, limits=LIMITS)).failure is None
    servers.close()
    assert not Path(f"/proc/{starts(tmp_path)[0]}").exists()
    late = run(small.call("get", {}, limits=LIMITS))
    assert late.failure is not None
    assert late.failure.class_ == "unavailable"


def test_a_server_is_listed_once_for_the_person_or_shown_with_its_last_lines(
    unboxed: UnboxedServers, tmp_path: Path
) -> None:
    tools = list_tools(unboxed, "small", table(tmp_path))
    assert [each.name for each in tools] == ["get", "set"]
    wait_until_gone(starts(tmp_path)[0])
    with pytest.raises(Unavailable, match=r"It said last:\n\x1b\[1mno token"):
        list_tools(
            unboxed, "small", table(tmp_path, r"def initialize(*_): sys.exit('\x1b[1mno token')")
        )
