"""`aileron run`: a prompt or a conversation with a model in augment mode, and a person at this terminal."""

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import click

from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.errors import (
    AileronError,
    ConsoleErrorResponse,
    ExternalApiError,
    InvalidRequest,
    ModelFormatError,
    ResourceLimitExceeded,
)
from aileron_core.home.client import HomeClient
from aileron_core.launch.interfaces import LaunchedSession
from aileron_core.models.json_values import JsonDict
from aileron_core.models.neutral import Answer, ToolResult
from aileron_core.text import escape
from aileron_tui.cli.launching import HomeSessions
from aileron_tui.cli.model_client import ModelClient, key_for, provider_for
from aileron_tui.cli.output import EXIT, CommandContext, exit_code, report_error

_LONGEST_TEXT = 1024 * 1024
_LONGEST_WORD = 200
_STOPPED = "Stopped here. Do nothing more about this unless the user asks again."
_MOST_ASKED = 32
"""How often it is told for one prompt that there is no such tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `aileron run` was asked for."""

    model: str
    api: str | None
    base_url: str | None
    key_variable: str | None
    system: str | None
    prompt: str | None
    max_tokens: int | None


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of the model's, as the console says that it stands."""

    action: str
    status: str
    id: str
    """Of its approval or its run, once the console has said it."""

    def line(self) -> str:
        return f"{self.action}: {self.status}" + (f" ({self.id})" if self.id else "")


def run_agent(context: CommandContext, **given: Any) -> int:
    """Answer one prompt, or hold a conversation where a person types at a terminal; return the exit code."""
    options = RunOptions(**given)
    api = options.api or provider_for(options.model)
    system, prompt = _texts(context, options, api)
    key = None
    if options.base_url is not None:
        key = key_for(options.base_url, options.key_variable)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _end)
    sessions = HomeSessions(context.home)
    terms = SessionTerms(
        augment=True,
        base_url=options.base_url or "",
        key_providers=(api,) if options.base_url is None else (),
    )
    with contextlib.ExitStack() as stack:
        session = sessions.open(
            agent="aileron run", label=Path.cwd().name, cwd=Path.cwd(), contained=False, terms=terms
        )
        stack.callback(sessions.end, session.session_id)
        hold = sessions.hold(session, lambda _: None)
        stack.callback(hold.stop)
        hold.start()
        client = ModelClient(api, session, key)
        stack.callback(client.close)
        printer = Printer(None if context.json else lambda text: click.echo(text, nl=False))
        home = HomeClient(context.home)
        conversation = Conversation(client, home, session, options, system, printer)
        if prompt is None:
            return _converse(context, conversation)
        return _answer_once(context, conversation, prompt)


def _end(number: int, _frame: object) -> NoReturn:
    """End as after an error: the session ends, and what waits is withdrawn."""
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
        if conversation.calls:
            say(conversation.summary())
        report_error(context, error)
    elif code == EXIT.INTERRUPTED:
        say(["Interrupted.", *conversation.summary()])
    return code


