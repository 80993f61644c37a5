"""A real gateway in augment mode over a scripted model, the official SDKs as agents, and a person.

async with augmenting(model) as made:
    answer = await made.agent("messages").ask("hello")
"""

import asyncio
import contextlib
import importlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

# The SDK looks at it where a thread of the console imports it, and fails on one that is half imported.
import httpx  # noqa: F401
import pytest

from aileron_core.app import AppOptions
from aileron_core.server.augment.room import AugmentRoom
from aileron_core.sessions.model import OpenedSession
from aileron_core.settings import GatewaySettings, Settings
from tests.core.server.augment.scripted_model import ScriptedModel
from tests.core.server.gateway.harness import Answering, Client, Gateway, Upstream, open_console
from tests.support.core_harness import PATIENCE, open_session
from tests.support.echoes import ECHO, InstalledConnectors, chained, install_connectors

CHAT, RESPONSES = b"/v1/chat/completions", b"/v1/responses"
PATHS = {"messages": b"/v1/messages", "chat": CHAT, "responses": RESPONSES}
EACH_WIRE = pytest.mark.parametrize("wire", PATHS)
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
WIRE_AND_STREAM = pytest.mark.parametrize(
    ("wire", "stream"),
    [("messages", False), ("messages", True), ("chat", True), ("responses", False)],
)
"""For what no format does in a way of its own: each format, whole and streamed."""
MESSAGES = [{"role": "user", "content": "send it"}]
KEY = "sk-of-the-agent"
LAUNCHED = {"agent": "script", "opened_by": "launch", "augment": True}
"""Terms of a session."""


def sdk(name: str) -> Any:
    """Return the official SDK `anthropic` or `openai`: seconds to import, so only where it is used."""
    return importlib.import_module(name)


def model_request(wire: str = "messages", **more: Any) -> bytes:
    history = {"input": MESSAGES} if wire == "responses" else {"messages": MESSAGES}
    return json.dumps({"model": "m", "max_tokens": 9, "stream": True, **history, **more}).encode()


class StreamedError(Exception):
    """The error event of a stream of Responses, which its SDK gives as an event."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What an agent got, in one vocabulary."""

    text: str
    calls: tuple[tuple[str, str], ...]
    """Id and name."""
    items: tuple[Any, ...]
    """As the SDK would have the agent give it back."""
    id: str
    output_tokens: int


@dataclass
class Agent:
    """An agent on an official SDK, which knows nothing of Aileron."""

    wire: str
    base: str
    stream: bool = False
    tools: tuple[str, ...] = ()
    history: list[Any] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    retries: int = 0

    async def ask(self, text: str) -> Reply:
        """Say *text*, and go on with the conversation."""
        self.history.append({"role": "user", "content": text})
        return await self.again()

    async def answer_call(self, reply: Reply, text: str) -> Reply:
        """Give the results of the agent's own calls."""
        results = [
            {"type": "tool_result", "tool_use_id": id_, "content": text}
            if self.wire == "messages"
            else {"role": "tool", "tool_call_id": id_, "content": text}
            if self.wire == "chat"
            else {"type": "function_call_output", "call_id": id_, "output": text}
            for id_, _ in reply.calls
        ]
        together = [{"role": "user", "content": results}]
        self.history += together if self.wire == "messages" else results
        return await self.again()

    async def again(self) -> Reply:
        reply = await getattr(self, f"_{self.wire}")()
        self.history += reply.items
        return reply

    def _asked(self, history: str, **more: Any) -> dict[str, Any]:
        """Return a request, with the agent's own tools as its format has them."""
        schema: Any = {"type": "object", "properties": {}}
        tools: list[Any] = []
        for name in self.tools:
            function = {"name": name, "parameters": schema}
            tools.append(
                {"name": name, "description": "own", "input_schema": schema}
                if self.wire == "messages"
                else {"type": "function", "function": {**function, "description": "own"}}
                if self.wire == "chat"
                else {"type": "function", "strict": False, **function}
            )
        own = {"tools": tools} if tools else {}
        return {"model": "m", history: self.history, **more, **own, **self.more}

    def _openai(self) -> Any:
        base = self.base + "/v1"
        return sdk("openai").AsyncOpenAI(base_url=base, api_key=KEY, max_retries=self.retries)

    async def _messages(self) -> Reply:
        asked = self._asked("messages", max_tokens=100)
        make = sdk("anthropic").AsyncAnthropic
        async with make(base_url=self.base, api_key=KEY, max_retries=self.retries) as client:
            if self.stream:
                async with client.messages.stream(**asked) as stream:
                    message = await stream.get_final_message()
            else:
                message = await client.messages.create(**asked)
        blocks = [block.model_dump(exclude_none=True) for block in message.content]
        calls = [(each["id"], each["name"]) for each in blocks if each["type"] == "tool_use"]
        return Reply(
            text="".join(each["text"] for each in blocks if each["type"] == "text"),
            calls=tuple(calls),
            items=({"role": "assistant", "content": blocks},),
            id=message.id,
            output_tokens=message.usage.output_tokens,
        )

    async def _chat(self) -> Reply:
        asked = self._asked("messages")
        async with self._openai() as client:
            if self.stream:
                asked["stream_options"] = {"include_usage": True}
                async with client.chat.completions.stream(**asked) as stream:
                    whole = await stream.get_final_completion()
            else:
                whole = await client.chat.completions.create(**asked)
        message = whole.choices[0].message
        calls = message.tool_calls or []
        kept = {"role", "content", "tool_calls"}
        item = {k: v for k, v in message.model_dump(exclude_none=True).items() if k in kept}
        for call in item.get("tool_calls", ()):
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        return Reply(
            text=message.content or "",
            calls=tuple((each.id, each.function.name) for each in calls if each.type == "function"),
            items=(item,),
            id=whole.id,
            output_tokens=whole.usage.completion_tokens if whole.usage else 0,
        )

    async def _responses(self) -> Reply:
        asked = self._asked("input")
        async with self._openai() as client:
            if self.stream:
                async with client.responses.stream(**asked) as stream:
                    async for event in stream:
                        if event.type == "error":
                            raise StreamedError(event.message)
                    whole: Any = await stream.get_final_response()
            else:
                whole = await client.responses.create(**asked)
        items = [each.model_dump(exclude_none=True) for each in whole.output]
        for each in items:
            each.pop("parsed_arguments", None)
            for part in each.get("content", ()):
                part.pop("parsed", None)
        calls = [each for each in items if each["type"] == "function_call"]
        return Reply(
            text=whole.output_text,
            calls=tuple((each["call_id"], each["name"]) for each in calls),
            items=tuple(items),
            id=whole.id,
            output_tokens=whole.usage.output_tokens,
        )


