"""`aileron run`: a model with the accepted actions as its tools, and a person at this terminal."""

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from aileron_core.errors import (
    AileronError,
    ExternalApiError,
    InvalidRequest,
    ModelFormatError,
    ResourceLimitExceeded,
)
from aileron_core.home.client import HomeClient
from aileron_core.launch.interfaces import LaunchedSession
from aileron_core.models import ANTHROPIC_MESSAGES
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import Answer, Event, RefusalDelta, TextDelta
from aileron_core.text import escape
from aileron_tui.cli.launching import HomeSessions
from aileron_tui.cli.model_calls import Calls, say
from aileron_tui.cli.model_client import (
    KEY_VARIABLES,
    ModelClient,
    direct_client,
    provider_for,
)
from aileron_tui.cli.output import EXIT, CommandContext, report_error

_LONGEST_FILE = 1024 * 1024
_LONGEST_WORD = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `aileron run` was asked for."""

    model: str
    api: str | None
    base_url: str | None
    key_variable: str | None
    system: str | None
    prompt: str | None
    max_turns: int
    max_tokens: int


def run_agent(context: CommandContext, options: RunOptions) -> int:
    """Answer one prompt, or hold a conversation where a person types at a terminal; return the exit code."""
    api = options.api or provider_for(options.model)
    if options.key_variable is not None and options.base_url is None:
        raise InvalidRequest("--key-variable is for the server of --base-url. Give both.")
    system = _system(options.system)
    prompt = options.prompt
    if prompt is None and not sys.stdin.isatty():
        prompt = sys.stdin.buffer.read().decode(errors="replace")
    if prompt is not None and not prompt.strip():
        raise InvalidRequest("The prompt is empty.")
    if prompt is None and context.json:
        raise InvalidRequest("A conversation prints no JSON. Give a prompt.")
    client = None
    if options.base_url is not None:
        client = direct_client(api, options.base_url, options.key_variable)
    sessions = HomeSessions(context.home)
    with contextlib.ExitStack() as stack:
        session = sessions.open(
            agent="aileron run", label=Path.cwd().name, cwd=Path.cwd(), contained=False,
            key_providers=(api,) if client is None else (),
        )  # fmt: skip
        stack.callback(sessions.end, session.session_id)
        hold = sessions.hold(session, lambda _: None)
        stack.callback(hold.stop)
        hold.start()
        client = client or _gateway_client(api, session)
        stack.callback(client.close)
        console = HomeClient(context.home)
        conversation = Conversation(
            client, console, session.token, options, system, quiet=context.json
        )
        if prompt is None:
            return _converse(context, conversation)
        return _answer_once(context, conversation, prompt)


def _gateway_client(api: str, session: LaunchedSession) -> ModelClient:
    """Return a client of the console's gateway: with the vault's key, or the one in the environment."""
    key = os.environ.get(KEY_VARIABLES[api], "")
    if api in session.key_providers:
        key = session.placeholder
    base_url = f"{session.url}/gw/{session.gateway_token}" + ("/v1" if api == "openai" else "")
    missing = (
        ""
        if key
        else f" There is no key: store one with `aileron gateway key set {api}`, or set {KEY_VARIABLES[api]}."
    )
    return ModelClient(api, base_url, key, name="The model's provider", hint=missing, proxies=False)


def _system(file: str | None) -> str:
    if file is None:
        return ""
    with Path(file).open("rb") as opened:
        data = opened.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise InvalidRequest(f"{file} is over 1 MiB. Give a shorter system prompt.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{file} is not UTF-8 text.") from None


def _answer_once(context: CommandContext, conversation: "Conversation", prompt: str) -> int:
    interrupted = False
    try:
        conversation.ask(prompt)
    except KeyboardInterrupt:
        interrupted = True
        if not context.json:
            say(conversation.calls.summary(interrupted=True))
    except AileronError:
        if conversation.calls.made and not context.json:
            say(conversation.calls.summary(interrupted=False))
        raise
    if context.json:
        context.show(conversation.to_json(interrupted=interrupted))
    return EXIT.INTERRUPTED if interrupted else EXIT.DONE


def _converse(context: CommandContext, conversation: "Conversation") -> int:
    """Read what the person types until Ctrl-D; Ctrl-C ends an answer, not the conversation."""
    with contextlib.suppress(ImportError):
        import_module("readline")  # line editing for input()
    while True:
        try:
            prompt = input("> ")
        except EOFError:
            click.echo()
            return EXIT.DONE
        except KeyboardInterrupt:
            click.echo()
            continue
        if not prompt.strip():
            continue
        try:
            conversation.ask(prompt)
        except KeyboardInterrupt:
            say(conversation.calls.summary(interrupted=True))
        except AileronError as error:
            report_error(context, error)


class Conversation:
    """The history with one model, and the loop that answers a prompt."""

    def __init__(
        self,
        client: ModelClient,
        console: HomeClient,
        token: str,
        options: RunOptions,
        system: str,
        *,
        quiet: bool,
    ) -> None:
        self.calls = Calls(console, token, quiet=quiet)
        self._client = client
        self._messages = client.format is ANTHROPIC_MESSAGES
        self._options = options
        self._system = system
        self._tools = self.calls.tools()
        self._history: list[JsonDict] = []
        self._printer = None if quiet else _Printer(lambda text: click.echo(text, nl=False))
        self._answers: list[Answer] = []

    def ask(self, prompt: str) -> None:
        """Answer *prompt*: ask the model, run what it calls, until it calls nothing more.

        Raises:
            AileronError: the model could not be asked, or its answer not used; what ran, ran.
            KeyboardInterrupt: likewise; the history stays one that a model accepts.
        """
        format_ = self._client.format
        self.calls.made.clear()
        self._answers.clear()
        self._history.append(format_.user(prompt))
        for _ in range(self._options.max_turns):
            answer = self._ask_model()
            self._history += format_.turn(answer)
            if answer.calls:
                try:
                    self.calls.run(answer.calls)
                finally:
                    self._history += format_.results(self.calls.results())
            elif answer.stop.kind == "tools":
                raise ModelFormatError(
                    f"{self._options.model} says that it calls tools ({answer.stop.reason}), and its "
                    "answer has no call. Ask again, or use a model that can call tools."
                )
            elif answer.stop.kind != "paused":
                if answer.stop.kind == "length" and self._printer is not None:
                    say([f"The answer was cut off ({answer.stop.reason})."])
                return
        raise ResourceLimitExceeded(
            f"{self._options.model} was asked {self._options.max_turns} times and still calls tools. "
            "Give more with --max-turns, or ask for less at once."
        )

    def _ask_model(self) -> Answer:
        request = self._client.format.request(
            model=self._options.model,
            system=self._system,
            history=self._history,
            tools=self._tools,
            stream=True,
            # Only Messages wants a limit; the name of that of Chat Completions depends on the model.
            max_tokens=self._options.max_tokens if self._messages else None,
        )
        try:
            answer = self._client.ask(request, self._show)
        finally:
            if self._printer is not None:
                self._printer.end()
        if answer.error is not None:
            raise ExternalApiError(f"{self._options.model} failed: {answer.error.message}")
        self._answers.append(answer)
        return answer

    def _show(self, event: Event) -> None:
        if self._printer is None:
            return
        for part in event.parts:
            if isinstance(part, TextDelta | RefusalDelta):
                self._printer.add(part.text)

    def to_json(self, *, interrupted: bool) -> dict[str, Any]:
        """Return what came of the last prompt."""
        last = self._answers[-1] if self._answers else None
        return {
            "status": "interrupted" if interrupted else "completed",
            "text": "" if last is None else last.text or last.refusal,
            "calls": [
                {"action": call.action, "status": call.status, "id": call.id}
                for call in self.calls.made
            ],
            "usage": {
                "input_tokens": sum(each.usage.input for each in self._answers),
                "output_tokens": sum(each.usage.output for each in self._answers),
            },
        }


class _Printer:
    """Prints a model's text word by word as it comes; a terminal obeys nothing in it."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._word = ""
        self._in_line = False

    def add(self, text: str) -> None:
        *lines, self._word = (self._word + text).replace("\r\n", "\n").split("\n")
        for line in lines:
            self._write(_visible(line) + "\n")
            self._in_line = False
        cut = self._word.rfind(" ") + 1
        if len(self._word) > _LONGEST_WORD:
            cut = len(self._word)
        if cut:
            self._write(_visible(self._word[:cut]))
            self._word, self._in_line = self._word[cut:], True

    def end(self) -> None:
        """Print what is left, and end the line."""
        if self._word or self._in_line:
            self._write(_visible(self._word) + "\n")
        self._word, self._in_line = "", False


def _visible(text: str) -> str:
    return escape(text.replace("\t", "    "))