def _converse(context: CommandContext, conversation: "Conversation") -> int:
    """Read what the person types until Ctrl-D; Ctrl-C ends an answer, not the conversation."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 # pyright: ignore[reportUnusedImport] - line editing for input()
    shown = "> " if sys.stdout.isatty() else ""
    ended: BaseException | None = None
    asking = False
    while True:
        try:  # reporting the last answer is inside: a second Ctrl-C must not end the conversation
            if isinstance(ended, AileronError):
                report_error(context, ended)
            elif ended is not None:
                click.echo(err=True)
                say(["Interrupted.", *conversation.summary()] if asking else [])
            ended, asking = None, False
            if not shown:
                click.echo("> ", nl=False, err=True)
            prompt = read_line(shown)
            if prompt.strip():
                asking = True
                conversation.ask(prompt)
        except EOFError:
            click.echo(err=not shown)
            return EXIT.DONE
        except (KeyboardInterrupt, AileronError) as raised:
            ended = raised


class Conversation:
    """The history with one model, whose calls are made on the way: see docs/augment.md."""

    def __init__(
        self,
        client: ModelClient,
        home: HomeClient,
        session: LaunchedSession,
        options: RunOptions,
        system: str,
        printer: "Printer",
    ) -> None:
        self.calls: dict[str, Call] = {}
        """Since the last prompt."""
        self._client = client
        self._home = home
        self._session = session
        self._options = options
        self._system = system
        self._printer = printer
        self._history: list[JsonDict] = []
        self._answers: list[Answer] = []
        """To the person's last prompt."""
        self._said: list[str] = []
        """The model's text since its last call."""

    def ask(self, prompt: str) -> None:
        """Answer *prompt*, calls included.

        Raises:
            AileronError: the model could not be asked, or its answer not used; calls may have run.
            KeyboardInterrupt: likewise. The history stays one that a model accepts.
        """
        before = len(self._history)
        for kept in (self.calls, self._answers, self._said):
            kept.clear()
        self._history.append(self._client.format.user(prompt))
        try:
            for _ in range(_MOST_ASKED):
                if self._is_done(self._ask_model()):
                    return
            raise ResourceLimitExceeded(
                f"{self._options.model} was asked {_MOST_ASKED} times and still calls tools that do not exist."
            )
        except BaseException as error:
            if not isinstance(error, SystemExit):
                self._settle()
            if not self.calls and len(self._history) == before + 1:
                del self._history[before:]  # as if it had not been asked
            else:
                stopped = " ".join([_STOPPED, *self.summary()])
                self._history.append({"role": "assistant", "content": f"({stopped})"})
            raise

    def summary(self) -> list[str]:
        """Return what was called since the last prompt, as lines."""
        if not self.calls:
            return ["No action was called."]
        return ["What was called:", *(f"  {call.line()}" for call in self.calls.values())]

    def _settle(self) -> None:
        """Ask how the calls ended that waited for a person: nobody reads the answer, so they are withdrawn."""
        for call in self.calls.values():
            if call.status == "pending_approval":
                with contextlib.suppress(AileronError):
                    path = f"/v1/action-approvals/{call.id}/result?wait=20"
                    body = self._home.request("GET", path, token=self._session.token)[1]
                    call.status, call.id = body["status"], body["audit_id"]

    def _is_done(self, answer: Answer) -> bool:
        """Return whether *answer* is the last: the calls in it are of tools that nobody offered."""
        format_, stop, model = self._client.format, answer.stop, self._options.model
        if answer.calls:
            results = [
                ToolResult(call_id=each.id, is_error=True, text=f"There is no tool {each.name[:128]!r}. Use the tools that are offered.")
                for each in answer.calls
            ]  # fmt: skip
            self._history += [*format_.turn(answer), *format_.results(results)]
            return False
        if stop.kind == "tools":
            raise ModelFormatError(
                f"{model} announced calls ({stop.reason}) but made none. Ask again, or use a model that "
                "can call tools."
            )
        if answer.text or answer.refusal or self.calls or stop.kind == "paused":
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
            max_tokens=self._options.max_tokens,
        )
        try:
            answer = self._client.ask(request, self._text, self._called)
        finally:
            self._printer.end()
        if answer.error is not None or answer.stop.kind == "error":
            said = answer.error.message if answer.error is not None else answer.stop.reason
            raise ExternalApiError(f"{model} failed: {said[:500]}")
        self._answers.append(answer)
        return answer

    def _text(self, text: str) -> None:
        self._said.append(text)
        self._printer.add(text)

    def _called(self, said: JsonDict) -> None:
        """Take what the console says of one call."""
        call = Call(action=said["action"], status=said["status"], id=said["id"])
        is_new, self.calls[said["call"]] = said["call"] not in self.calls, call
        self._said.clear()
        self._printer.end()
        if call.status == "pending_approval":
            self._printer.notice(
                f"{call.action} is waiting for your answer in the console ({call.id})."
            )
        elif not is_new:
            self._printer.notice(call.line())

    def to_json(self, error: AileronError | None, *, interrupted: bool) -> dict[str, Any]:
        """Return the outcome of the last prompt."""
        said: dict[str, Any] = {
            "status": "interrupted" if interrupted else "failed" if error else "completed",
            "text": "".join(self._said),
            "stop": self._answers[-1].stop.reason if self._answers else "",
            "calls": [dataclasses.asdict(call) for call in self.calls.values()],
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


def say(lines: Iterable[str]) -> None:
    """Print *lines* to stderr: standard output is the model's."""
    for line in lines:
        click.echo(f"aileron: {escape(line)}", err=True)


def _visible(text: str) -> str:
    return escape(text.replace("\t", "    "))
