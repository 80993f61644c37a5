"""`aileron run`: a model with the accepted actions as its tools, and a person at this terminal."""

import contextlib
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import click

from aileron_core.errors import (
    AileronError,
    ConsoleErrorResponse,
    ExternalApiError,
    InvalidRequest,
    ModelFormatError,
    ResourceLimitExceeded,
)
from aileron_core.home.client import HomeClient
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import Answer
from aileron_core.text import escape
from aileron_tui.cli.launching import HomeSessions
from aileron_tui.cli.model_calls import Calls, say
from aileron_tui.cli.model_client import ModelClient, direct_client, gateway_client, provider_for
from aileron_tui.cli.output import EXIT, CommandContext, exit_code, report_error

_LONGEST_TEXT = 1024 * 1024
_LONGEST_WORD = 200
_STOPPED = "(Stopped here. Do nothing more about this unless the user asks again.)"


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
    max_tokens: int | None


def run_agent(context: CommandContext, options: RunOptions) -> int:
    """Answer one prompt, or hold a conversation where a person types at a terminal; return the exit code."""
    api = options.api or provider_for(options.model)
    system, prompt = _texts(context, options, api)
    client = None
    if options.base_url is not None:
        client = direct_client(api, options.base_url, options.key_variable)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _end)
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
        client = client or gateway_client(api, session)
        stack.callback(client.close)
        calls = Calls(HomeClient(context.home), session.token, quiet=context.json)
        printer = Printer(None if context.json else lambda text: click.echo(text, nl=False))
        conversation = Conversation(client, calls, options, system, printer)
        if prompt is None:
            return _converse(context, conversation)
        return _answer_once(context, conversation, prompt)


def _end(number: int, _frame: object) -> NoReturn:
    """End as after an error: pending calls are withdrawn, and the session ends."""
    raise SystemExit(128 + number)


def _texts(context: CommandContext, options: RunOptions, api: str) -> tuple[str, str | None]:
    """Return the system prompt, and the prompt; None for a conversation.

    Raises:
        InvalidRequest: they, or the options, do not go together or cannot be used.
    """
    if options.key_variable is not None and options.base_url is None:
        raise InvalidRequest("--key-variable is for the server of --base-url. Give both.")
    if options.max_tokens is not None and api != "anthropic":
        raise InvalidRequest("--max-tokens is for the anthropic API alone. Leave it out.")
    system = ""
    if options.system is not None:
        with Path(options.system).open("rb") as opened:
            system = _text(opened, options.system)
    if (prompt := options.prompt) is None and (sys.stdin is None or not sys.stdin.isatty()):
        prompt = "" if sys.stdin is None else _text(sys.stdin.buffer, "The prompt")
    if prompt is not None and not prompt.strip():
        raise InvalidRequest("The prompt is empty.")
    if prompt is not None and not _is_utf8(prompt):
        raise InvalidRequest("The prompt is not UTF-8 text.")
    if prompt is None and context.json:
        raise InvalidRequest("A conversation prints no JSON. Give a prompt.")
    return system, prompt


def _text(file: BinaryIO, name: str) -> str:
    data = file.read(_LONGEST_TEXT + 1)
    if len(data) > _LONGEST_TEXT:
        raise InvalidRequest(f"{name} is over 1 MiB. Give a shorter one.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{name} is not UTF-8 text.") from None


