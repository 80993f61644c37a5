"""MCP frames from either side: any JSON is a message or none, any answer of the console is a tool result."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from aileron_core.errors import Failure, InvalidArguments
from aileron_core.server import tool_results
from aileron_mcp.relay import messages
from tests.fast.property.mcp_messages import TEXT
from tests.support.any_values import json_values

JSON = json_values(TEXT, st.integers() | st.floats(allow_nan=False))
STATES = st.sampled_from(
    ["pending_approval", "completed", "denied", "expired", "withdrawn", "failed", "unknown"]
)
FAILURES = st.fixed_dictionaries(
    {"class": TEXT, "message": TEXT, "audit_id": TEXT, "retriable": st.booleans(),
     "boundary": TEXT, "details": st.dictionaries(TEXT, JSON)}
)  # fmt: skip
REFUSALS = st.builds(Failure, class_=TEXT, message=TEXT, details=st.dictionaries(TEXT, JSON))
OUTPUTS = {"output": JSON, "steps": st.dictionaries(TEXT, JSON)}
DONE = st.fixed_dictionaries({"status": st.just("completed"), "audit_id": TEXT}, optional=OUTPUTS)
PENDING = st.fixed_dictionaries(
    {"status": st.just("pending_approval")}
    | dict.fromkeys(["approval_id", "review_url", "message", "audit_id"], TEXT)
    | {"expires_at": st.none() | TEXT}
)
RESULTS = st.fixed_dictionaries(
    {"status": STATES} | dict.fromkeys(["approval_id", "action", "audit_id", "requested_at"], TEXT)
     | {"expires_at": st.none() | TEXT},
    optional=OUTPUTS | {"completed_steps": st.lists(TEXT, max_size=3),
                        "digest_words": st.lists(TEXT, min_size=3, max_size=3),
                        "reason": st.none() | TEXT, "failure": st.none() | FAILURES},
)  # fmt: skip
MESSAGES = st.fixed_dictionaries(
    {"id": st.integers() | TEXT, "method": st.sampled_from(["tools/call", "tools/list", "\n"]) | TEXT},
    optional={"jsonrpc": JSON, "params": JSON | st.fixed_dictionaries({"name": JSON, "_meta": JSON})},
)  # fmt: skip


def is_result(result: Any) -> None:
    (content,) = result["content"]
    assert content["type"] == "text"
    assert isinstance(content["text"], str)
    assert isinstance(result["isError"], bool)
    assert isinstance(result["structuredContent"], dict)
    assert isinstance(result["structuredContent"]["status"], str)
    json.dumps(result, ensure_ascii=False).encode()


@given(DONE | PENDING, REFUSALS)
def test_any_answer_to_a_call_and_any_refusal_is_a_tool_result(answer: Any, no: Failure) -> None:
    is_result(tool_results.run_result(answer))
    is_result(tool_results.run_result(no))


@given(RESULTS, st.none() | PENDING)
def test_however_an_approval_stands_it_is_a_tool_result(body: Any, asked: Any) -> None:
    is_result(tool_results.approval_result(body, asked))
    is_result(tool_results.withdrawal_result(body))


@given(st.dictionaries(st.sampled_from(["approval_id", "wait_seconds", "x"]), JSON), st.booleans())
@example({"approval_id": "act-20260101T000000-0123456789abcdef", "wait_seconds": 1e308}, True)
@example({"approval_id": "act-20260101T000000-0123456789abcdef", "wait_seconds": 5.0}, True)
def test_any_arguments_of_our_own_tools_are_a_query_or_problems(args: Any, may_wait: bool) -> None:
    try:
        query = tool_results.parse_status_query(args, may_wait=may_wait)
    except InvalidArguments as error:
        problems = error.details["problems"]
    else:
        assert 0 <= query.wait_seconds <= 60
        return
    assert problems
    assert all(p["argument"] and p["problem"] for p in problems)


@given(st.one_of(st.binary(max_size=200), JSON.map(lambda value: json.dumps(value).encode())))
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"\xff\xfe{}")
@example(b"1" * 10_000)
def test_any_line_is_a_message_or_none(line: bytes) -> None:
    found = messages.parse_object(line)
    assert isinstance(found, dict)
    assert isinstance(messages.error_reason(found, 500), str)


@given(MESSAGES)
def test_any_request_becomes_headers_that_hold_one_line_each(message: dict[str, Any]) -> None:
    call = messages.Call(message, json.dumps(message).encode())
    assert json.loads(call.key) == message["id"]
    for name, value in (call.new_era_headers() | call.retry_headers()).items():
        assert (name + value).isprintable()
        assert (name + value).isascii()
    assert messages.lost_response(call, "why")["error"]["message"].startswith("why")
    call.may_have_run = True
    is_result(messages.lost_response(call, "why")["result"])
