"""A scripted model on loopback that speaks each provider's real wire, with streaming.

It thinks nothing: a script looks at what the agent told it so far and says what to do next. What it
was sent is kept, so that a test can tell what a model would have seen.
"""

import contextlib
import json
import re
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from tests.support import scripted_answers
from tests.support.scripted_answers import Said, Turn, say_call, sse


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Answer with words: the turn is over."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Call the tool whose name ends so."""

    name: str
    args: dict[str, Any]
    unoffered: bool = False
    """Call it by this very name, whether or not it is offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What the model knows: the tools it may call, and what calls have returned so far."""

    tools: tuple[str, ...]
    """Full names, as the wire has them (a namespace is joined with `.`)."""
    results: tuple[str, ...]
    """Each tool result as one text."""

    def tool(self, ending: str) -> str | None:
        return next((name for name in self.tools if name.endswith(ending)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request of the agent."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    raw: bytes
    """Request line, headers and body, as they came."""
    url: str
    """With the host that the agent meant."""


Script = Callable[[Conversation], Say | CallTool]


def in_turn(*steps: CallTool, end: str = "FINAL") -> Script:

    def script(conversation: Conversation) -> Say | CallTool:
        done = len(conversation.results)
        return steps[done] if done < len(steps) else Say(text=end)

    return script


@dataclass
class ScriptedLlm:
    """Serve while the context is entered; `url` is the root of every provider's paths."""

    script: Script
    seen: list[ModelRequest] = field(default_factory=list[ModelRequest])
    result_received: threading.Event = field(default_factory=threading.Event)
    """Set at each request."""
    connected: Callable[[int, int], object] = lambda _theirs, _ours: None
    """Called with both ports of each connection, before anything is read from it."""
    tls: ssl.SSLContext | None = None
    stands_for: Callable[[str], ssl.SSLContext] | None = None
    """Makes it a proxy that answers for every host, with the certificates that this returns."""

    def __enter__(self) -> "ScriptedLlm":
        handler = cast("Any", type("Handler", (_Handler,), {"llm": self}))
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        serve = partial(self._server.serve_forever, 0.02)
        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)

    @property
    def url(self) -> str:
        root = "http://127.0.0.1" if self.tls is None else "https://localhost"
        return f"{root}:{self._server.server_port}"

    @property
    def results(self) -> tuple[str, ...]:
        """Every tool result that the model was told, in the last conversation that had any."""
        known = [_conversation(each).results for each in self.seen]
        return max(known, key=len, default=())


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of an agent that went away; whatever else is wrong is the test's."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    llm: ScriptedLlm
    _scheme = "http"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def setup(self) -> None:
        super().setup()
        self.llm.connected(self.client_address[1], self.server.server_address[1])

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.connection.close()  # with TLS it is another than the server's

    def do_CONNECT(self) -> None:
        """Go on as the host that was asked for."""
        host = self.path.partition(":")[0]
        if self.llm.stands_for is None:
            self._answer(405, b"")
            return
        self.send_response(200)
        self.end_headers()
        self.close_connection = False  # whatever its headers say
        if self.connection.recv(1, socket.MSG_PEEK) != b"\x16":
            return  # no TLS: some agents send even that through a tunnel
        self.connection = self.llm.stands_for(host).wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = cast("Any", self.connection.makefile("wb", 0))
        self._scheme = "https"

    def do_HEAD(self) -> None:
        self._note(b"")
        self._answer(200, b"", "text/plain")

    def do_GET(self) -> None:
        self._note(b"")
        path = self.path.partition("?")[0]
        if path.endswith("/models"):
            self._answer(200, json.dumps({"object": "list", "data": []}).encode())
        else:
            self._answer(404, b'{"error": {"message": "not here"}}')

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        seen = self._note(raw)
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._answer(200, b'{"input_tokens": 10}')
            return
        conversation = _conversation(seen)
        # A request without tools asks for a title or the like.
        step = self.llm.script(conversation) if conversation.tools else Say(text="A title")
        if isinstance(step, CallTool) and not step.unoffered:
            full = conversation.tool(step.name)
            step = CallTool(name=full, args=step.args) if full else Say(text=f"no tool {step.name}")
        turn = _as_turn(step, len(self.llm.seen))
        match re.split("[/:]", path)[-1]:
            case "responses":
                self._stream(_responses(step, seen.body, turn))
            case "completions":
                self._stream([sse(scripted_answers.chat_stream(turn))])
            case "messages":
                self._stream([sse(scripted_answers.anthropic_stream(turn))])
            case "streamGenerateContent":
                self._stream([sse([("", _gemini_body(step))])])
            case "generateContent":
                self._answer(200, json.dumps(_gemini_body(step)).encode())
            case _:
                self._answer(404, b'{"error": {"message": "not here"}}')

    def _note(self, raw: bytes) -> ModelRequest:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body: Any = {}
        with contextlib.suppress(ValueError):  # a form for a login, say
            body = json.loads(raw)
        place = f"{self._scheme}://{headers.get('host')}" if self.path.startswith("/") else ""
        seen = ModelRequest(
            method=self.command,
            path=self.path,
            headers=headers,
            body=body,
            raw=self.raw_requestline + bytes(self.headers) + raw,
            url=place + self.path,
        )
        self.llm.seen.append(seen)
        self.llm.result_received.set()
        self.llm.result_received.clear()
        return seen

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterable[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


# What the agent told, by wire


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text_of(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "output", "content", "result", "response", "error"):
            if key in content:
                return _text_of(content[key])
    return json.dumps(content)


def offered_tools(seen: ModelRequest) -> frozenset[str]:
    return frozenset(_conversation(seen).tools)


def _conversation(seen: ModelRequest) -> Conversation:
    body = seen.body if isinstance(seen.body, dict) else {}
    path = seen.path.partition("?")[0]
    given, messages = body.get("tools") or [], body.get("messages", [])
    if path.endswith("/responses"):
        return _from_responses(body)
    if path.endswith("/chat/completions"):
        tools = [each["function"]["name"] for each in given]
        told = [each["content"] for each in messages if each.get("role") == "tool"]
    elif path.endswith("/messages"):
        tools = [each["name"] for each in given]
        lists = [each["content"] for each in messages if isinstance(each.get("content"), list)]
        blocks = [block for each in lists for block in each]
        told = [each.get("content") for each in blocks if each.get("type") == "tool_result"]
    else:
        given = [given] if isinstance(given, dict) else given  # Goose sends one alone
        functions = [each.get("functionDeclarations", []) for each in given]
        tools = [function["name"] for each in functions for function in each]
        parts = [part for each in body.get("contents", []) for part in each.get("parts", [])]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        told = [each.get("response") for each in answers]
    return Conversation(tools=tuple(tools), results=tuple(map(_text_of, told)))


def _items(body: dict[str, Any]) -> list[dict[str, Any]]:
    items = body.get("input")
    return items if isinstance(items, list) else []


def _given(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = list(body.get("tools") or [])
    for item in _items(body):
        if item.get("type") == "additional_tools":
            given += item.get("tools") or []
    return given


def _is_custom(body: dict[str, Any], name: str) -> bool:
    """Return whether *name*, a full name, takes free text instead of JSON."""
    namespace, _, name = name.rpartition(".")
    inside = [inner for each in _given(body) if each.get("name") == namespace
              for inner in each.get("tools") or []]  # fmt: skip
    tools = inside if namespace else _given(body)
    return any(each.get("name") == name and each["type"] == "custom" for each in tools)


def _from_responses(body: dict[str, Any]) -> Conversation:
    names: list[str] = []
    for each in _given(body):
        if each.get("type") == "namespace":
            names += [f"{each['name']}.{inner['name']}" for inner in each.get("tools", [])]
        elif "name" in each:
            names.append(each["name"])
    kinds = ("function_call_output", "custom_tool_call_output")
    told = [item.get("output") for item in _items(body) if item.get("type") in kinds]
    return Conversation(tools=tuple(names), results=tuple(map(_text_of, told)))


# What the model says, by wire


def _as_turn(step: Say | CallTool, turn: int) -> Turn:
    if isinstance(step, Say):
        return Turn(turn, (Said("text", tuple(re.findall(r"\S+\s*", step.text))),))
    return Turn(turn, (say_call(step.name.rpartition(".")[2], step.args, f"call_{turn}"),))


def _responses(step: Say | CallTool, body: Any, turn: Turn) -> Iterator[bytes]:
    """The stream of Responses, where a call names its namespace, and a custom tool takes free text."""
    more: dict[str, Any] = {}
    if isinstance(step, CallTool):
        if namespace := step.name.rpartition(".")[0]:
            more["namespace"] = namespace
        if _is_custom(body, step.name):
            more |= {"type": "custom_tool_call", "input": step.args["input"]}
    for name, event in scripted_answers.responses_stream(turn):
        assert isinstance(event, dict)
        for item in (event.get("item"), *event.get("response", {}).get("output", ())):
            if item is not None:
                item.update(more)
        yield sse([(name, event)])


def _gemini_body(step: Say | CallTool) -> dict[str, Any]:
    part: dict[str, Any] = {"text": step.text} if isinstance(step, Say) else {}
    if isinstance(step, CallTool):
        part = {"functionCall": {"name": step.name, "args": step.args}}
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "scripted",
    }
