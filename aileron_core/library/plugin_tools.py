"""Tools that no action file defines: those that a project exposes of connectors, one for each op, and those of MCP servers. Pure.

A call of a connector's is asked, unless an accepted action lets the agent call that op with the same arguments
unasked. An argument of a server's tool is checked for being there and for its plain type; no pattern and no
`$ref` of a server is evaluated.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from aileron_core.actions.interpolate import whole_argument
from aileron_core.actions.model import (
    ANY,
    BUILT_IN_TOOLS,
    INPUT_TYPES,
    Action,
    ActionLimits,
    Approval,
    ConnectorIdentity,
    ConnectorRequirement,
    Input,
    Step,
    is_builtin,
    op_tool_name,
    semver_order,
)
from aileron_core.canonical import canonical, sha256_hex
from aileron_core.connectors.builtin.tools import builtin_actions
from aileron_core.connectors.manifest import OpSchema
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.table import (
    rehearsal_preview,
    server_name,
    shown_preview,
)
from aileron_core.connectors.store import InstalledConnector
from aileron_core.errors import Conflict, Problem
from aileron_core.proxy_settings import CODE, PROJECT_FILE, PluginTools


def accepted_plugin(plugin: str, accepted: Iterable[InstalledConnector]) -> InstalledConnector:
    """Return the connector that *plugin*, the last word of its name, means; of several versions the newest.

    Raises:
        Conflict: none of *accepted* has this name, or several connectors do.
    """
    found = [each for each in accepted if each.identity.fqn.rpartition("/")[2] == plugin]
    names = sorted({each.identity.fqn for each in found})
    if len(names) == 1:
        return max(found, key=lambda each: semver_order(each.identity.version))
    if names:
        message = f"{len(names)} accepted connectors are named {plugin!r}: {', '.join(names)}. Withdraw all but one"
    else:
        message = f"no accepted connector is named {plugin[:80]!r}. Install it, and accept it in the console"
    raise Conflict(f"{message}.", details={"outcome": "held_back"})


def action_of_op(
    name: str, whose: ConnectorIdentity, op: str, *, asks: bool, takes_any: bool
) -> Action:
    """Return the action of the tool *name*, which calls the *op* of the connector *whose* with the call's arguments.

    Args:
        asks: a person is asked; else it is a read.
        takes_any: also with arguments that it does not declare.
    """
    pin = ConnectorRequirement(
        fqn=whose.fqn, version=whose.version, hash=whose.hash, capabilities=(op,)
    )
    step = Step(id=op, connector=whose.fqn, op=op, idempotent=not asks, takes_any=takes_any)
    return Action(
        name=name,
        tool=op_tool_name(name),
        version=whose.version,
        source=whose.ref,
        requires=(pin,),
        intent=name,
        steps=(step,),
        approval=Approval(required=asks, effect=None if asks else "read"),
        file=name,
    )


def op_action(name: str, connector: InstalledConnector, actions: Iterable[Action]) -> Action:
    """Return the action of the tool *name*, `<plugin>.<op>`.

    Args:
        actions: the accepted ones.
    """
    plugin, _, op = name.rpartition(".")
    whose = connector.identity
    schema = connector.manifest.ops.get(op)
    asked = schema is None or not any(_allows(each, op, whose.hash, schema) for each in actions)
    body = (
        schema.description
        if schema is not None
        else f"Calls the op {op} of the connector {plugin}, which does not say what it takes: an object of any arguments."
    )
    covered = canonical({"name": name, "connector": whose.ref, "hash": whose.hash, "asked": asked})
    return replace(
        action_of_op(name, whose, op, asks=asked, takes_any=schema is None),
        intent=body,
        inputs=schema.inputs if schema is not None else (),
        body=body,
        sha256=sha256_hex(covered),
    )


def _allows(action: Action, op: str, hash_: str, schema: OpSchema) -> bool:
    """Return whether *action* lets an agent call *op* unasked with whatever arguments the schema has.

    A step that gives the op something of its own is no such permission: with other arguments it may
    do something else.
    """
    if action.gated:
        return False
    pinned = {each.fqn for each in action.requires if each.hash == hash_}
    taken = {each.name for each in schema.inputs}
    return any(
        step.op == op
        and step.connector in pinned
        and step.idempotent is True
        and (passed := _passed_on(action, step)) is not None
        and taken <= passed
        for step in action.steps
    )


def _passed_on(action: Action, step: Step) -> set[str] | None:
    """Return the op's arguments, if each is an argument of the call as it is; else None."""
    if step.inputs is None:
        return {*action.input_names}
    whole = [isinstance(each, str) and whole_argument(each) for each in step.inputs.values()]
    return {*step.inputs} if all(whole) else None


def plugin_tool_problems(
    exposed: Sequence[PluginTools],
    accepted: Sequence[InstalledConnector],
    actions: Sequence[Action],
) -> tuple[Problem, ...]:
    """Return why a session cannot get the tools *exposed*.

    Args:
        accepted: the accepted connectors.
        actions: the accepted actions.
    """
    return tuple(_problems(exposed, accepted, actions))


def _problems(
    exposed: Sequence[PluginTools],
    accepted: Sequence[InstalledConnector],
    actions: Sequence[Action],
) -> Iterator[Problem]:
    used = {each.tool_name: f"the action {each.name}" for each in actions}
    used |= {each.tool_name: "a built-in tool" for each in builtin_actions().values()}
    used |= dict.fromkeys(BUILT_IN_TOOLS, "a tool of Aileron's")
    named = {each.name for each in actions}
    for index, each in enumerate(exposed):
        key = f"mcp_proxy.plugin_tools[{index}]"
        known: Mapping[str, OpSchema] = {}
        try:
            known = accepted_plugin(each.plugin, accepted).manifest.ops  # empty where it names none
        except Conflict as error:
            yield _problem(f"{key}.plugin", error.message.removesuffix("."), "UNKNOWN_PLUGIN")
        for place, name in enumerate(each.names):
            op_key, op, tool = f"{key}.expose[{place}]", each.expose[place], op_tool_name(name)
            if known and op not in known:
                ops = ", ".join(sorted(known))
                message = f"the connector {each.plugin} has no op {op!r}. Its ops are {ops}"
                yield _problem(op_key, message, "UNKNOWN_OPERATION")
            if tool in used or name in named or is_builtin(name):
                other = used.get(tool, f"the action {name}")
                message = f"the tool {tool} would have the name of {other}. Leave one of them out"
                yield _problem(op_key, message, "NAME_COLLISION")
            used.setdefault(tool, f"the tool of {name}")


def _problem(key: str, message: str, code: str) -> Problem:
    return Problem(file=PROJECT_FILE, key=key, message=message, class_=CODE + code)


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
