"""What every command shares: options, printing, exit codes (WIRE.md, Command line)."""

import functools
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from aileron_core.errors import (
    AileronError,
    ConsoleAbsent,
    Failure,
    FileProblems,
    InternalError,
)
from aileron_core.storage.home import DEFAULT_HOME
from aileron_core.text import escape

__all__ = [
    "EXIT",
    "Context",
    "Fault",
    "Refused",
    "command_options",
    "exit_code",
    "safe_json",
    "shared_options",
]

_F = TypeVar("_F", bound=Callable[..., Any])


class EXIT:
    """Exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_CONSOLE = 69
    OUR_BUG = 70
    PENDING = 75
    DENIED = 76
    NOT_ALLOWED = 77
    INTERRUPTED = 130


class Refused(AileronError):
    """The console answered with an error; `failure` is what it said."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, details=failure.details)
        self.failure = failure


class Fault(AileronError):
    """A command that ends with an exit code of its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.class_ = "invalid_request" if code == EXIT.USAGE else "unavailable"  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """How this command was called."""

    home: Path
    json: bool
    color: bool

    def say(self, text: str, **style: Any) -> None:
        """Print a line of ours; outside text in it went through `escape`."""
        click.echo(click.style(text, **style) if self.color and style else text)

    def show(self, value: Any) -> None:
        """Print one JSON object."""
        click.echo(safe_json(value))


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
    if isinstance(error, Fault):
        return error.code
    if isinstance(error, ConsoleAbsent):
        return EXIT.NO_CONSOLE
    if isinstance(error, Refused):
        bug = error.failure.class_ == InternalError.class_
        return EXIT.OUR_BUG if bug else _BY_CLASS.get(error.failure.class_, EXIT.FAILED)
    if isinstance(error, InternalError):
        return EXIT.OUR_BUG
    return _BY_CLASS.get(error.class_, EXIT.FAILED)


def _home(given: str | None) -> Path:
    chosen = given or os.environ.get("AILERON_HOME") or str(DEFAULT_HOME)
    return Path(chosen).expanduser().absolute()


def shared_options(function: _F) -> _F:
    """Give a command or group the options that stand everywhere (WIRE.md, Command line)."""
    for option in (
        click.option("--no-color", is_flag=True, help="Print without colour."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--home", metavar="DIR", help="Aileron's home (default: $AILERON_HOME, ~/.aileron)."
        ),
    ):
        function = option(function)
    return function


def command_options(function: _F) -> _F:
    """Give a command `--home`, `--json` and `--no-color`, and our way of ending."""

    @shared_options
    @functools.wraps(function)
    def wrapped(home: str | None, as_json: bool, no_color: bool, **arguments: Any) -> None:
        # The same options before the command's name count too.
        root = click.get_current_context().find_root().params
        home = home or root.get("home")
        as_json, no_color = as_json or root["as_json"], no_color or root["no_color"]
        color = not no_color and "NO_COLOR" not in os.environ and sys.stdout.isatty()
        context = Context(home=_home(home), json=as_json, color=color)
        try:
            code = function(context, **arguments)
        except AileronError as error:
            code = _told(context, error)
        except KeyboardInterrupt:
            code = EXIT.INTERRUPTED
        except BrokenPipeError:
            raise  # whoever read us has gone; click ends quietly
        except (OSError, sqlite3.Error) as error:
            code = _told(context, Fault(EXIT.FAILED, _outside(error)))
        except Exception as error:  # noqa: BLE001 - the program's edge: no traceback on a terminal
            kind = type(error).__name__
            fault = (
                f"A fault of Aileron's own ({kind}). Please report it with the command you gave."
            )
            code = _told(context, Fault(EXIT.OUR_BUG, fault))
        sys.exit(code or EXIT.DONE)

    return wrapped  # type: ignore[return-value]


def _outside(error: OSError | sqlite3.Error) -> str:
    """Say what the system refused, on what."""
    if isinstance(error, sqlite3.Error):
        return f"The home's database cannot be read: {error}. Restore it from a copy."
    what = f"{error.filename}: " if error.filename else ""
    return f"{what}{error.strerror or type(error).__name__}."


def _told(context: Context, error: AileronError) -> int:
    """Say what failed, as a sentence on stderr or as the one error body on stdout."""
    if context.json:
        failure = error.failure if isinstance(error, Refused) else error.to_failure()
        body: dict[str, Any] = {"error": failure.to_json()}
        if isinstance(error, FileProblems):
            body["problems"] = [problem.to_json() for problem in error.problems]
        context.show(body)
    else:
        for line in error.message.split("\n"):
            click.echo(f"aileron: {escape(line)}", err=True)
    return exit_code(error)
