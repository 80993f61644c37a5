"""What a call of an MCP server's tool sends, and what becomes of its answer."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any, cast

import pytest

from aileron_core.canonical import JsonObject
from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.connectors.servers.connector import ServerConnector
from aileron_core.connectors.servers.process import ServerProcesses
from aileron_core.connectors.stop_request import StopRequest
from aileron_core.server.tool_results import run_result
from tests.support.core_harness import PATIENCE, run
from tests.support.mcp_servers import UnboxedServers, connector, notes, table

LIMITS = Limits(wall_seconds=PATIENCE)


def answer(connector: ServerConnector, op: str, wall_seconds: float = PATIENCE) -> OpResult:
    return run(connector.call(op, {"a": [1]}, limits=Limits(wall_seconds=wall_seconds)))


def test_an_agent_gets_the_servers_own_blocks_and_a_preview_what_they_say(
    servers: ServerProcesses, unboxed: UnboxedServers, tmp_path: Path
) -> None:
    source = """
    def call(id, name, args):
        image = {"type": "image", "data": "AAAA" * 3_990_000, "mimeType": "image/png"}
        send(id=id, result={"content": [{"type": "text", "text": json.dumps(args)}, image]})
    """
    unboxed.reached = ("api.example.com:443",)
    small = connector(servers, table(tmp_path, source))
    given, shown = (
        answer(small, "set"),
        run(small.call("get", {"a": [1]}, limits=LIMITS, read_only=True)),
    )
    assert given.failure is None
    assert given.output == {
        "content": [
            {"type": "text", "text": '{"a": [1]}'},
            {"type": "image", "data": "AAAA" * 3_990_000, "mimeType": "image/png"},
        ],
        "isError": False,
    }
    of_image = hashlib.sha256(b"AAAA" * 3_990_000).hexdigest()
    text = f'{{"a": [1]}}\nimage image/png SHA-256 {of_image}'
    assert shown.output == {"json": {"a": [1]}, "text": text}
    assert (given.writes_sent, shown.writes_sent) == (1, 0)
    assert given.hosts_asked == unboxed.reached


NO_GOOD_ANSWER = {
    "it ends": "os._exit(3)",
    "it hangs": "time.sleep(600)",
    "it closes its output": "sys.stdout.flush(); os.close(1); time.sleep(600)",
    "it answers another request": "send(id=7, result=text('done'))",
    "it asks for more": "send(id=id, result={'resultType': 'input_required', 'content': []})",
    "its answer is no result": "send(id=id, result={'done': True})",
    "its answer is no JSON": 'write(\'{"id": %d, "result": \' % id)',
    "its line is too long": "write(json.dumps({'id': id, 'result': text('x' * 2**24)}))",
    "its blocks have too many values": "send(id=id, result={'content': [{'type': 'text', 'text': ''}] * 2 * 10**5})",
    "its result is null": "send(id=id, result=None)",
    "it reports an internal error": "send(id=id, error={'code': -32603, 'message': 'later'})",
}


@pytest.mark.parametrize("does", NO_GOOD_ANSWER.values(), ids=NO_GOOD_ANSWER.keys())
def test_a_gated_request_without_a_good_answer_is_unknown_and_made_once(
    servers: ServerProcesses, tmp_path: Path, does: str
) -> None:
    """What was sent may have had its effect; other calls get a process that does not hang."""
    source = f"""
    def call(id, name, args):
        if name == "get":
            send(id=id, result=text("still here"))
        else:
            {does}
    """
    small = connector(servers, table(tmp_path, source))
    result = answer(small, "set", 2.0 if "hangs" in does or "sleep" in does else PATIENCE)
    assert result.failure is not None
    assert result.is_effect_unknown
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == (1, 1, 1)
    assert answer(small, "get").failure is None
    assert notes(tmp_path).count("call set") == 1


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (
            "error={'code': -32601, 'message': 'no such tool'}",
            "did not run set (error -32601): no such tool",
        ),
        ("error={'code': -32602, 'message': 'wrong'}", "did not run set (error -32602): wrong"),
        ("result=text('the disk is full', isError=True)", "the disk is full"),
    ],
)
def test_what_a_server_says_did_not_work_has_failed(
    servers: ServerProcesses, tmp_path: Path, does: str, said: str
) -> None:
    small = connector(servers, table(tmp_path, f"def call(id, *_): send(id=id, {does})"))
    result = answer(small, "set")
    assert result.failure is not None
    assert said in result.failure.message
    assert not result.is_effect_unknown


def test_a_tool_that_fails_is_passed_on_as_the_server_said_it(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    source = """
    def call(id, name, args):
        image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        reason = {"type": "text", "text": "the disk is full, " * 1_000}
        blocks = [reason, image] if name == "set" else []
        send(id=id, result={"content": blocks, "structuredContent": {"a": 1}, "isError": True})
    """
    small = connector(servers, table(tmp_path, source))
    whole, bare = answer(small, "set").failure, answer(small, "get").failure
    assert whole is not None
    assert bare is not None
    shown = run_result(whole)
    assert shown["isError"] is True
    assert [each["type"] for each in shown["content"]] == ["text", "image"]
    assert len(shown["content"][0]["text"]) == 18_000
    shown = run_result(bare)
    assert shown["structuredContent"] == {"a": 1}
    assert "gave no reason" in shown["content"][0]["text"]


LARGE = """
    def call(id, name, args):
        blocks = [{"type": "text", "text": "x" * 70 + " NaN"}, {"type": "text", "text": '"}, ]'}]
        blocks += [{"type": "text", "text": f"{n} {[]}"} for n in range(args["blocks"])]
        rows = {"rows": [[{}]] * 80_000, "long": "y" * 70, "is": "NaN"} if args["rows"] else None
        first = {"structuredContent": rows, "content" : blocks, "isError": False}
        last = {"content": blocks, "structuredContent" : rows, "after": "z" * 70}
        send(id=id, result=first if args["first"] else last)
