"""Programs on the official SDKs and frameworks, unmodified, under `aileron launch --augment`.

Two consoles with a person each, one that waits for them and one that does not, over a scripted model; the
programs of `programs/` are real processes.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from tests.core.server.augment.harness import _furnish
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text
from tests.core.server.gateway.harness import Upstream
from tests.support.forked import forked
from tests.support.server_harness import CLI, Attended
from tests.support.variants import ALL

PROGRAMS = Path(__file__).parent / "programs"
KEYS = {"OPENAI_API_KEY": "sk-own", "ANTHROPIC_API_KEY": "sk-own"}


@dataclass
class Model:
    url: str = ""
    script: ScriptedModel = field(default_factory=ScriptedModel)


@dataclass
class Client:
    """A program that runs, the model that it asks, and the person who is asked."""

    process: "subprocess.Popen[str]"
    console: Attended
    model: ScriptedModel
    stderr: Path
    reads: "Callable[[Client], str]"
    """Reads the program's answer to one question."""
    before: frozenset[str]
    """What the console had been asked before this program."""
    goodbye: str = ""
    """What it wants to hear before it ends in order."""
    notes: list[str] = field(default_factory=list)
    """What the program's own tool wrote down."""

    def ask(self, question: str, *answers: Sequence[Text | Call]) -> None:
        self.model.answers += answers
        assert self.process.stdin is not None
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        text = self.reads(self)
        assert self.model.answers == []
        return text

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended: {self.stderr.read_text()[-3000:]}"
        return line

    def waiting(self) -> str:
        """Return the approval that the model's call became, once a person could answer it."""
        views = self.console.views

        def mine() -> list[str]:
            assert self.process.poll() is None, self.stderr.read_text()[-3000:]
            return [each for each in views if each not in self.before and views[each]["digest"]]

        assert self.console.until(lambda: bool(mine()))
        (approval_id,) = mine()
        assert views[approval_id]["state"] == "pending"
        return approval_id

    def told(self, request: int) -> list[str]:
        body = self.model.requests[request]
        history = body.get("messages") or body["input"]
        items = history if isinstance(history, list) else [history]
        return [json.dumps(each) for each in items]

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(self.goodbye)
        self.process.stdin.close()
        assert self.process.wait(60) == 0, self.stderr.read_text()

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError), self.process:
            self.process.kill()


def _read_json(client: Client) -> str:
    said = json.loads(client.line())
    client.notes = said["notes"]
    return said["text"]


@dataclass
class Room:
    """A console with a person, and the programs that are launched under it."""

    console: Attended
    model: Model
    folder: Path

    def launch(
        self, *words: str, reads: Callable[[Client], str] = _read_json, goodbye: str = ""
    ) -> Client:
        self.model.script = ScriptedModel()
        if words[0].endswith(".py"):
            words = (sys.executable, str(PROGRAMS / words[0]), *words[1:])
        project = Path(tempfile.mkdtemp(dir=self.folder))
        stderr = project / "stderr"
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        with stderr.open("wb") as file:
            command = [*CLI, "launch", "--home", str(self.console.home), "--augment", *words]
            env = {**kept, **KEYS, "HOME": str(project)}
            streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": file}
            process = forked(command, cwd=project, env=env, **streams, text=True)
        before = frozenset(self.console.views)
        return Client(process, self.console, self.model.script, stderr, reads, before, goodbye)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    made = Model()

    async def answer(*given: Any) -> None:
        await made.script(*given)

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Upstream(answer).listening()) as upstream,
    ):
        made.url = f"http://127.0.0.1:{upstream.port}"
        yield made


def _room(model: Model, settings: str) -> Iterator[Room]:
    with tempfile.TemporaryDirectory(prefix="ail-") as name:
        folder = Path(name)
        home = folder / "home"
        home.mkdir(mode=0o700)
        _furnish(home)
        gateway = f'[gateway]\nanthropic = "{model.url}"\nopenai = "{model.url}"\n'
        (home / "config.toml").write_text(gateway + settings, encoding="utf-8")
        with contextlib.closing(Attended(home)) as console:
            yield Room(console, model, folder)


@pytest.fixture(scope="module")
def patient(model: Model) -> Iterator[Room]:
    """A console that holds a call for a person as long as it takes."""
    yield from _room(model, "[mcp]\nhold_seconds = 30\n")


@pytest.fixture(scope="module")
def impatient(model: Model) -> Iterator[Room]:
    """A console that says at once that a call is pending."""
    yield from _room(model, "[mcp]\nhold_seconds = 0\n")


# The four cases that each program goes through


def approved(client: Client) -> None:
    client.ask("send it", [Call("send_draft", {"text": "to Anna"})], [Text("It is sent.")])
    client.console.approve(client.waiting())
    assert client.answer() == "It is sent."
    assert "to Anna" in client.told(1)[-1]


def denied_with_reason(client: Client) -> None:
    client.ask("send it", [Call("send_draft", {"text": "to Anna"})], [Text("They said no.")])
    client.console.tell(deny=client.waiting(), reason="not on a Friday")
    assert client.answer() == "They said no."
    assert "A person denied this. Their reason" in client.told(1)[-1]
    assert "not on a Friday" in client.told(1)[-1]


def pending_and_resumed(client: Client) -> None:
    client.ask("send it", [Call("send_draft", {"text": "to Anna"})], [Text("It waits.")])
    assert client.answer() == "It waits."
    approval_id = client.waiting()
    assert approval_id in client.told(1)[-1]
    assert client.console.approve(approval_id)
    assert client.console.state(approval_id, "completed")
    status = Call("check_action_status", {"approval_id": approval_id})
    client.ask("and now?", [status], [Text("It is sent.")])
    assert client.answer() == "It is sent."
    assert "to Anna" in client.told(3)[-1]


