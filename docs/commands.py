"""The commands of docs/command-line.md, from the tree that runs them."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from aileron_tui.cli.commands import aileron

BEGIN = "<!-- made by docs/generate.py: from here -->"
END = "<!-- made by docs/generate.py: to here -->"
SHARED = frozenset({"home", "as_json", "no_color", "help", "version"})


def with_commands(page: str) -> str:
    """Return *page* with every command of the tree between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "\n".join(
        line for name, command in _tree(aileron, "aileron") for line in _section(name, command)
    )
    return f"{before}{BEGIN}\n\n{body}\n{END}{after}"


def _tree(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    with click.Context(command) as context:
        for word in command.list_commands(context):
            yield from _tree(command.commands[word], f"{name} {word}")


def _section(name: str, command: click.Command) -> Iterator[str]:
    with click.Context(command, info_name=name) as context:
        usage = (
            " ".join(command.collect_usage_pieces(context))
            .replace("[OPTIONS] ", "")
            .replace("[OPTIONS]", "")
        )
        required = " ".join(
            f"{option.opts[-1]} {option.make_metavar(context)}"
            for option in command.params
            if isinstance(option, click.Option) and option.required
        )
        options = [
            p for p in command.params if isinstance(p, click.Option) and p.name not in SHARED
        ]
        records = [record for option in options if (record := option.get_help_record(context))]
    yield f"### {name}"
    yield ""
    yield "    " + " ".join(filter(None, (name, required, usage)))
    yield ""
    yield from _help(cleandoc(command.help or ""))
    _, _, *examples = (command.epilog or "\b\nExamples:").split("\n")
    if examples:
        yield "Examples:"
        yield ""
        yield from (f"    {line.strip()}" for line in examples)
        yield ""
    if records:
        yield "| option | |"
        yield "|---|---|"
        for spelling, meaning in records:
            yield f"| `{_cell(spelling)}` | {_cell(' '.join(meaning.split()))} |"
        yield ""


def _help(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield from (f"    {line}" for line in paragraph.split("\n")[1:])
        else:
            yield paragraph.replace("\n", " ")
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
