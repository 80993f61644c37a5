"""The options that every command takes, and how every command begins and ends."""

import functools
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from aileron_core.clock import SystemClock, rfc3339
from aileron_core.errors import AileronError, InvalidRequest
from aileron_core.home.layout import DEFAULT_HOME
from aileron_core.text import escape
from aileron_tui.cli.output import (
    EXIT,
    CliError,
    CommandContext,
    did_you_mean,
    report_error,
    safe_json,
)
from aileron_tui.cli.process import Given

_F = TypeVar("_F", bound=Callable[..., Any])
_JSON_ASKED = "aileron.json"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _shared_option(context: click.Context, name: str) -> Any:
    """Return a shared option as it was given: the one nearest to the command counts, wherever it stood."""
    at: click.Context | None = context
    while at is not None:
        if value := at.params.get(name):
            return value
        at = at.parent
    return None


def chosen_home(context: click.Context) -> Path:
    """Return the home that the command line means, from option, environment or default."""
    chosen = _shared_option(context, "home") or os.environ.get("AILERON_HOME") or str(DEFAULT_HOME)
    return Path(chosen).expanduser().absolute()


def _shared_options(function: _F) -> _F:
    """Give a command or group the options that every command takes."""
    for option in (
        click.option("--no-color", is_flag=True, help="Print without colour."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        click.option(
            "--home",
            metavar="DIR",
            shell_complete=folders,
            help="Aileron's home folder (default: $AILERON_HOME or ~/.aileron).",
        ),
    ):
        function = option(function)
    return function


def _entry(function: "str | Callable[..., int]") -> Callable[..., None]:
    """Return what calls *function*, and ends with an exit code: no traceback reaches the terminal."""

    @_shared_options
    def run(home: str | None, as_json: bool, no_color: bool, **arguments: Any) -> None:
        given = click.get_current_context()
        color = not _shared_option(given, "no_color") and "NO_COLOR" not in os.environ
        context = CommandContext(
            home=chosen_home(given),
            json=bool(_shared_option(given, "as_json")),
            color=color and sys.stdout.isatty(),
        )
        try:
            code = (_imported(function) if isinstance(function, str) else function)(
                context, **arguments
            )
        except AileronError as error:
            code = report_error(context, error)
        except (KeyboardInterrupt, click.Abort):  # Abort: at a question
            code = EXIT.INTERRUPTED
        except BrokenPipeError:
            raise  # the reader closed the pipe; click ends quietly
        except (OSError, sqlite3.Error) as error:
            code = report_error(context, CliError(EXIT.FAILED, _system_refusal(error)))
        except Exception as error:  # noqa: BLE001 - the program's edge: no traceback on a terminal
            kind = type(error).__name__
            sentence = f"Aileron failed with an internal error ({kind}). Please report it, with the command that you ran."
            code = report_error(context, CliError(EXIT.OUR_BUG, sentence))
        sys.exit(code or EXIT.DONE)

    return run


def _imported(target: str) -> Callable[..., int]:
    """Return the function `module.name` of this package: only the command that runs is imported."""
    module, _, name = target.partition(".")
    found: Callable[..., int] = getattr(import_module(f"aileron_tui.cli.{module}"), name)
    return found


def _system_refusal(error: OSError | sqlite3.Error) -> str:
    """Return the operating system's error and the file that it names."""
    if isinstance(error, sqlite3.Error):
        return f"The home's database cannot be read: {error}. Restore it from a backup."
    what = f"{error.filename}: " if error.filename else ""
    return f"{what}{error.strerror or type(error).__name__}."


def flag(name: str, what: str) -> Callable[[_F], _F]:
    """Give a command an option without a value; *what* it does, for the help."""
    return click.option(name, is_flag=True, help=what)


def limit_option(of_what: str, *, least: int = 1) -> Callable[[_F], _F]:
    """Give a command that lists `-n` and `--limit`, spelled and bounded alike in every command."""
    return click.option(
        "-n",
        "--limit",
        type=WholeNumber(least, 1_000_000),
        default=50,
        show_default=True,
        metavar="N",
        help=f"How many {of_what} to show, counted from the newest.",
    )


published_options = (
    click.option("--route", "routes", multiple=True, metavar="HOST:PORT=127.0.0.1:PORT", help="For tests: fetch a host's files from a service on this machine."),
    flag("--unsigned", "Take a published suite that nobody signed."),
)  # fmt: skip


def passphrase_options(what: str) -> Callable[[_F], _F]:
    """Give a command the two ways of a passphrase that nobody types, as `passphrase`; *what* begins their help."""
    return _given_options("passphrase", f"{what} can be read from", f"{what} is in")


def secret_options(what: str) -> Callable[[_F], _F]:
    """Give a command the two ways of a secret that nobody types, as `secret`; *what* is its noun in their help."""
    return _given_options("secret", f"Read the {what} from", f"Read the {what} from")


def _given_options(name: str, by_descriptor: str, by_file: str) -> Callable[[_F], _F]:
    def add(function: _F) -> _F:
        @functools.wraps(function)
        def wrapped(**arguments: Any) -> Any:
            given: Given = (arguments.pop(f"{name}_fd"), arguments.pop(f"{name}_file"))
            return function(**arguments, **{name: given})

        file = click.option(
            f"--{name}-file",
            metavar="PATH",
            shell_complete=paths,
            help=f"{by_file} a file that only you can read (0600), in no project.",
        )
        descriptor = click.option(
            f"--{name}-fd",
            type=click.IntRange(0),
            metavar="N",
            help=f"{by_descriptor} file descriptor N.",
        )
        return descriptor(file(wrapped))  # type: ignore[return-value]

    return add


class WholeNumber(click.IntRange):
    """A whole number within two bounds, which help and messages give in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number from {self._describe_range()}.", param, ctx)

    def _describe_range(self) -> str:
        return f"{self.min} to {self.max}"


class Number(click.FloatRange):
    """A number of at least *min*, which help and messages give in words."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number of {self._describe_range()}.", param, ctx)

    def _describe_range(self) -> str:
        return f"{self.min:g} or more"