def _is_utf8(text: str) -> bool:
    """Whether no byte of *text* came as a surrogate, as Python has those that it cannot decode."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def read_line(mark: str) -> str:
    """Return what the person types.

    Raises:
        InvalidRequest: it is not UTF-8.
        EOFError: they pressed Ctrl-D.
    """
    with contextlib.suppress(UnicodeDecodeError):
        if _is_utf8(line := input(mark)):
            return line
    raise InvalidRequest("That line is not UTF-8 text. Type it again.")


def _answer_once(context: CommandContext, conversation: "Conversation", prompt: str) -> int:
    error, code = None, EXIT.DONE
    try:
        conversation.ask(prompt)
    except KeyboardInterrupt:
        code = EXIT.INTERRUPTED
    except AileronError as raised:
        error, code = raised, exit_code(raised)
    if context.json:
        context.show(conversation.to_json(error, interrupted=code == EXIT.INTERRUPTED))
    elif error is not None:
        if conversation.calls.made:
            say(conversation.calls.summary())
        report_error(context, error)
    elif code == EXIT.INTERRUPTED:
        say(["Interrupted.", *conversation.calls.summary()])
    return code


def _converse(context: CommandContext, conversation: "Conversation") -> int:
    """Read what the person types until Ctrl-D; Ctrl-C ends an answer, not the conversation."""
    with contextlib.suppress(ImportError):
        import_module("readline")  # line editing for input()
    shown = "> " if sys.stdout.isatty() else ""
    ended: BaseException | None = None
    asking = False
    while True:
        try:  # reporting the last answer is inside: a second Ctrl-C must not end the conversation
            if isinstance(ended, AileronError):
                report_error(context, ended)
            elif ended is not None:
                click.echo(err=True)
                say(["Interrupted.", *conversation.calls.summary()] if asking else [])
            ended, asking = None, False
            if not shown:
                click.echo("> ", nl=False, err=True)
            prompt = read_line(shown)
            if prompt.strip():
                conversation.calls.made.clear()
                asking = True
                conversation.ask(prompt)
        except EOFError:
            click.echo(err=not shown)
            return EXIT.DONE
        except (KeyboardInterrupt, AileronError) as raised:
            ended = raised


class Conversation:
    """The history with one model, and the loop that answers a prompt."""

    def __init__(
        self,
        client: ModelClient,
        calls: Calls,
        options: RunOptions,
        system: str,
        printer: "Printer",
    ) -> None:
        self.calls = calls
        self._client = client
        self._options = options
        self._system = system
        self._printer = printer
        self._tools = calls.tools()
        self._history: list[JsonDict] = []
        self._answers: list[Answer] = []
        """To the person's last prompt."""

    def ask(self, prompt: str) -> None:
        """Answer *prompt*: ask the model, make its calls, until it makes no more.

        Raises:
            AileronError: the model could not be asked, or its answer not used; calls may have run.
            KeyboardInterrupt: likewise. The history stays one that a model accepts.
        """
        before = len(self._history)
        self._answers.clear()
        self._history.append(self._client.format.user(prompt))
        try:
            for _ in range(self._options.max_turns):
                if self._is_done(self._ask_model()):
                    return
            raise ResourceLimitExceeded(
                f"{self._options.model} was asked {self._options.max_turns} times and still makes calls. "
                "Raise --max-turns, or ask for less at once."
            )
        except BaseException:
            if len(self._history) == before + 1:
                del self._history[before:]  # as if it had not been asked
            else:
                self._history.append({"role": "assistant", "content": _STOPPED})
            raise

    def _is_done(self, answer: Answer) -> bool:
        """Make the calls of *answer*, and return whether it is the last."""
        format_, stop, model = self._client.format, answer.stop, self._options.model
        if answer.calls:
            calls = self.calls.prepare(answer.calls, cut_off=stop.kind != "tools")
            try:
                if stop.kind == "tools":
                    self.calls.make(calls)
            finally:
                results = format_.results([call.result() for call in calls])
                self._history += [*format_.turn(answer), *results]
            return False
        if stop.kind == "tools":
            raise ModelFormatError(
                f"{model} announced calls ({stop.reason}) but made none. Ask again, or use a model that "
                "can call tools."
            )
        if answer.text or answer.refusal or stop.kind == "paused":
            self._history += format_.turn(answer)
        if stop.kind == "length" or (stop.kind == "refusal" and answer.text):
            self._printer.notice(f"The answer was cut off ({stop.reason}).")
        elif not (answer.text or answer.refusal) and stop.kind != "paused":
            self._printer.notice(f"{model} answered with no text ({stop.reason}).")
        return stop.kind != "paused"

    def _ask_model(self) -> Answer:
        model = self._options.model
        request = self._client.format.request(
            model=model,
            system=self._system,
            history=self._history,
            tools=self._tools,
            max_tokens=self._options.max_tokens,
        )
        try:
            answer = self._client.ask(request, self._printer.add)
        finally:
            self._printer.end()
        if answer.error is not None or answer.stop.kind == "error":
            said = answer.error.message if answer.error is not None else answer.stop.reason
            raise ExternalApiError(f"{model} failed: {said[:500]}")
        self._answers.append(answer)
        return answer

    def to_json(self, error: AileronError | None, *, interrupted: bool) -> dict[str, Any]:
        """Return the outcome of the last prompt."""
        texts: list[str] = []  # of the answers since the last call
        for answer in self._answers:
            texts = [] if answer.calls else [*texts, answer.text or answer.refusal]
        said: dict[str, Any] = {
            "status": "interrupted" if interrupted else "failed" if error else "completed",
            "text": "".join(texts),
            "stop": self._answers[-1].stop.reason if self._answers else "",
            "calls": [
                {"action": call.action, "status": call.status, "id": call.id}
                for call in self.calls.made
            ],
            "usage": {
                "input_tokens": sum(each.usage.input for each in self._answers),
                "output_tokens": sum(each.usage.output for each in self._answers),
            },
        }
        if error is not None:
            refused = isinstance(error, ConsoleErrorResponse)
            said["error"] = (error.failure if refused else error.to_failure()).to_json()
        return said


class Printer:
    """Prints a model's text word by word as it comes; a terminal obeys nothing in it.

    Args:
        write: prints a piece; None where nothing is to be printed.
    """

    def __init__(self, write: Callable[[str], object] | None) -> None:
        self._write = write
        self._word = ""
        self._in_line = False

    def add(self, text: str) -> None:
        if self._write is None:
            return
        *lines, self._word = (self._word + text).replace("\r\n", "\n").split("\n")
        for line in lines:
            self._write(_visible(line) + "\n")
            self._in_line = False
        cut = self._word.rfind(" ") + 1
        if len(self._word) > _LONGEST_WORD:
            cut = len(self._word.removesuffix("\r"))  # its newline may come
        if cut:
            self._write(_visible(self._word[:cut]))
            self._word, self._in_line = self._word[cut:], True

    def end(self) -> None:
        """Print what is left, and end the line."""
        if self._write is not None and (self._word or self._in_line):
            self._write(_visible(self._word) + "\n")
        self._word, self._in_line = "", False

    def notice(self, line: str) -> None:
        """Say *line* to the person, beside the text."""
        if self._write is not None:
            say([line])


def _visible(text: str) -> str:
    return escape(text.replace("\t", "    "))
