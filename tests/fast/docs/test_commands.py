"""Every command on a page can be typed: its words and options are there, and so are the files and inputs."""

import shlex
from itertools import pairwise, takewhile
from pathlib import Path

import click
import pytest

from aileron_core.actions.load import load_action
from aileron_tui.cli.commands import aileron

ROOT = Path(__file__).resolve().parents[3]
GENERATED = ROOT / "docs" / "command-line.md"
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {GENERATED})]
CONNECTORS = sorted((ROOT / "examples" / "connectors").glob("*/README.md"))


def commands_in(page: Path) -> list[list[str]]:
    """Return the words of each line of *page* that calls `aileron`, without what a shell does with its output."""
    lines = (line[4:] for line in page.read_text().splitlines() if line.startswith("    aileron "))
    typed = (shlex.split(line.partition("  #")[0]) for line in lines if "..." not in line)
    return [list(takewhile(lambda word: word not in (">", "|", "&"), words)) for words in typed]


def parameters_of(words: list[str]) -> dict[str, object]:
    """Return the parameters that *words* give to the command that they name.

    Raises:
        click.UsageError: there is no such command, or an option or argument is wrong.
    """
    command: click.Command = aileron
    context = click.Context(command, info_name=words.pop(0))
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=found.name)
    command.parse_args(context, words)
    return context.params


@pytest.mark.parametrize(
    "page", [*PAGES, *CONNECTORS], ids=lambda page: str(page.relative_to(ROOT))
)
def test_a_command_on_a_page_can_be_typed(page: Path) -> None:
    for words in commands_in(page):
        try:
            parameters_of([*words])
        except click.UsageError as error:
            pytest.fail(f"{shlex.join(words)}: {error.message}")


@pytest.mark.parametrize("page", CONNECTORS, ids=lambda page: page.parent.name)
def test_a_connectors_page_names_its_own_files_and_inputs(page: Path) -> None:
    for words in commands_in(page):
        for word in words:
            if word.startswith("examples/"):
                assert (ROOT / word).is_dir(), word
        if words[1:3] != ["action", "run"]:
            continue
        action = load_action((page.parent / "actions" / f"{words[3]}.md").read_bytes(), words[3])
        named = {text.partition("=")[0] for option, text in pairwise(words) if option == "--arg"}
        assert named <= {each.name for each in action.inputs}
        assert named >= {each.name for each in action.inputs if each.required}
