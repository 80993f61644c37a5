"""What the commands say of themselves, on the terminal and on docs/command-line.md."""

import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from aileron_core.home import layout
from aileron_tui.cli import options
from aileron_tui.cli.commands import aileron
from aileron_tui.cli.options import _imported
from aileron_tui.cli.output import EXIT

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "command-line.md").read_text("utf-8")


def all_commands(
    command: click.Command = aileron, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        for word in command.list_commands(click.Context(command)):
            yield from all_commands(command.commands[word], (*words, word))


ALL = dict(all_commands())
RUN_BY_THEMSELVES = {("console",), ("serve",), ("mcp-relay",), ("version",), ("completion",)}
"""Commands whose function is given itself."""


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_says_its_job_whole(words: tuple[str, ...]) -> None:
    """In one sentence that the list shows to its end, with a word on every option, and the shared ones.

    A file is accepted or not, everywhere: there is no other word for it. The help ends in examples that
    the command takes, or for a group one in it, on one line each.
    """
    shown = CliRunner().invoke(aileron, [*words, "--help"], prog_name="aileron", terminal_width=80)
    assert shown.exit_code == 0
    assert "..." not in re.sub(r"\[ARGS\]\.\.\.|PATH\.\.\.", "", shown.output)
    assert ALL[words].help
    for option in ALL[words].params:
        if isinstance(option, click.Option):
            assert option.help, option.name
    names = {spelling for option in ALL[words].params for spelling in option.opts}
    assert {"--home", "--json", "--no-color"} <= names
    other = r"tak(e|en|es|ing) (it |them )?in\b|h[eo]ld\s+back"
    assert not re.search(other, shown.output, re.IGNORECASE)
    examples = shown.output.rstrip().partition("\n  Examples:\n")[2].splitlines()
    assert examples
    for each in examples:
        typed = re.sub(r'^eval "\$\((.*)\)"$', r"\1", each.strip())
        program, *rest = shlex.split(typed)
        assert program == "aileron"
        assert rest[: len(words)] == list(words)
        command, context = aileron, aileron.make_context("aileron", rest[:])
        while isinstance(command, click.Group):
            left = [*context._protected_args, *context.args]
            word, command, rest = command.resolve_command(context, left)
            context = command.make_context(word, list(rest), parent=context)
        assert not isinstance(command, click.Group)


def test_what_a_command_calls_takes_what_it_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function is named by a text, so that only what runs is imported: nothing else holds the two together."""
    called: list[str] = []

    def imported(target: str) -> Callable[..., int]:
        function = _imported(target)

        def call(*arguments: object, **options: object) -> int:
            inspect.signature(function).bind(*arguments, **options)
            called.append(target)
            return EXIT.DONE

        return call

    monkeypatch.setattr(options, "_imported", imported)
    for words, command in ALL.items():
        if not isinstance(command, click.Group) and words not in RUN_BY_THEMSELVES:
            required = [each for each in command.params if each.required]
            typed = [
                word
                for each in required
                for word in (
                    *(each.opts if isinstance(each, click.Option) else ()),
                    each.type.choices[0] if isinstance(each.type, click.Choice) else "word",
                )
            ]
            done = CliRunner().invoke(aileron, [*words, *typed], prog_name="aileron")
            assert done.exit_code == EXIT.DONE, (words, done.output)
    assert len(called) == len({*called}) > 35


def test_the_page_has_every_exit_code_and_everything_that_lies_in_a_home() -> None:
    table = PAGE.partition("## Exit codes")[2].partition("## ")[0]
    codes = {value for name, value in vars(EXIT).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == codes
    table = PAGE.partition("## The home")[2].partition("### ")[0]
    named = {name.strip("/") for name in re.findall(r"`([^`]+)`", table)}
    later = {"policy.toml"}
    beside = {"aileron.db-wal", "aileron.db-shm"}
    assert layout._OURS - later - beside <= named


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (["launch"], "codex, claude, opencode, goose, pi or gemini"),
        (["completion"], "bash, zsh or fish"),
    ],
)
def test_a_missing_argument_is_asked_for_in_one_plain_line(words: list[str], choices: str) -> None:
    """Its line breaks were ours, and came out as marks for hostile ones."""
    shown = CliRunner().invoke(aileron, words, prog_name="aileron", terminal_width=80)
    assert shown.exit_code == EXIT.USAGE
    assert "‹" not in shown.output
    assert shown.output.splitlines()[-1].endswith(f"Choose {choices}.")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("launch kodex", "codex"),
        ("doctor claud", "claude"),
        ("lanch", "launch"),
        ("audit veryfy", "verify"),
    ],
)
def test_a_word_that_is_almost_right_names_the_nearest(words: str, meant: str) -> None:
    shown = CliRunner().invoke(aileron, words.split(), prog_name="aileron", terminal_width=80)
    assert shown.exit_code == EXIT.USAGE
    assert re.search(rf"Did you mean '?{meant}'?\?", shown.output)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("audit list -n 0", "'0' is not a whole number from 1 to 1000000."),
        ("audit list -n many", "'many' is not a whole number from 1 to 1000000."),
        ("logs -n -1", "'-1' is not a whole number from 0 to 1000000."),
        ("action run send-draft --wait -3", "'-3' is not a number of 0 or more."),
        ("action run send-draft --wait long", "'long' is not a number of 0 or more."),
        ("completion bsh", "'bsh' is not one of bash, zsh, fish. Did you mean bash?"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(words: str, sentence: str) -> None:
    done = CliRunner().invoke(aileron, words.split(), prog_name="aileron")
    assert done.exit_code == EXIT.USAGE
    assert done.output.rstrip().endswith(sentence)
    assert re.search(r"[<>]=", done.output) is None


@pytest.mark.parametrize("option", [("--sandbox", "hosts"), ("--hide", ".env")])
def test_a_launch_without_a_sandbox_refuses_what_needs_one(option: tuple[str, ...]) -> None:
    """Nobody is left to believe that a host or a path is kept from the agent."""
    words = ["launch", "codex", "--no-sandbox", *option]
    done = CliRunner().invoke(aileron, words, prog_name="aileron")
    assert done.exit_code == 2
    assert "--no-sandbox leaves nothing for" in done.output
