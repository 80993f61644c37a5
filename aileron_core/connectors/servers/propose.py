"""What is proposed of a server before a person has said anything: a word for each tool, a preview by a read, the manifest."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from aileron_core.actions.model import Preview
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.table import (
    ANSWER,
    PREFIX,
    VERSION,
    ServerTable,
    Word,
    clashes,
    tool_problems,
)

_READS: Final = frozenset({"get", "read", "retrieve"})
_NOT_THERE: Final = frozenset({"create", "post", "fork", "copy", "query"})
"""What these make or ask for is nothing that a read could be told of."""
_CHANGES: Final = frozenset(
    {"update", "edit", "patch", "set", "write", "put", "modify", "change", "rename", "move"}
)
_IN_TEMPLATE: Final = re.compile(r"[^{}]+")
_NAME_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])")


def propose_words(name: str, tools: Sequence[ToolDefinition]) -> dict[str, Word]:
    """Return a word for each tool of the server *name*: what claims to read runs unasked, the rest asks.

    Those of `clashes` are off.
    """
    words: dict[str, Word] = {each.name: "run" if each.claims_to_read else "ask" for each in tools}
    return {**words, **dict.fromkeys(clashes(name, words), "off")}


def propose_previews(
    tools: Sequence[ToolDefinition], words: Mapping[str, Word]
) -> dict[str, Preview]:
    """Return, by tool that asks, the read of the same server that shows what its call is about.

    A read fits where all that it requires the tool requires too, by name and type, with something
    that names the thing and not only where it is, and where it reads nothing that the tool does
    not name. The one that requires and names most is proposed.
    """
    requires = {tool.name: {*tool.required} for tool in tools}
    counts = Counter(name for names in requires.values() for name in names)
    where = {name for name, count in counts.items() if count * 2 > len(tools)}
    reads = [
        (read, name_words(read.name) - _READS, requires[read.name])
        for read in tools
        if words.get(read.name) in ("run", "look") and name_words(read.name) & _READS
    ]
    found: dict[str, Preview] = {}
    for tool in tools:
        parts = name_words(tool.name)
        if words.get(tool.name) != "ask" or _NOT_THERE & parts:
            continue
        fitting = [
            read
            for read, nouns, needs in reads
            if nouns <= parts
            and needs <= requires[tool.name]
            and needs - where
            and needs <= {*_shared(read, tool)}
        ]
        if fitting:
            best = max(fitting, key=lambda each: (len(each.required), len(name_words(each.name))))
            args = {name: f"${{args.{name}}}" for name in _shared(best, tool)}
            # The `body` of a new comment is not the issue's: the answer is shown, without before and after.
            changes = parts - name_words(best.name) <= _CHANGES
            render = () if changes else (*ANSWER.items(),)
            found[tool.name] = Preview(op=best.name, args=args, render=render)
    return found


def name_words(tool: str) -> set[str]:
    """Return the words that the name of a *tool* is made of, without articles."""
    return {each.lower() for each in _NAME_WORD.findall(tool)} - {"a", "an", "the"}


def reads_for_previews(table: ServerTable, tools: Sequence[ToolDefinition]) -> tuple[str, ...]:
    """Return the tools that ask, are named as reads, and would show what other calls are about if they ran unasked."""
    named = {each.name for each in tools if name_words(each.name) & _READS}
    words: dict[str, Word] = {**table.tools}
    words.update({tool: "run" for tool in named if table.word(tool) == "ask"})
    found = propose_previews(tools, words)
    return tuple(sorted({each.op for each in found.values() if table.word(each.op) == "ask"}))


def relisted(name: str, table: ServerTable, tools: Sequence[ToolDefinition]) -> ServerTable:
    """Return *table* for what the server lists now: new tools get a proposed word, what is gone or unfit goes."""
    listed = {each.name for each in tools}
    old: dict[str, Word] = {tool: word for tool, word in table.tools.items() if tool in listed}
    words: dict[str, Word] = {**propose_words(name, tools), **old}
    words.update(dict.fromkeys(clashes(name, words).keys() - old.keys(), "off"))
    found = replace(table, tools=words)
    unfit = {path[2] for path, _ in tool_problems(name, found, tools) if path[1] == "actions"}
    kept = {tool: each for tool, each in table.previews.items() if tool not in unfit}
    return replace(found, previews=kept)


def _shared(read: ToolDefinition, tool: ToolDefinition) -> Iterator[str]:
    """Yield the arguments that both take, by name and type."""
    for name, schema in read.properties.items():
        same = schema.get("type") == tool.properties.get(name, {}).get("type", "none is stated")
        if same and _IN_TEMPLATE.fullmatch(name):
            yield name


def manifest_bytes(name: str, table: ServerTable) -> bytes:
    """Return the manifest of the server *name*: `parse_manifest` reads back an equal *table*."""
    import tomlkit

    stated: dict[str, Any] = {
        "run": [*table.run],
        "program": [*table.program],
        "package": table.package,
        "tree": table.tree,
        "url": table.url,
        "hosts": [] if table.url else [*table.hosts],
        "secrets": [*table.secrets],
        "rehearse": table.rehearse,
        "files": {
            key: [*paths]
            for key, paths in (("read", table.files_read), ("write", table.files_write))
            if paths
        },
        "env": {**table.env},
    }
    server = {key: value for key, value in stated.items() if value}
    server["tools"] = {**table.tools}
    if table.previews:
        server["actions"] = {
            tool: {"preview": _directive(preview)} for tool, preview in table.previews.items()
        }
    document: dict[str, Any] = {"connector": {"name": f"{PREFIX}{name}", "version": VERSION}}
    if (key := table.credential) is not None:
        parts = {"kind": key.kind, "header": key.header, "format": key.format}
        document["capabilities"] = {"credential": parts}
    document["server"] = server
    return tomlkit.dumps(document).encode()


def _directive(preview: Preview) -> dict[str, Any]:
    """Return *preview* as its table in a file, without what is as if nothing were said."""
    stated: dict[str, Any] = {
        "op": preview.op,
        "gist": preview.gist,
        "multiline": sorted(preview.multiline) or None,
        "reach": [*preview.reach] or None,
        "args": preview.args or None,
        "render": dict(preview.render) or None,
        "formats": dict(preview.formats) or None,
        "changes": dict(preview.changes) or None,
        "read_back": preview.read_back,
    }
    return {key: value for key, value in stated.items() if value is not None}