def mixed_turn(client: Client) -> None:
    calls = [Call("read_inbox", {"text": "a mail"}), Call("own_note", {"text": "mine"}, "call-own")]
    client.ask("do both", calls, [Text("Both are done.")])
    assert client.answer() == "Both are done."
    assert client.notes == ["mine"]
    told = "".join(client.told(1))
    if earlier(client, 1) is None:
        assert told.index("read_inbox") < told.index("own_note")
    assert told.index("a mail\\") < told.index("noted: mine")


def assert_went_on(client: Client) -> None:
    """Ask once more: no request may lack anything that the one before it had."""
    notes = client.notes
    client.ask("thanks", [Text("Welcome.")])
    assert client.answer() == "Welcome."
    assert client.notes == notes
    client.end()
    requests = client.model.requests
    # The tool runner of Anthropic's SDK names its own tools once, where the provider keeps the conversation.
    begun = [each for each in requests if each.get("thread", {}).get("type") != "continue"]
    assert all(each["tools"] == requests[0]["tools"] for each in begun)
    assert not [each for each in requests if each not in begun and "tools" in each]
    names = [each.get("name") or each["function"]["name"] for each in requests[0]["tools"]]
    ours = ["read_inbox", "send_draft", "check_action_status", "withdraw_action"]
    assert names == ["own_note", *ours]
    for number in range(1, len(requests)):
        before, after = client.told(number - 1), client.told(number)
        named, named_before = earlier(client, number), earlier(client, number - 1)
        if named is None or named == named_before:
            assert after[: len(before)] == before or named_before is not None
            assert set(before) <= set(after)
        else:  # the provider has what came before
            assert named == str(number - 1)


def earlier(client: Client, request: int) -> str | None:
    """Return the number of the answer that a request names, if the provider keeps its conversation."""
    body = client.model.requests[request]
    named = body.get("previous_response_id") or body.get("thread", {}).get("previous_message_id")
    return named.rpartition("_")[2] if named else None


CASES: dict[str, tuple[str, Callable[[Client], None]]] = {
    "approved": ("patient", approved),
    "denied": ("patient", denied_with_reason),
    "pending-and-resumed": ("impatient", pending_and_resumed),
    "mixed-turn": ("patient", mixed_turn),
}
"""Name -> the console that it needs, and what happens."""


def go(case: str, request: pytest.FixtureRequest, *words: str, **how: Any) -> None:
    name, happens = CASES[case]
    room: Room = request.getfixturevalue(name)
    with contextlib.closing(room.launch(*words, **how)) as client:
        happens(client)
        assert_went_on(client)


MANNERS = [
    *(f"sdk_chat.py {each}" for each in ("whole", "streamed", "chunks", "async-streamed")),
    *(f"sdk_responses.py {each}" for each in ("whole", "streamed", "chained", "async-streamed")),
    *(f"sdk_messages.py {each}" for each in ("whole", "streamed", "runner", "async-streamed")),
]
PAIRS = [
    (words, case)
    for number, words in enumerate(MANNERS)
    for place, case in enumerate(CASES)
    if ALL or (number + place) % len(CASES) == 0
]
"""All with `make test-all`; without it each manner once, and so each case with each wire format."""


@pytest.mark.parametrize(("words", "case"), PAIRS)
def test_a_program_on_an_sdk(words: str, case: str, request: pytest.FixtureRequest) -> None:
    """It knows nothing of Aileron, and never sees one of its tools."""
    go(case, request, *words.split())


frameworks = pytest.mark.skipif(not ALL, reason="only with AILERON_TEST_ALL")
PYDANTIC_AI = [
    ("framework_pydantic_ai.py", model, manner)
    for model in ("openai-chat:gpt-4o", "openai-responses:gpt-4o", "anthropic:claude-sonnet-4-5")
    for manner in ("sync", "async", "streamed")
]
LLM = [
    ("framework_llm.py", model, manner)
    for model in ("gpt-4o-mini", "gpt-5.4-mini")
    for manner in ("async", "async-streamed")
]
MANNER = ("sync", "async", "streamed", "chained")
OPENAI_AGENTS = [("framework_openai_agents.py", manner) for manner in MANNER]


@frameworks
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("words", [*PYDANTIC_AI, *LLM, *OPENAI_AGENTS], ids=" ".join)
def test_a_framework(words: tuple[str, ...], case: str, request: pytest.FixtureRequest) -> None:
    go(case, request, *words)


def read_chat(client: Client) -> str:
    while not (line := client.line()).startswith("> "):
        pass
    notes = client.stderr.with_name("notes")
    client.notes = notes.read_text("utf-8").splitlines() if notes.exists() else []
    return line.removeprefix("> ").rstrip()


@frameworks
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("options", [(), ("--no-stream",)], ids=["streamed", "whole"])
@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-5.4-mini"])
def test_the_program_llm(
    model: str, options: tuple[str, ...], case: str, request: pytest.FixtureRequest
) -> None:
    """As a person starts it, with one tool of their own."""
    words = [str(Path(sys.executable).with_name("llm")), "chat", "-m", model, *options]
    words += ["--functions", str(PROGRAMS / "llm_functions.py")]
    go(case, request, *words, reads=read_chat, goodbye="exit\n")
