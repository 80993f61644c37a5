"""The table `[server]` of a manifest: what is started, what it may touch, and a word for each of its tools."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, cast

from aileron_core.actions.front_matter import read_preview
from aileron_core.actions.interpolate import template_problems
from aileron_core.actions.model import BUILT_IN_TOOLS, Preview, op_tool_name
from aileron_core.actions.problems import KeyPath
from aileron_core.canonical import Json
from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers.definitions import ToolDefinition

Word: TypeAlias = Literal["run", "ask", "look", "off"]
"""What an agent's call of a tool does: runs unasked, asks a person, is Aileron's own look alone, or is refused."""
WORDS: Final[tuple[Word, ...]] = ("run", "ask", "look", "off")
PREFIX: Final = "mcp://local/"
"""Begins the connector's name of every server."""
VERSION: Final = "1.0.0"
"""The connector's version of every server: its package's own is in `package`, and new bytes replace the accepted ones."""
TREE: Final = "{tree}"
"""Begins a word of `program` that is a path in the server's installed package."""

ANSWER: Final = {"Answer": "text", "Answer as data": "data"}
"""All that a read answers, by label; data only where the text does not say the same."""
_REHEARSED: Final = {
    "Rehearsal": "rehearsal",
    "Changes": "changes",
    "Diff": "diff",
    "Output": "text",
    "Output as data": "data",
}
"""All that a rehearsal shows, by label."""
_LABELS: Final = frozenset(each.casefold() for each in (*ANSWER, *_REHEARSED))
"""What is Aileron's own to say: no field of a server's is shown under it."""
_TOP_LEVEL: Final = re.compile(r"[^.{}]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTable:
    """How one MCP server is started, and what it and each of its tools may do."""

    run: tuple[str, ...] = ()
    """The command as the person gave it."""
    program: tuple[str, ...] = ()
    """What is executed: an absolute program, then its arguments."""
    package: str = ""
    """`npm:NAME@VERSION` or `pypi:NAME@VERSION` that is installed for it; empty for any other program."""
    tree: str = ""
    """`sha256:` and the hex hash of the installed package's files."""
    url: str = ""
    """Of a remote server, in place of everything that is started."""
    files_read: tuple[str, ...] = ()
    files_write: tuple[str, ...] = ()
    credential: CredentialRequirement | None = None
    """The header that a remote server wants a key in."""
    hosts: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: tuple[str, ...] = ()
    """The names of the values that its account has."""
    rehearse: bool = False
    tools: Mapping[str, Word] = field(default_factory=dict[str, Word])
    previews: Mapping[str, Preview] = field(default_factory=dict[str, Preview])
    """By tool, the read of the same server that shows what its call is about."""

    @property
    def has_files(self) -> bool:
        """Whether some of the person's files are listed."""
        return bool(self.files_read or self.files_write)

    @property
    def shown_program(self) -> str:
        """What is executed as a command line, with what is installed for it; of a remote server its URL."""
        command = shlex.join(self.program)
        return self.url or (f"{command} ({self.package})" if self.package else command)

    def word(self, tool: str) -> Word:
        return self.tools.get(tool, "off")


def to_table(table: Mapping[str, Any], credential: CredentialRequirement | None) -> ServerTable:
    """Return the table `[server]`, which has been checked, as a value.

    Args:
        credential: what the same manifest says of it.
    """
    files = table.get("files", {})
    actions = cast("Mapping[str, Any]", table.get("actions", {}))
    return ServerTable(
        run=tuple(table.get("run", ())),
        program=tuple(table.get("program", ())),
        package=table.get("package", ""),
        tree=table.get("tree", ""),
        url=table.get("url", ""),
        credential=credential,
        files_read=tuple(files.get("read", ())),
        files_write=tuple(files.get("write", ())),
        hosts=(parse_target(table["url"]).host_port,)
        if "url" in table
        else tuple(table.get("hosts", ())),
        env=dict(table.get("env", {})),
        secrets=tuple(table.get("secrets", ())),
        rehearse=table.get("rehearse", False),
        tools=dict(table.get("tools", {})),
        previews={name: read_preview(each["preview"], ())[0] for name, each in actions.items()},
    )


def tool_problems(
    name: str, table: ServerTable, tools: Sequence[ToolDefinition]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with the words and previews of a server for its *tools*, with the key's place.

    Args:
        name: of the server.
    """
    known = {each.name: each for each in tools}
    same = clashes(name, table.tools)
    for tool in sorted(known.keys() - table.tools.keys()):
        yield ("server", "tools"), f"has no word for the tool {tool!r}: run, ask, look or off"
    for tool in table.tools:
        if tool not in known:
            yield ("server", "tools", tool), "the server lists no such tool"
        elif tool in same:
            yield ("server", "tools", tool), f"agents would know it by the name of {same[tool]}"
    yield from preview_problems(table)
    for tool, preview in table.previews.items():
        declared = [*known[tool].properties] if tool in known else []
        for place, message in template_problems(
            cast("Json", preview.args), declared=dict.fromkeys(declared), steps=()
        ):
            yield ("server", "actions", tool, "preview", "args", *place), message


def preview_problems(table: ServerTable) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with the previews of a server by the words of its tools, with the key's place."""
    for tool, preview in table.previews.items():
        path: KeyPath = ("server", "actions", tool, "preview")
        if table.word(tool) != "ask":
            yield path, "is only for a tool whose word is ask"
        if table.word(preview.op) not in ("run", "look"):
            yield (*path, "op"), "must be one of its tools whose word is run or look"


def shown_preview(tool: ToolDefinition, preview: Preview) -> Preview:
    """Return *preview* of *tool* with what is shown of its answer: what `render` says, else all of it.

    Then an argument that the answer has at top level is shown as before and after.
    """
    if preview.render:
        is_whole = {*preview.render} <= {*ANSWER.items()}
        labels = frozenset(label for label, _ in preview.render)
        return replace(preview, multiline=labels, omits_missing=True) if is_whole else preview
    names = [
        each
        for each in tool.properties
        if _TOP_LEVEL.fullmatch(each) and each.strip().casefold() not in _LABELS
    ]
    return replace(
        preview,
        render=(*((name, f"json.{name}") for name in names), *ANSWER.items()),
        changes=tuple((name, f"${{args.{name}}}") for name in names),
        multiline=frozenset(ANSWER),
        omits_missing=True,
    )


NOW: Final = "now"
"""What a preview has in place of a rehearsal that cannot be made: the answer of the server's own read."""


def rehearsal_preview(tool: ToolDefinition, read: Preview | None) -> Preview:
    """Return the preview of a *tool* that is rehearsed; of the *read*, for where that cannot be, all that is shown."""
    shown = Preview(op=tool.name) if read is None else shown_preview(tool, read)
    return replace(
        shown,
        op=tool.name,
        args={},
        is_rehearsal=True,
        render=(
            *_REHEARSED.items(),
            *((label, f"{NOW}.{path}") for label, path in shown.render),
        ),
        multiline=shown.multiline | {"Output", "Diff"},
        formats=(("Diff", "diff"), *shown.formats),
        gist=None,
        omits_missing=True,
    )


def clashes(name: str, words: Mapping[str, Word]) -> dict[str, str]:
    """Return, by offered tool of the server *name*, what else has the name that agents see."""
    named: dict[str, list[str]] = {}
    for tool, word in words.items():
        if word in ("run", "ask"):
            named.setdefault(op_tool_name(f"{name}.{tool}"), []).append(tool)
    found = dict.fromkeys(
        (tool for shown in named.keys() & BUILT_IN_TOOLS for tool in named[shown]),
        "a tool of Aileron's",
    )
    for first, *others in named.values():
        for tool in others:
            found.setdefault(tool, f"its tool {first!r}")
            found.setdefault(first, f"its tool {tool!r}")
    return found


def server_name(fqn: str) -> str:
    """Return what a person calls the server whose connector's name is *fqn*."""
    return fqn.removeprefix(PREFIX)
