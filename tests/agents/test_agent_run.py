"""`aileron run`: a model on the real wire, its calls through the gate, a person who answers."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.agents.agents_bench import CLI, KEYS, Bench, CallTool, Say, bench_of, silent
from tests.agents.llm import Conversation
from tests.support.core_harness import DRAFT
from tests.support.forked import forked
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.processes import eventually
from tests.support.scripted_answers import Events, sse
from tests.support.terminal import Pty


def sends_what_it_lists(conversation: Conversation) -> Say | CallTool:
    send = CallTool(name="send_draft", args={"draft_id": DRAFT})
    last = Say(text=f"FINAL {''.join(conversation.results[-1:])[:60]}")
    return (CallTool(name="list_drafts", args={}), send, last)[len(conversation.results)]


def start_run(
    bench: Bench,
    *words: str,
    env: Mapping[str, str] | None = None,
    stdin: Any = subprocess.DEVNULL,
    through: Sequence[str] = (),
) -> subprocess.Popen[str]:
    return forked(
        [*through, *CLI, "run", "--home", str(bench.console.home), *words], cwd=bench.project,
        env=bench.environment(env or {}), stdin=stdin, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended_with(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, (out, err)
    assert "Traceback" not in err
    return out, err


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with bench_of(silent) as running:
        yield running


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])  # one for each API
def test_a_prompt_is_answered_by_calls_through_the_gate(model: str) -> None:
    """Through the gateway with the key of the environment; a person is waited for."""
    with bench_of(sends_what_it_lists) as bench:
        process = start_run(bench, "--model", model, "Send the mail.")
        approval = bench.asked()
        bench.console.approve(approval)
        out, err = ended_with(process)
        assert out.startswith('FINAL {"status": "completed"')
        assert f"send-draft is waiting for your answer in the console ({approval})." in err
        said = [line.partition(" (")[0].removeprefix("aileron: ") for line in err.splitlines()]
        waits = "send-draft is waiting for your answer in the console"
        assert said == ["list-drafts: completed", waits, "send-draft: completed"]
        assert [mail["subject"] for mail in bench.mailbox.state()["sent"]] == ["Q3 numbers"]
        headers = [seen.headers for seen in bench.llm.seen]
        sent, *more = {each.get("x-api-key") or each["authorization"] for each in headers}
        assert not more
        assert sent.removeprefix("Bearer ") in KEYS.values()
        bench.all_passed()
        assert bench.events().count("session.ended") == 1


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_back_what_waits_and_ctrl_c_says_what_had_run(number: int) -> None:
    """A later yes would send a mail that nobody waits for."""
    with bench_of(sends_what_it_lists) as bench:
        process = start_run(bench, "--model", "gpt-test", "Send the mail.")
        approval = bench.asked()
        process.send_signal(number)
        _, err = ended_with(process, 128 + number)
        assert bench.console.state(approval, "withdrawn")
        if number == signal.SIGINT:
            assert calls_tool(err) == [["list-drafts:", "completed"], ["send-draft:", "withdrawn"]]
        assert bench.mailbox.state()["sent"] == []


def calls_tool(err: str) -> list[list[str]]:
    lines = err.partition("aileron: What was called:\n")[2].splitlines()
    return [line.split(" (")[0].split()[1:] for line in lines if line.startswith("aileron:   ")]


@pytest.mark.real
def test_a_hangup_does_not_end_what_nohup_started(bench: Bench) -> None:
    """It was started that way so as to outlive its terminal."""
    hung_up = threading.Event()
    with model_of(says_chunks("Hello."), before=lambda _: hung_up.wait(30)) as model:
        words = ("--model", "local", "--base-url", model.url, "Hello?")
        process = start_run(bench, *words, through=("nohup",))
        eventually(lambda: bool(model.asked))
        process.send_signal(signal.SIGHUP)
        hung_up.set()
        assert ended_with(process)[0] == "Hello.\n"


@pytest.mark.real
def test_ctrl_c_before_the_console_has_answered_leaves_nothing_to_approve() -> None:
    """The console reads the model's call and that nobody waits for it any more at once."""

    def stop_the_console(asked: int) -> None:
        if asked == 2:
            os.kill(bench.console.process.pid, signal.SIGSTOP)

    send = tool_calls(("send_draft", json.dumps({"draft_id": DRAFT})))
    listed = tool_calls(("list_drafts", "{}"))
    # A console of its own: it stands still meanwhile.
    with bench_of(silent) as bench, model_of(listed, send, before=stop_the_console) as model:
        process = start_run(bench, "--model", "local", "--base-url", model.url, "Send it.")
        eventually(lambda: len(model.asked) == 2)
        process.send_signal(signal.SIGINT)
        os.kill(bench.console.process.pid, signal.SIGCONT)
        _, err = ended_with(process, 130)
        assert calls_tool(err)[0] == ["list-drafts:", "completed"]
        asked = [each for each in bench.console.records() if each["event"] == "approval.requested"]
        assert all(bench.console.state(each["approval_id"], "withdrawn") for each in asked)


