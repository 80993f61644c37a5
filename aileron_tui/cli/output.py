"""What every command shares: printing (JSON in ASCII), the error body of `--json`, exit codes."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from aileron_core.errors import (
    AileronError,
    ConsoleErrorResponse,
    ConsoleUnavailable,
    FileProblems,
    InternalError,
)
from aileron_core.text import escape

UNATTENDED = "The vault is unlocked, unattended: by a file or variable, not by anybody's key."


class EXIT:
    """Exit codes, as in docs/command-line.md#exit-codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_CONSOLE = 69
    OUR_BUG = 70
    PENDING = 75
    DENIED = 76
    NOT_ALLOWED = 77
    INTERRUPTED = 130


_CLASSES = {EXIT.USAGE: "invalid_request", EXIT.OUR_BUG: "internal_error"}


class CliError(AileronError):
    """An error of the command line with an exit code of its own; its class follows from that."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.class_ = _CLASSES.get(code, "unavailable")  # type: ignore[misc]
        self.retriable = self.class_ == "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """How this command was called."""

    home: Path
    json: bool
    color: bool

    def say(self, text: str, **style: Any) -> None:
        """Print a line, except with `--json`. Foreign text in it must have gone through `escape`."""
        if not self.json:
            click.echo(click.style(text, **style) if self.color and style else text)

    def show(self, value: Any) -> None:
        """Print one JSON object, with `--json` alone."""
        if self.json:
            click.echo(safe_json(value))


def say_connector(context: CommandContext, words: str, connector: Mapping[str, Any]) -> None:
    """Print after *words* which connector it is, and what it reaches: `name`, `version`, `hash`, `hosts`."""
    context.say(f"{words} {escape(connector['name'])}@{connector['version']}")
    context.say(f"    {connector['hash']}")
    context.say(f"    reaches {escape(', '.join(connector['hosts']) or 'no host')}")


def kilobytes(size: int) -> str:
    return f"{size / 1000:,.1f} kB"


def own_program() -> str:
    """Return what a person types to run this `aileron`: a path, where its name leads to none or another."""
    program = Path(sys.executable).with_name("aileron")
    found = shutil.which("aileron")
    if not program.exists() or (found is not None and program.samefile(found)):
        return "aileron"
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)


def did_you_mean(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return a sentence, after a blank, that names the word of *known* nearest to *word*; or nothing.

    *likeness*: from 0 to 1; ids are all alike, and want more of it than names.
    """
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1, cutoff=likeness)
    return f" Did you mean {close[0]}?" if close else ""


_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def local_time(text: str) -> str:
    """Return a time of the wire, RFC 3339 in UTC, on the clock of the person's own place; other text unchanged."""
    if not _UTC.fullmatch(text):
        return text
    try:
        moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).astimezone()
    except (ValueError, OverflowError):
        return text
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def safe_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON in printable ASCII: a terminal obeys nothing in it."""
    return json.dumps(value, ensure_ascii=True, indent=indent).replace("\x7f", "\\u007f")


_BY_CLASS = {
    "unauthorized": EXIT.NOT_ALLOWED,
    "forbidden": EXIT.NOT_ALLOWED,
    "capability_denied": EXIT.NOT_ALLOWED,
    "invalid_arguments": EXIT.USAGE,
    "invalid_request": EXIT.USAGE,
}


def exit_code(error: AileronError) -> int:
    """Return the exit code that *error*, or the failure that the console answered with, ends a command with."""
    if isinstance(error, CliError):
        return error.code
    if isinstance(error, ConsoleUnavailable):
        return EXIT.NO_CONSOLE
    if isinstance(error, ConsoleErrorResponse):
        bug = error.failure.class_ == InternalError.class_
        return EXIT.OUR_BUG if bug else _BY_CLASS.get(error.failure.class_, EXIT.FAILED)
    if isinstance(error, InternalError):
        return EXIT.OUR_BUG
    return _BY_CLASS.get(error.class_, EXIT.FAILED)


def report_error(context: CommandContext, error: AileronError) -> int:
    """Print what failed, as a sentence on stderr or an error body on stdout; return the exit code."""
    if context.json:
        failure = error.failure if isinstance(error, ConsoleErrorResponse) else error.to_failure()
        body: dict[str, Any] = {"error": failure.to_json()}
        if isinstance(error, FileProblems):
            body["problems"] = [problem.to_json() for problem in error.problems]
        context.show(body)
    else:
        for line in error.message.split("\n"):
            click.echo(f"aileron: {escape(line)}", err=True)
    return exit_code(error)
