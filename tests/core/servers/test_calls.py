"""What a call of an MCP server's tool sends, and what becomes of its answer."""

import asyncio
import hashlib
import json
from typing import Any, cast

import pytest

from aileron_core.canonical import JsonObject
from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.connectors.stop_request import StopRequest
from aileron_core.server.tool_results import run_result
from tests.core.servers.conftest import LIMITS, Small
from tests.support.core_harness import PATIENCE, run
from tests.support.guests import failed, output
from tests.support.mcp_servers import UnboxedServers


def test_an_agent_gets_the_servers_own_blocks_and_a_preview_what_they_say(
    small: Small, unboxed: UnboxedServers
) -> None:
    image = {"type": "image", "data": "AAAA" * 3_990_000, "mimeType": "image/png"}
    source = """
    def call(id, name, args):
        image = {"type": "image", "data": "AAAA" * 3_990_000, "mimeType": "image/png"}
        send(id=id, result={"content": [{"type": "text", "text": json.dumps(args)}, image]})
    """
    unboxed.reached = ("api.example.com:443",)
    given = small.runs(source).call("set", args={"a": [1]})
    shown = small.call("get", args={"a": [1]}, read_only=True)
    text = {"type": "text", "text": '{"a": [1]}'}
    assert output(given) == {"content": [text, image], "isError": False}
    of_image = hashlib.sha256(b"AAAA" * 3_990_000).hexdigest()
    said = f'{{"a": [1]}}\nimage image/png SHA-256 {of_image}'
    assert shown.output == {"json": {"a": [1]}, "text": said}
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
def test_a_gated_request_without_answer_is_unknown_and_made_once(small: Small, does: str) -> None:
    """What was sent may have had its effect; other calls get a process that does not hang."""
    source = f"""
    def call(id, name, args):
        if name == "get":
            send(id=id, result=text("still here"))
        else:
            {does}
    """
    limits = Limits(wall_seconds=2.0) if "hangs" in does or "sleep" in does else LIMITS
    result = small.runs(source).call("set", limits)
    assert failed(result)
    assert result.is_effect_unknown
    assert (result.requests_sent, result.writes_sent, result.writes_unanswered) == (1, 1, 1)
    assert small.call("get").failure is None
    assert small.notes().count("call set") == 1


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("error={'code': -32601, 'message': 'gone'}", "did not run set (error -32601): gone"),
        ("error={'code': -32602, 'message': 'wrong'}", "did not run set (error -32602): wrong"),
        ("result=text('the disk is full', isError=True)", "the disk is full"),
    ],
)
def test_what_a_server_says_did_not_work_has_failed(small: Small, does: str, said: str) -> None:
    result = small.runs(f"def call(id, *_): send(id=id, {does})").call("set")
    assert said in failed(result).message
    assert not result.is_effect_unknown


def test_a_tool_that_fails_is_passed_on_as_the_server_said_it(small: Small) -> None:
    source = """
    def call(id, name, args):
        image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        reason = {"type": "text", "text": "the disk is full, " * 1_000}
        blocks = [reason, image] if name == "set" else []
        send(id=id, result={"content": blocks, "structuredContent": {"a": 1}, "isError": True})
    """
    shown = run_result(failed(small.runs(source).call("set")))
    assert shown["isError"] is True
    assert [each["type"] for each in shown["content"]] == ["text", "image"]
    assert len(shown["content"][0]["text"]) == 18_000
    shown = run_result(failed(small.call("get")))
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
    small: Small, rows: bool, blocks: int, said: str, first: bool
) -> None:
    """No preview is made of a part. The call has been made, and what is left out is said."""
    args: JsonObject = {"rows": rows, "blocks": blocks, "first": first}
    given = output(small.runs(LARGE).call("set", args=args))
    *sent, note = [each["text"] for each in given["content"]]
    assert sent == ["x" * 70 + " NaN", '"}, ]', *(f"{n} []" for n in range(len(sent) - 2))]
    assert bool(blocks) == (5_000 < len(sent) < 90_000)
    assert said in note
    assert (f"after block {len(sent)} " in note) == bool(blocks)
    assert given.get("structuredContent") is None
    shown = failed(small.call("get", args=args, read_only=True))
    assert "more than a preview can show" in shown.message


def test_what_is_said_while_the_tools_are_listed_is_read_as_at_any_other_time(small: Small) -> None:
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
    *_, note = output(small.runs(source).call("get"))["content"]
    assert "left out the content after block " in note["text"]


def test_no_preview_is_made_of_a_text_with_too_many_values(small: Small) -> None:
    """Shown as a text, it would be compared by what no person reads."""
    small.runs("def call(id, *_): send(id=id, result=text(json.dumps([[]] * 100_000)))")
    assert "more than a preview can show" in failed(small.call("get", read_only=True)).message
    assert small.call("set").failure is None


def test_an_answer_whose_structured_half_is_null_is_whole(small: Small) -> None:
    whole: dict[str, Any] = {"content": [], "structuredContent": None}
    small.runs(f"def call(id, *_): send(id=id, result={whole})")
    assert small.call("get", read_only=True).failure is None
    assert small.call("set").output == {**whole, "isError": False}