@pytest.mark.real
def test_a_conversation_goes_on_after_ctrl_c_and_ends_with_ctrl_d() -> None:
    """The next prompt's request says where it was stopped, and what had come of the calls."""
    asked: list[Conversation] = []

    def stops(conversation: Conversation) -> Say | CallTool:
        asked.append(conversation)
        return Say(text="FINAL") if len(asked) > 2 else sends_what_it_lists(conversation)

    with bench_of(stops) as bench:
        command = [*CLI, "run", "--home", str(bench.console.home), "--model", "claude-test"]
        with contextlib.closing(
            Pty(command, environment=bench.environment({}), cwd=str(bench.project))
        ) as terminal:
            terminal.shows("> ")
            terminal.type(b"Send the mail.\r")
            approval = bench.asked()
            os.kill(terminal.process.pid, signal.SIGINT)
            terminal.shows("Interrupted.")
            assert bench.console.state(approval, "withdrawn")
            terminal.type(b"And now?\r")
            terminal.shows("FINAL")
            terminal.until(lambda: terminal.cells.text.split()[-1] == ">", "a prompt")
            terminal.type(b"\x04")
            assert terminal.ended() == 0
        _, stopped, now = bench.llm.seen[-1].body["messages"]
        assert "Stopped here" in stopped["content"]
        assert "send-draft: withdrawn" in stopped["content"]
        assert now == {"role": "user", "content": "And now?"}
        assert bench.llm.seen[-1].body["tools"] == bench.llm.seen[0].body["tools"]


@dataclasses.dataclass
class _Model:
    """A server of the Chat Completions API, and what it was asked."""

    url: str = ""
    asked: list[dict[str, Any]] = dataclasses.field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = dataclasses.field(default_factory=list[dict[str, str]])


@contextlib.contextmanager
def model_of(
    *answers: Any,
    status: int = 200,
    media: str = "text/event-stream",
    coding: str = "identity",
    before: Callable[[int], object] = lambda _: None,
) -> Iterator[_Model]:
    """Serve one that gives these answers, one after the other, the last again and again."""
    model, left = _Model(), [*answers]

    def answer(request: HttpRequest, body: bytes) -> None:
        model.asked.append(json.loads(body))
        model.headers.append({name.lower(): text for name, text in request.headers.items()})
        before(len(model.asked))
        said = left.pop(0) if len(left) > 1 else left[0]
        data = said if isinstance(said, bytes) else sse([*said, ("", "[DONE]")])
        reply(request, status, data, {"Content-Type": media, "Content-Encoding": coding})

    with http_server(answer) as server:
        model.url = f"http://127.0.0.1:{server.server_port}/v1"
        yield model


