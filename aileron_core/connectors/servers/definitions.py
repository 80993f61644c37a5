"""The tools of an MCP server as they were accepted: read from a listing, kept as bytes, compared with what it lists now."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from aileron_core.canonical import Json, JsonObject, canonical
from aileron_core.errors import FileProblems, Problem

MAX_PAGES: Final = 50
MAX_TOOLS: Final = 2000
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of a server's whole listing."""
_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_MEMBERS: Final = {
    "title": str,
    "description": str,
    "inputSchema": dict,
    "outputSchema": dict,
    "annotations": dict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """One tool, as its server describes it: claims of the server's author."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: JsonObject = field(default_factory=dict[str, Json])

    @property
    def claims_to_read(self) -> bool:
        """Whether its annotations say that it changes nothing."""
        return self.annotations.get("readOnlyHint") is True

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the arguments that its schema requires."""
        names = self.input_schema.get("required")
        listed = names if isinstance(names, Sequence) and not isinstance(names, str) else ()
        return tuple(each for each in listed if isinstance(each, str))

    @property
    def properties(self) -> Mapping[str, JsonObject]:
        """The schemas of its arguments, by name; what is no object is an empty one."""
        found = self.input_schema.get("properties")
        members = cast("JsonObject", found if isinstance(found, Mapping) else {})
        return {
            name: cast("JsonObject", each if isinstance(each, Mapping) else {})
            for name, each in members.items()
        }

    @property
    def text(self) -> str:
        """All of it for a person to read: its texts as they are, then its hints, and its schemas an argument a line."""
        parts = [*filter(None, (self.title, self.description))]
        for key, each in self.members().items():
            if isinstance(each, Mapping):
                parts += _schema_lines(key, each)
        lines = "\n".join(parts).splitlines()
        return "\n".join((f"# {self.name}", *(f"    {each}" for each in lines)))

    def members(self) -> dict[str, Json]:
        """Return it as MCP writes it."""
        claims: dict[str, Json] = {
            "title": self.title,
            "description": self.description,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        }
        stated = {key: value for key, value in claims.items() if value}
        return {"name": self.name, "inputSchema": self.input_schema, **stated}


def _schema_lines(key: str, schema: JsonObject) -> Iterator[str]:
    members = dict(schema)
    arguments = members.pop("properties", None)
    yield f"{key} = {json.dumps(members, ensure_ascii=False)}"
    if isinstance(arguments, Mapping):
        for name, each in cast("JsonObject", arguments).items():
            yield f"  {json.dumps(name)} = {json.dumps(each, ensure_ascii=False)}"
    elif arguments is not None:
        yield f"  properties = {json.dumps(arguments, ensure_ascii=False)}"


class BadListing(Exception):
    """A server's listing is none, or too large; the message is the end of a sentence about the server."""


def from_listing(entries: Iterable[Json]) -> tuple[ToolDefinition, ...]:
    """Return the tools of the members `tools` of a listing, sorted by name.

    Raises:
        BadListing: an entry is no tool, two have one name, or there are too many.
    """
    found: dict[str, ToolDefinition] = {}
    size = 0
    for entry in entries:
        tool = _tool(entry)
        if tool.name in found:
            raise BadListing(f"lists the tool {tool.name!r} twice")
        found[tool.name] = tool
        try:
            size += len(canonical(tool.members()))
        except ValueError as error:
            raise BadListing(
                f"describes the tool {tool.name!r} in JSON that cannot be compared: {error}"
            ) from None
        if len(found) > MAX_TOOLS:
            raise BadListing(f"lists more than {MAX_TOOLS:,} tools")
        if size > MAX_BYTES:
            raise BadListing(f"describes its tools in more than {MAX_BYTES // 1024 // 1024} MiB")
    return tuple(found[name] for name in sorted(found))


def described_once(entries: Sequence[Json]) -> tuple[ToolDefinition, ...]:
    """Return those tools of a listing that are described well and have their name alone, sorted by name.

    For a server that was accepted: what it lists wrongly takes away that tool and no other one.
    """
    found: dict[str, list[ToolDefinition | None]] = {}
    for entry in entries:
        name = str(cast("dict[str, Any]", entry).get("name") if isinstance(entry, dict) else None)
        try:
            found.setdefault(name, []).extend(from_listing([entry]))
        except BadListing:
            found.setdefault(name, []).append(None)
    alone = [tools[0] for tools in found.values() if len(tools) == 1]
    return tuple(sorted((each for each in alone if each), key=lambda tool: tool.name))


def _tool(entry: Json) -> ToolDefinition:
    members = cast("dict[str, Any]", entry if isinstance(entry, dict) else {})
    name = members.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadListing(
            "lists a tool whose name is not 1 to 128 letters, digits or _ . / - (as MCP says)"
        )
    for key, type_ in _MEMBERS.items():
        if not isinstance(
            members.get(key, type_()), type_ | None if key != "inputSchema" else type_
        ):
            raise BadListing(f"describes the tool {name!r} with a wrong {key}")
    if "inputSchema" not in members:
        raise BadListing(f"describes the tool {name!r} without inputSchema")
    return ToolDefinition(
        name=name,
        title=members.get("title") or "",
        description=members.get("description") or "",
        input_schema=members["inputSchema"],
        output_schema=members.get("outputSchema") or None,
        annotations=members.get("annotations") or {},
    )


def definitions_bytes(tools: Iterable[ToolDefinition]) -> bytes:
    """Return *tools* as the file that is kept of them: the same for the same tools in whatever order."""
    listed: list[Json] = [each.members() for each in sorted(tools, key=lambda tool: tool.name)]
    return canonical({"tools": listed})


def parse_definitions(data: bytes, file: str) -> tuple[ToolDefinition, ...]:
    """Return the tools of such a file.

    Raises:
        FileProblems: it is none.
    """
    try:
        if len(data) > MAX_BYTES + 1024:
            raise BadListing("is too large")
        members: Any = json.loads(data)
        return from_listing(members["tools"])
    except (BadListing, ValueError, KeyError, TypeError, RecursionError) as error:
        why = str(error) if isinstance(error, BadListing) else "is not the tools of a server"
        raise FileProblems([Problem(file=file, message=why, class_="parse_error")]) from None


def differing(old: Iterable[ToolDefinition], new: Iterable[ToolDefinition]) -> frozenset[str]:
    """Return the names of the tools that differ in anything, are new, or gone."""
    before, after = (
        {each.name: canonical(each.members()) for each in tools} for tools in (old, new)
    )
    return frozenset(name for name, _ in before.items() ^ after.items())
