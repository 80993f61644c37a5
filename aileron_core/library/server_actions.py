"""The tools of accepted MCP servers as actions. Pure.

An argument is checked for being there and for its plain type; no pattern and no `$ref` of a server is evaluated.
"""

from collections.abc import Iterator
from dataclasses import replace

from aileron_core.actions.model import (
    ANY,
    INPUT_TYPES,
    Action,
    ActionLimits,
    Input,
)
from aileron_core.canonical import canonical, sha256_hex
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.table import (
    rehearsal_preview,
    server_name,
    shown_preview,
)
from aileron_core.connectors.store import InstalledConnector
from aileron_core.library.plugin_tools import action_of_op

_WALL_SECONDS = 60


def server_actions(connector: InstalledConnector) -> Iterator[Action]:
    """Yield an action for each tool of the server *connector* that agents may call."""
    table, whose = connector.manifest.server, connector.identity
    assert table is not None
    name = server_name(whose.fqn)
    for tool in connector.tools:
        word = table.word(tool.name)
        if word not in ("run", "ask"):
            continue
        asks, preview = word == "ask", table.previews.get(tool.name)
        if asks and table.rehearse:
            preview = rehearsal_preview(tool, preview)
        elif preview is not None:
            preview = shown_preview(tool, preview)
        takes_any = tool.input_schema.get("additionalProperties") is not False
        action = action_of_op(
            f"{name}.{tool.name}", whose, tool.name, asks=asks, takes_any=takes_any
        )
        yield replace(
            action,
            intent=tool.title or tool.name,
            inputs=tuple(_inputs(tool)),
            approval=replace(action.approval, preview=preview),
            limits=ActionLimits(wall_seconds=_WALL_SECONDS),
            body=tool.description,
            sha256=sha256_hex(
                canonical({"name": tool.name, "server": whose.ref, "hash": whose.hash})
            ),
            file=name,
            schema=tool.input_schema,
        )


def _inputs(tool: ToolDefinition) -> Iterator[Input]:
    for name, schema in tool.properties.items():
        type_, items = schema.get("type"), schema.get("items")
        items_type = items.get("type") if isinstance(items, dict) else None
        description = schema.get("description")
        is_plain = isinstance(type_, str) and type_ in INPUT_TYPES
        yield Input(
            name=name,
            type=str(type_) if is_plain else ANY,
            description=description if isinstance(description, str) else "",
            required=name in tool.required,
            items_type=items_type
            if type_ == "array" and isinstance(items_type, str) and items_type in INPUT_TYPES
            else None,
        )
