"""An agent's request and what is done with it, and requests of our own."""

import json
import subprocess
import sys
from typing import Any

import pytest

from aileron_core.errors import ModelFormatError
from aileron_core.models import ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, FORMATS, OPENAI_RESPONSES
from aileron_core.models.format import Format, write_body
from aileron_core.models.neutral import Tool, ToolResult
from tests.support.scripted_answers import STREAM, WHOLE, Said, Turn, say_call, sse

each_format = pytest.mark.parametrize("name", sorted(FORMATS))
Json = dict[str, Any]
SCHEMA: Json = {"type": "object", "properties": {"to": {"type": "string"}}}
DRAFT = Tool(name="send_draft", description="Send *it*.", schema=SCHEMA)
READ = Tool(name="read", description="Read.", schema={"type": "object"})
CALLS = (say_call("read", {"a": 1}, "c1"), say_call("send_draft", {}, "c2"))
TURN = Turn(1, (Said("thinking", ("so",)), *CALLS))
REFUSED = ToolResult(call_id="c2", text="no", is_error=True)
RESULTS = [ToolResult(call_id="c1", text="ok"), REFUSED]


def conversation(format_: Format) -> Json:
    answer = format_.answer_of(WHOLE[format_.name](TURN))
    history = [format_.user("?"), *format_.turn(answer), *format_.results(RESULTS)]
    asked = format_.request(model="m", system="Be good.", history=history, max_tokens=9)
    return format_.with_tools(asked, [READ])


@each_format
def test_tools_are_added_after_the_agents_own_and_nothing_else_changes(name: str) -> None:
    format_ = FORMATS[name]
    given = conversation(format_) | {"metadata": {"user": "u"}, "parallel_tool_calls": False}
    before = write_body(given)
    more = format_.with_tools(given, [DRAFT])
    assert write_body(given) == before
    assert format_.tool_names(more) == ["read", "send_draft"]
    rest, was = ({k: v for k, v in each.items() if k != "tools"} for each in (more, given))
    assert rest == was
    assert list(more) == list(given)
    assert more["tools"][:-1] == given["tools"]


@each_format
def test_a_function_has_its_other_name_wherever_the_model_sees_it(name: str) -> None:
    format_ = FORMATS[name]
    given = conversation(format_)
    given["tool_choice"] = {
        "anthropic_messages": {"type": "tool", "name": "read"},
        "chat_completions": {"type": "function", "function": {"name": "read"}},
        "openai_responses": {"type": "function", "name": "read"},
    }[name]
    there = format_.renamed(given, {"read": "agent_read"})
    assert b'"read"' not in write_body(there)
    assert write_body(there).count(b'"agent_read"') == write_body(given).count(b'"read"')
    assert format_.renamed(there, {"agent_read": "read"}) == given
    assert write_body(format_.renamed(given, {"other": "x"})) == write_body(given)


def test_allowed_tools_are_renamed_and_tools_of_the_provider_keep_their_names() -> None:
    search = {"type": "web_search_20250305", "name": "read"}
    assert ANTHROPIC_MESSAGES.renamed({"tools": [search]}, {"read": "x"})["tools"] == [search]
    space = {"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "read"}]}
    custom = {"type": "custom", "name": "read"}
    call = {"type": "function_call", "namespace": "files", "name": "read"}
    request: Json = {"tools": [space, custom, {"type": "web_search"}], "input": [call]}
    assert OPENAI_RESPONSES.renamed(request, {"read": "x"}) == request
    assert OPENAI_RESPONSES.tool_names(request) == ["files.read", "read"]
    chat = {"type": "custom", "custom": {"name": "patch"}}
    assert CHAT_COMPLETIONS.tool_names({"tools": [chat]}) == ["patch"]
    flat: Json = {"type": "allowed_tools", "mode": "auto"}
    flat["tools"] = [{"type": "function", "name": "read"}]
    nested = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "read"}}]}
    chat = {"type": "allowed_tools", "allowed_tools": nested}
    for format_, choice in ((CHAT_COMPLETIONS, chat), (OPENAI_RESPONSES, flat)):
        request = format_.renamed({"tool_choice": choice, "messages": []}, {"read": "x"})
        assert b'"x"' in write_body(request)