"""


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("rows", "blocks", "said"),
    [
        (True, 0, "left out structuredContent of"),
        (False, 90_000, "left out the content after block "),
        (True, 90_000, "left out structuredContent and the content after block "),
    ],
)
def test_of_an_answer_with_many_values_as_many_blocks_as_may_be_are_passed_on(
    servers: ServerProcesses, tmp_path: Path, rows: bool, blocks: int, said: str, first: bool
) -> None:
    """No preview is made of a part. The call has been made, and what is left out is said."""
    small = connector(servers, table(tmp_path, LARGE))
    args: JsonObject = {"rows": rows, "blocks": blocks, "first": first}
    given = run(small.call("set", args, limits=LIMITS))
    assert given.failure is None
    *sent, note = [each["text"] for each in cast("Any", given.output)["content"]]
    assert sent == ["x" * 70 + " NaN", '"}, ]', *(f"{n} []" for n in range(len(sent) - 2))]
    assert bool(blocks) == (5_000 < len(sent) < 90_000)
    assert said in note
    assert (f"after block {len(sent)} " in note) == bool(blocks)
    assert cast("Any", given.output).get("structuredContent") is None
    shown = run(small.call("get", args, limits=LIMITS, read_only=True))
    assert shown.failure is not None
    assert "more than a preview can show" in shown.failure.message


def test_what_is_said_while_the_tools_are_listed_is_read_as_at_any_other_time(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    """Else a large or deep part of an answer would be missing, without a word. A large notice ends no call."""
    source = """
    waits = []

    def call(id, name, args):
        send(method="notifications/tools/list_changed")
        waits.append(id)

    def listing(id, params):
        send(method="notifications/message", params={"data": [[]] * 100_000})
        for each in waits:
            blocks = [{"type": "text", "text": str(id)}, *[{"type": "text", "text": ""}] * 90_000]
            send(id=each, result={"content": blocks})
        waits.clear()
        send(id=id, result={"tools": tools()})
    """
    small = connector(servers, table(tmp_path, source))
    given = run(small.call("get", {}, limits=LIMITS))
    assert given.failure is None
    *_, note = cast("Any", given.output)["content"]
    assert "left out the content after block " in note["text"]


def test_no_preview_is_made_of_a_text_with_too_many_values(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    """Shown as a text, it would be compared by what no person reads."""
    source = """
    def call(id, name, args):
        send(id=id, result=text(json.dumps([[]] * 100_000)))
    """
    small = connector(servers, table(tmp_path, source))
    shown = run(small.call("get", {}, limits=LIMITS, read_only=True))
    assert shown.failure is not None
    assert "more than a preview can show" in shown.failure.message
    assert answer(small, "set").failure is None


def test_an_answer_whose_structured_half_is_null_is_whole(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    source = """
    def call(id, name, args):
        send(id=id, result={"content": [], "structuredContent": None})
    """
    small = connector(servers, table(tmp_path, source))
    shown = run(small.call("get", {}, limits=LIMITS, read_only=True))
    assert (shown.failure, answer(small, "set").output) == (
        None,
        {"content": [], "structuredContent": None, "isError": False},
    )


def test_half_a_character_in_an_answer_is_replaced(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    """JavaScript cuts a text in the middle of one, and writes the half as JSON has it."""
    source = r"""
    def call(id, name, args):
        cut = "\\ud83d " + "x" * 9000 + " \\ude00\\ud83d \\\\ud83d \\ud83d\\ude00"
        write('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "%s"}]}}' % (id, cut))
    """
    given = answer(connector(servers, table(tmp_path, source)), "set")
    assert given.failure is None
    text = cast("Any", given.output)["content"][0]["text"]
    assert text == f"\ufffd {'x' * 9000} \ufffd\ufffd \\ud83d \U0001f600"


def test_a_tool_that_runs_unasked_is_not_called_again_either(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    small = connector(servers, table(tmp_path, "def call(*_): os._exit(0)"))
    result = answer(small, "get")
    assert result.failure is not None
    assert (result.failure.class_, result.failure.retriable) == ("connector_runtime_error", False)
    assert (result.writes_sent, result.is_effect_unknown) == (0, False)
    assert notes(tmp_path).count("call get") == 1


def test_a_server_is_offered_nothing_but_an_answer_to_its_ping(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    source = """
    def call(id, name, args):
        for method in ("ping", "sampling/createMessage", "elicitation/create", "roots/list"):
            send(id=method, method=method, params={})
            reply = read()
            note(f"{reply['id']}: {reply.get('result', reply.get('error', {}).get('code'))}")
        send(id=id, result=text("ok"))
    """
    assert answer(connector(servers, table(tmp_path, source)), "set").failure is None
    assert [each for each in notes(tmp_path) if ": " in each] == [
        "ping: {}",
        "sampling/createMessage: -32601",
        "elicitation/create: -32601",
        "roots/list: -32601",
    ]


def test_a_server_that_refuses_initialize_is_spoken_to_in_the_new_era(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    source = """
    def initialize(id, params):
        send(id=id, error={"code": -32022, "message": "not here"})

    def other(message):
        if message["method"] == "server/discover":
            send(id=message["id"], result={"supportedVersions": ["2026-07-28"], "capabilities": {}})

    def call(id, name, args):
        send(id=id, result=text("ok", resultType="complete"))

    def read():
        message = json.loads(sys.stdin.readline())
        meta = message.get("params", {}).get("_meta", {})
        note(f"{message['method']} in {meta.get('io.modelcontextprotocol/protocolVersion')}")
        return message
    """
    assert answer(connector(servers, table(tmp_path, source)), "set").failure is None
    eras = [each for each in notes(tmp_path) if " in " in each]
    assert eras[0] == "initialize in None"
    assert {each.split(" in ")[0] for each in eras if each.endswith("in 2026-07-28")} == {
        "server/discover",
        "subscriptions/listen",
        "tools/list",
        "tools/call",
    }


@pytest.mark.parametrize("by", ["a stop", "a cancellation"])
def test_a_call_that_is_stopped_is_cancelled_at_the_server_and_unknown(
    servers: ServerProcesses, tmp_path: Path, by: str
) -> None:
    source = """
    def call(id, name, args):
        other = read()
        note(f"{other['method']} of this call: {other['params']['requestId'] == id}")
    """
    small = connector(servers, table(tmp_path, source))

    async def stopped() -> OpResult | None:
        stop, sent = StopRequest(), asyncio.Event()
        loop = asyncio.get_running_loop()
        made = loop.create_task(
            small.call(
                "set",
                {},
                limits=LIMITS,
                stop=stop,
                on_request=lambda: loop.call_soon_threadsafe(sent.set),
            )
        )
        await sent.wait()
        await _noted(tmp_path, "call set")
        if by == "a stop":
            stop.make()
            return await made
        made.cancel()
        with pytest.raises(asyncio.CancelledError):
            await made
        return None

    result = run(stopped())
    assert result is None or (result.is_effect_unknown and result.failure is not None)
    run(_noted(tmp_path, "notifications/cancelled of this call: True"))


async def _noted(folder: Path, line: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while line not in notes(folder):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("word", "is_preview"), [("off", False), ("off", True), ("look", False), ("ask", True)]
)
def test_a_tool_is_used_by_its_word_alone(
    servers: ServerProcesses, unboxed: UnboxedServers, tmp_path: Path, word: Any, is_preview: bool
) -> None:
    small = connector(servers, table(tmp_path, tools={"get": word}))
    result = run(small.call("get", {}, limits=LIMITS, read_only=is_preview))
    assert result.failure is not None
    assert result.failure.class_ == "capability_denied"
    assert unboxed.started == []


def test_a_preview_has_the_structured_half_before_the_text(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    """As data of its own where the text says something else, so that nothing of an answer is unseen."""
    source = """
    def call(id, name, args):
        value = {"content": "as a table"} if args else {"rows": list(range(30_000))}
        send(id=id, result=text("as a table", structuredContent=value))
    """
    small = connector(servers, table(tmp_path, source))
    shown = run(small.call("get", {}, limits=LIMITS, read_only=True))
    rows = {"rows": [*range(30_000)]}
    assert shown.output == {"json": rows, "text": "as a table", "data": rows}
    assert json.dumps(shown.output)
    same = run(small.call("get", {"a": 1}, limits=LIMITS, read_only=True))
    assert same.output == {"json": {"content": "as a table"}, "text": "as a table"}


def test_a_host_that_its_box_refused_is_one_line_of_its_log(
    servers: ServerProcesses, tmp_path: Path
) -> None:
    """The server named it, so it is escaped."""
    run(connector(servers, table(tmp_path)).call("get", {}, limits=LIMITS, read_only=True))
    servers.host_refused("small", "evil.example\n\x1b[2J:443", "")
    servers.host_refused("small", "one.example:443", "its name cannot be resolved")
    written = (tmp_path / "servers" / "small.log").read_text("utf-8")
    first, second = (line.partition(" Aileron: ")[2] for line in written.splitlines())
    assert first.startswith("evil.example")
    assert "\x1b" not in first
    assert first.endswith("was refused: it is not among the server's hosts")
    assert second == "one.example:443 was refused: its name cannot be resolved"
    assert servers.refused_hosts("small").keys() == {"evil.example\n\x1b[2J:443", "one.example:443"}