def test_half_a_character_in_an_answer_is_replaced(small: Small) -> None:
    """JavaScript cuts a text in the middle of one, and writes the half as JSON has it."""
    source = r"""
    def call(id, name, args):
        cut = "\\ud83d " + "x" * 9000 + " \\ude00\\ud83d \\\\ud83d \\ud83d\\ude00"
        write('{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "%s"}]}}' % (id, cut))
    """
    text = output(small.runs(source).call("set"))["content"][0]["text"]
    assert text == f"\ufffd {'x' * 9000} \ufffd\ufffd \\ud83d \U0001f600"


def test_a_tool_that_runs_unasked_is_not_called_again_either(small: Small) -> None:
    result = small.runs("def call(*_): os._exit(0)").call("get")
    assert (failed(result).class_, failed(result).retriable) == ("connector_runtime_error", False)
    assert (result.writes_sent, result.is_effect_unknown) == (0, False)
    assert small.notes().count("call get") == 1


def test_a_server_is_offered_nothing_but_an_answer_to_its_ping(small: Small) -> None:
    methods = ("sampling/createMessage", "elicitation/create", "roots/list")
    source = f"""
    def call(id, name, args):
        for method in {("ping", *methods)}:
            send(id=method, method=method, params={{}})
            reply = read()
            note(f"{{reply['id']}}: {{reply.get('result', reply.get('error', {{}}).get('code'))}}")
        send(id=id, result=text("ok"))
    """
    assert small.runs(source).call("set").failure is None
    answered = [each for each in small.notes() if ": " in each]
    assert answered == ["ping: {}", *(f"{method}: -32601" for method in methods)]


def test_a_server_that_refuses_initialize_is_spoken_to_in_the_new_era(small: Small) -> None:
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
    assert small.runs(source).call("set").failure is None
    eras = [each for each in small.notes() if " in " in each]
    assert eras[0] == "initialize in None"
    new = {each.split(" in ")[0] for each in eras if each.endswith("in 2026-07-28")}
    assert new == {"server/discover", "subscriptions/listen", "tools/list", "tools/call"}


@pytest.mark.parametrize("by", ["a stop", "a cancellation"])
def test_a_stopped_call_is_cancelled_at_the_server_and_unknown(small: Small, by: str) -> None:
    source = """
    def call(id, name, args):
        other = read()
        note(f"{other['method']} of this call: {other['params']['requestId'] == id}")
    """
    small.runs(source)

    async def stopped() -> OpResult | None:
        stop, sent = StopRequest(), asyncio.Event()
        loop = asyncio.get_running_loop()
        options = {"stop": stop, "on_request": lambda: loop.call_soon_threadsafe(sent.set)}
        call = small.connector.call("set", {}, limits=LIMITS, **cast("Any", options))
        made = loop.create_task(call)
        await sent.wait()
        await noted("call set")
        if by == "a stop":
            stop.make()
            return await made
        made.cancel()
        with pytest.raises(asyncio.CancelledError):
            await made
        return None

    async def noted(line: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while line not in small.notes():
                await asyncio.sleep(0.01)

    result = run(stopped())
    assert result is None or (result.is_effect_unknown and result.failure is not None)
    run(noted("notifications/cancelled of this call: True"))


@pytest.mark.parametrize(
    ("word", "is_preview"), [("off", False), ("off", True), ("look", False), ("ask", True)]
)
def test_a_tool_is_used_by_its_word_alone(
    small: Small, unboxed: UnboxedServers, word: Any, is_preview: bool
) -> None:
    result = small.runs(tools={"get": word}).call("get", read_only=is_preview)
    assert (failed(result).class_, unboxed.started) == ("capability_denied", [])


def test_a_preview_has_the_structured_half_before_the_text(small: Small) -> None:
    """As data of its own where the text says something else, so that nothing of an answer is unseen."""
    source = """
    def call(id, name, args):
        value = {"content": "as a table"} if args else {"rows": list(range(30_000))}
        send(id=id, result=text("as a table", structuredContent=value))
    """
    shown = small.runs(source).call("get", read_only=True)
    rows = {"rows": [*range(30_000)]}
    assert shown.output == {"json": rows, "text": "as a table", "data": rows}
    assert json.dumps(shown.output)
    same = small.call("get", args={"a": 1}, read_only=True)
    assert same.output == {"json": {"content": "as a table"}, "text": "as a table"}


def test_a_host_that_its_box_refused_is_one_line_of_its_log(small: Small) -> None:
    """The server named it, so it is escaped."""
    small.call("get", read_only=True)
    hostile = "evil.example\n\x1b[2J:443"
    small.servers.host_refused("small", hostile, "")
    small.servers.host_refused("small", "one.example:443", "its name cannot be resolved")
    written = (small.folder / "servers" / "small.log").read_text("utf-8")
    first, second = (line.partition(" Aileron: ")[2] for line in written.splitlines())
    assert (first.startswith("evil.example"), "\x1b" in first) == (True, False)
    assert first.endswith("was refused: it is not among the server's hosts")
    assert second == "one.example:443 was refused: its name cannot be resolved"
    assert small.servers.refused_hosts("small").keys() == {hostile, "one.example:443"}