def chunk_line(finish: str | None = None, **delta: Any) -> tuple[str, dict[str, Any]]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "", {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


def says_chunks(text: str, finish: str = "stop") -> Events:
    return [chunk_line(role="assistant", content=text), chunk_line(finish)]


def tool_calls(*asked: tuple[str, str], finish: str = "tool_calls") -> Events:
    found = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(asked)
    ]  # fmt: skip
    return [chunk_line(role="assistant", tool_calls=found), chunk_line(finish)]


def ask_agent(
    bench: Bench, model: _Model, *words: str, code: int = 0, **more: Any
) -> tuple[str, str]:
    base = ("--model", "local", "--base-url", model.url)
    return ended_with(start_run(bench, *base, *(words or ("Go.",)), **more), code)


def test_several_calls_of_one_turn_are_each_answered_and_no_text_draws(bench: Bench) -> None:
    """What is no tool, no JSON or not of the schema is the model's to mend; a terminal obeys nothing that it says."""
    ones = ("get_draft", '{"id": "r-0"}'), ("nope", "{}"), ("list_drafts", "{"), ("list_drafts", "")
    with model_of(tool_calls(*ones), says_chunks("Done.")) as model:
        out, err = ask_agent(bench, model)
    assert out == "Done.\n"
    replies = [each for each in model.asked[1]["messages"] if each["role"] == "tool"]
    said = {each["tool_call_id"]: each["content"] for each in replies}
    for n, words in enumerate(("failed", "There is no tool 'nope'", "JSON", '"completed"')):
        assert words in said[f"call_{n}"]
    assert "get-draft: failed" in err
    assert "authorization" not in model.headers[0]
    pieces = ["One \x1b]0;", "title\x07 two\r", "\n", "\u202eevil ", "x" * 500, "\tend\n"]
    with model_of([*(chunk_line(content=piece) for piece in pieces), chunk_line("stop")]) as model:
        out, _ = ask_agent(bench, model)
    assert out.startswith("One ‹ESC›]0;title‹BEL› two\n‹RLO›evil ")
    assert out.endswith(f"{'x' * 500}    end\n")
    assert not [char for char in out if char != "\n" and not char.isprintable()]


def test_calls_without_end_are_an_error_and_json_is_one_object(bench: Bench) -> None:
    with model_of(tool_calls(("list_drafts", "{}"))) as model:
        _, err = ask_agent(bench, model, "Go.", code=1)
        assert "the model was asked 32 times for it" in err
        assert calls_tool(err) == [["list-drafts:", "completed"]] * 32
        out, err = ask_agent(bench, model, "--json", "Go again.", code=1)
    said = json.loads(out)
    assert err == ""
    assert said["status"] == "failed"
    calls = {(call["action"], call["status"]) for call in said["calls"]}
    assert calls == {("list-drafts", "completed")}
    with model_of(tool_calls(("list_drafts", "{}")), says_chunks("Two drafts.")) as model:
        out, err = ask_agent(bench, model, "--json", "Go.")
    assert err == ""
    said = json.loads(out)
    assert (said["status"], said["text"]) == ("completed", "Two drafts.")
    (call,) = said["calls"]
    assert (call["action"], call["status"]) == ("list-drafts", "completed")
    assert call["id"].startswith("run-")


def test_an_answer_that_was_cut_off_is_said_to_be_and_its_call_not_made(bench: Bench) -> None:
    """Its arguments may lack what the model was about to write."""
    for finish in ("length", "content_filter"):
        with model_of(tool_calls(("list_drafts", ""), finish=finish)) as model:
            out, err = ask_agent(bench, model, "--json", "Go.")
        assert (json.loads(out)["calls"], json.loads(out)["stop"]) == ([], finish)
        assert err == ""
        with model_of(says_chunks("Half", finish=finish)) as model:
            said = ask_agent(bench, model)
        assert said == ("Half\n", f"aileron: The answer was cut off ({finish}).\n")