def test_the_choice_of_tools_is_one_of_three() -> None:
    """A choice that leaves out tools is no `auto`: added ones could not be called."""
    kinds = {"auto": "auto", "none": "none", "any": "forced", "tool": "forced"}
    for kind, meaning in kinds.items():
        choice: Json = {"type": kind, "name": "read", "disable_parallel_tool_use": True}
        assert ANTHROPIC_MESSAGES.tool_choice({"tool_choice": choice}) == meaning
    words = {"auto": "auto", "none": "none", "required": "forced"}
    for format_ in (CHAT_COMPLETIONS, OPENAI_RESPONSES):
        for word, meaning in words.items():
            assert format_.tool_choice({"tool_choice": word}) == meaning
        for choice in ({"type": "function", "name": "read"}, {"type": "allowed_tools"}):
            assert format_.tool_choice({"tool_choice": choice}) == "forced"
    for format_ in FORMATS.values():
        assert format_.tool_choice({}) == format_.tool_choice({"tool_choice": None}) == "auto"


@each_format
def test_a_turn_continues_the_history_and_a_request_is_streamed_where_it_says_so(name: str) -> None:
    format_ = FORMATS[name]
    reader = format_.reader()
    list(reader.feed(sse(STREAM[name](TURN))))
    assert format_.turn(reader.answer()) == format_.turn(format_.answer_of(WHOLE[name](TURN)))
    written = json.loads(write_body(conversation(format_)))
    history = format_.history(written)
    assert format_.with_history(written, history) == written
    text = json.dumps(history)
    assert text.index('"c1"') < text.rindex('"c1"') < text.rindex('"c2"')
    for value, streamed in ((True, True), (False, False), (None, False)):
        assert FORMATS[name].streams({"stream": value}) is streamed
    assert not FORMATS[name].streams({})


def test_each_formats_tools_own_request_and_results_of_a_turn_are_as_documented() -> None:
    made = [f.request(model="m", system="s", history=[f.user("hi")]) for f in FORMATS.values()]
    question = {"role": "user", "content": "hi"}
    said: Json = {"model": "m", "stream": True}
    kept: Json = {"store": False, "include": ["reasoning.encrypted_content"]}
    messages = [{"role": "system", "content": "s"}, question]
    assert made == [
        {**said, "max_tokens": 8192, "system": "s", "messages": [question]},
        {**said, "stream_options": {"include_usage": True}, "messages": messages},
        {**said, **kept, "instructions": "s", "input": [question]},
    ]
    assert OPENAI_RESPONSES.history({"input": "hi"}) == [question]
    # Anthropic wants all of them in one message.
    first = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    second = {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True}
    assert ANTHROPIC_MESSAGES.results(RESULTS) == [{"role": "user", "content": [first, second]}]
    texts = [("c1", "ok"), ("c2", "no")]
    told = [{"role": "tool", "tool_call_id": each, "content": text} for each, text in texts]
    assert CHAT_COMPLETIONS.results(RESULTS) == told
    assert OPENAI_RESPONSES.results(RESULTS) == [
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "function_call_output", "call_id": "c2", "output": "no"},
    ]
    said: Json = {"name": "send_draft", "description": "Send *it*."}
    named = {**said, "parameters": SCHEMA}
    assert [FORMATS[name].with_tools({}, [DRAFT])["tools"][0] for name in FORMATS] == [
        {**said, "input_schema": SCHEMA},
        {"type": "function", "function": named},
        {"type": "function", **named, "strict": False},
    ]


@each_format
@pytest.mark.parametrize("body", [b"{}", b'{"content": 1}', b'{"choices": []}', b'{"output": {}}'])
def test_an_answer_of_another_kind_is_refused(name: str, body: bytes) -> None:
    """It would otherwise pass for one that says nothing."""
    with pytest.raises(ModelFormatError):
        FORMATS[name].read_answer(body)


def test_aileron_without_this_mode_does_not_import_it() -> None:
    """The gateway, the core and the console start without a line of it."""
    program = (
        "import sys, aileron_core.app, aileron_core.server.gateway.app, aileron_tui.cli.commands;"
        "print([name for name in sys.modules if name.startswith('aileron_core.models')])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