@dataclass(kw_only=True)
class Augmented(Gateway):
    """A running gateway with one session in augment mode."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}/gw/{self.session.gateway_token}"

    def agent(self, wire: str, **more: Any) -> Agent:
        return Agent(wire, self.base, **more)

    async def another_session(self, **terms: Any) -> OpenedSession:
        return await open_session(self.app, **LAUNCHED | terms)

    def hold_runs(self) -> tuple[asyncio.Semaphore, asyncio.Event]:
        """Have runs go on only once the event is set; the semaphore counts those that began."""
        run, begun, may_end = self.agents.run, asyncio.Semaphore(0), asyncio.Event()

        async def held(*given: Any, **named: Any) -> Any:
            begun.release()
            await may_end.wait()
            return await run(*given, **named)

        agents: Any = self.agents
        agents.run = held
        return begun, may_end

    @property
    def room(self) -> AugmentRoom:
        return cast("AugmentRoom", self.handler.augment_room)

    def limit(self, **limits: Any) -> None:
        self.room.limits = replace(self.room.limits, **limits)

    async def sent(self, wire: str = "messages", *lines: bytes, **more: Any) -> Client:
        """Return a client that has sent a request, see `model_request`."""
        client = await self.client()
        await client.send(b"POST", PATHS[wire], *lines, body=model_request(wire, **more))
        return client

    async def asked(self, wire: str = "messages", *lines: bytes, **of: Any) -> tuple[bytes, bytes]:
        """Return the answer to such a request, over a connection of its own."""
        return await (await self.sent(wire, *lines, **of)).answer()

    async def all_over(self) -> None:
        """Wait until no request is open any more."""
        await self.until(lambda: not self.handler._open)

    async def waiting(self) -> Any:
        """Return the view of the one call that waits for a person, once it can be decided."""

        def decidable() -> list[Any]:
            waits = [each for each in self.app.publisher.approvals() if each.state == "pending"]
            return [each for each in waits if each.digest and each.preview.status != "fetching"]

        return (await self.until(decidable))[0]

    async def approve(self) -> None:
        view = await self.waiting()
        await self.app.approvals.approve(view.approval_id, view.digest)

    async def deny(self, reason: str) -> None:
        await self.app.approvals.deny((await self.waiting()).approval_id, reason)

    async def until(self, ready: Callable[[], Any]) -> Any:
        """Return what *ready* returns once it is true; every turn of the loop looks again."""
        async with asyncio.timeout(PATIENCE):
            while not (found := ready()):
                await asyncio.sleep(0.001)
            return found

    async def runs(self) -> list[tuple[str, str]]:
        return await self.app.database.read(
            lambda c: c.execute("SELECT action, state FROM runs ORDER BY rowid").fetchall()
        )


def echoing_action(installed: InstalledConnectors, name: str, *, gated: bool) -> str:
    used = InstalledConnectors(hashes={ECHO: installed.hashes[ECHO]})
    step = ("do", ECHO, True, 'text = "${args.text}"')
    return chained(used, step, inputs=[("text", "string", False)], name=name, gated=gated)


def _furnish(home: Path) -> None:
    installed = install_connectors(home)
    (home / "actions").mkdir(mode=0o700, exist_ok=True)
    for name, gated in (("read-inbox", False), ("send-draft", True)):
        text = echoing_action(installed, name, gated=gated)
        (home / "actions" / f"{name}.md").write_text(text, "utf-8")


@contextlib.asynccontextmanager
async def augmenting(
    model: ScriptedModel | Answering,
    *,
    hold_seconds: float = PATIENCE,
    furnish: Callable[[Path], None] = _furnish,
    augment: bool = True,
    **options: Any,
) -> AsyncGenerator[Augmented, None]:
    """Run a gateway over *model*, with `read_inbox` (not gated) and `send_draft` (gated)."""
    for name in ("anthropic", "openai"):
        sdk(name)  # now, not while something waits
    async with Upstream(model).listening() as upstream:
        url = f"http://127.0.0.1:{upstream.port}"
        gateway = GatewaySettings(anthropic=url, openai=url, gemini=url)
        settings = Settings(gateway=gateway, hold_seconds=hold_seconds)
        made = AppOptions(settings=settings, accept_installed=True, **options)
        terms = LAUNCHED | {"augment": augment}
        async with open_console(made, furnish=furnish, **terms) as members:
            yield Augmented(upstream=upstream, **members)