NO_ANSWERS: list[tuple[Any, dict[str, Any], str]] = [
    (b'{"error": {"message": "No such \\u001b[31mmodel"}}', {"status": 404}, "with 404: No such ‹ESC›[31mmodel"),
    (b'{"detail": "no model"}', {"status": 422}, 'with 422: {"detail": "no model"}'),
    (b"x" * 100_000, {"status": 500}, f"with 500: {'x' * 500}\n"),
    (b"<p>Sign in</p>", {"media": "text/html"}, "did not stream its answer"),
    (b"{}", {"media": "application/json"}, "did not stream its answer"),
    (b"\x1f\x8b", {"coding": "gzip", "media": "application/json"}, "compressed its answer, although it was asked not to"),
    (b'data: {"choices": [{"index": 0, "delta": {"content": "Hel', {}, "The stream ended with it."),
    (says_chunks("Half", finish="error"), {}, "local failed: error"),
    (says_chunks("", finish="tool_calls"), {}, "announced calls (tool_calls) but made none"),
    (tool_calls(("nope", "{}")), {}, "still calls tools that do not exist"),
]  # fmt: skip


def test_what_is_no_answer_of_a_model_is_an_error_that_says_what_it_is(bench: Bench) -> None:
    for answer, more, words in NO_ANSWERS:
        with model_of(answer, **more) as model:
            assert words in ask_agent(bench, model, code=1)[1]
        assert model.headers[0]["accept-encoding"] == "identity"
    with model_of(says_chunks("")) as model:
        host, _, port = model.url[7:-3].partition(":")
    assert f"{host} cannot be reached on port {port}" in ask_agent(bench, model, code=1)[1]


SECRET = "canary-key"


def test_a_key_goes_to_that_server_alone_and_one_that_cannot_be_sent_is_not_quoted(
    bench: Bench,
) -> None:
    """Nor does a word that asks for calls to be told: who knows it could invent some."""
    words = ("--key-variable", "MY_KEY", "Hello?")
    with model_of(says_chunks("Hello.")) as model:
        assert "MY_KEY is not set" in ask_agent(bench, model, *words, code=2)[1]
        assert ask_agent(bench, model, *words, env={"MY_KEY": SECRET})[0] == "Hello.\n"
        (sent,) = model.headers
        assert sent["authorization"] == f"Bearer {SECRET}"
        assert not {"aileron-calls", "connection"} & {*sent}
    with model_of(says_chunks("Hello.")) as model:
        for end_, words in (("\r", ("--json",)), (" ", ()), ("\n", ()), ("é", ())):
            words = ("--key-variable", "MY_KEY", *words, "Hi")
            said = "".join(ask_agent(bench, model, *words, code=2, env={"MY_KEY": SECRET + end_}))
            assert SECRET not in said
            assert "that no key has" in said
    for words in (("--key-variable", "MY_KEY"), ("--max-tokens", "9")):
        assert words[0] in ended_with(start_run(bench, "--model", "m", *words, "Hi"), 2)[1]


def test_the_system_prompt_is_a_file_and_the_prompt_may_be_on_standard_input(bench: Bench) -> None:
    (bench.project / "system.txt").write_text("Be brief.")
    with model_of(says_chunks("Yes.")) as model:
        words = ("--model", "local", "--base-url", model.url, "--system", "system.txt")
        process = start_run(bench, *words, stdin=subprocess.PIPE)
        out, err = process.communicate("Are you there?", timeout=60)
        assert (process.returncode, out) == (0, "Yes.\n"), err
    asked = [each["content"] for each in model.asked[0]["messages"]]
    assert asked == ["Be brief.", "Are you there?"]
    assert "empty" in ask_agent(bench, model, " ", code=2)[1]
    assert "not UTF-8" in ask_agent(bench, model, "caf\udcc3", code=2)[1]