class Since(click.ParamType[float]):
    """A moment: so long ago, or a date or time on the clock of the person's own place; given on in epoch seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the moment that *value* is."""
        ago = re.fullmatch(r"(\d{1,6})([smhd])", value)
        try:
            if ago is not None:
                moment = SystemClock().now() - int(ago[1]) * _SECONDS[ago[2]]
            else:
                moment = datetime.fromisoformat(value).timestamp()
            rfc3339(moment)  # records have their times so: not every moment can be written
        except (ValueError, OverflowError, OSError):
            self.fail(
                f"{value!r} is neither a time like 12h or 7d nor one like 2026-07-14T09:30.",
                param,
                ctx,
            )
        return moment


class OneOf(click.Choice[str]):
    """One of a few words; a message about it is one line, and names the nearest."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the words that are allowed."""
        return f"Choose {self._either()}."

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the words that are allowed, and the one that was perhaps meant."""
        return (
            f"{value!r} is not one of {', '.join(self.choices)}.{did_you_mean(value, self.choices)}"
        )

    def _either(self) -> str:
        *others, last = self.choices
        return f"{', '.join(others)} or {last}"


class LaunchCommand(click.Command):
    """`aileron launch`: with `--augment`, its first argument is any program, and the rest that program's own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read options in front of the program alone, where it is one."""
        before = args[: args.index("--")] if "--" in args else args
        if "--augment" in before:
            ctx.allow_interspersed_args = False
        return super().parse_args(ctx, args)


class OneOfUnlessAugmented(OneOf):
    """`OneOf`, or with `--augment` anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, or what is to be run."""
        if ctx is not None and ctx.params.get("augment"):
            return value
        return super().convert(value, param, ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the words that are allowed, or that anything is."""
        if ctx is not None and ctx.params.get("augment"):
            return "Name a program after --augment."
        return super().get_missing_message(param, ctx)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the words that are allowed, and how anything else is launched."""
        known = super().get_invalid_choice_message(value, ctx)
        return f"{known} For another program: `aileron launch --augment PROGRAM`."


def paths(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Leave files and folders to the shell."""
    return [CompletionItem(incomplete, type="file")]


def folders(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Leave folders to the shell."""
    return [CompletionItem(incomplete, type="dir")]


class Group(click.Group):
    """Commands under one word."""

    def add(
        self,
        word: str,
        function: str | Callable[..., int],
        what: str,
        *parameters: Callable[[Any], Any],
        examples: Sequence[str],
        **settings: Any,
    ) -> None:
        """Add a command.

        Args:
            function: called with the `CommandContext` and the parameters, it returns the exit code; as
                `module.name` of this package it is imported once the command runs.
            what: its help.
            examples: the command lines at the end of the help.
        """
        entry = _entry(function)
        for each in reversed(parameters):
            entry = each(entry)
        epilog = _epilog(examples)
        self.add_command(click.command(word, help=what, epilog=epilog, **settings)(entry))


class Program(Group):
    """The root of the commands. With `--json`, a usage error is printed as an error body."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the options before the command's name."""
        asked = _asks_for_json(args)
        with _ending(asked=asked):
            context = super().make_context(info_name, args, parent, **extra)
        context.meta[_JSON_ASKED] = asked
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the rest and run the command."""
        with _ending(asked=bool(ctx.meta.get(_JSON_ASKED))):
            return super().invoke(ctx)


def group(
    word: str,
    what: str,
    *parameters: Callable[[Any], Any],
    examples: Sequence[str],
    cls: type[Group] = Group,
    **settings: Any,
) -> Group:
    """Return a group with the options that every command takes; its commands look for them there."""
    begin: Any = _do_nothing
    for each in (_shared_options, *parameters):
        begin = each(begin)
    return click.group(word, cls=cls, help=what, epilog=_epilog(examples), **settings)(begin)


def _do_nothing(**_: Any) -> None: ...


def _epilog(examples: Sequence[str]) -> str:
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in examples)))


def _asks_for_json(words: Sequence[str]) -> bool:
    before = words[: words.index("--")] if "--" in words else words
    return "--json" in before


@contextmanager
def _ending(*, asked: bool) -> Generator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(EXIT.INTERRUPTED) from None
    except click.UsageError as error:
        helps = isinstance(error, click.exceptions.NoArgsIsHelpError)
        if not asked and helps:
            raise
        # It quotes the command line, which may hold text from outside.
        message = (
            "No command given. `--help` lists the commands." if helps else error.format_message()
        )
        if not asked:
            raise click.UsageError(escape(message), ctx=error.ctx) from error
        body = {"error": InvalidRequest(message).to_failure().to_json()}
        click.echo(safe_json(body))
        raise click.exceptions.Exit(EXIT.USAGE) from error
