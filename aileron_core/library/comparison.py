"""What a file allows that the one accepted before it does not, and what else differs. Pure.

Both files become rows, and rows with the same key are compared by one rule for each kind.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

from aileron_core.actions.model import ANY, Action, Input, Preview, Step
from aileron_core.canonical import Json
from aileron_core.connectors.manifest import OpSchema
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.store import InstalledConnector
from aileron_core.console_port.file_views import (
    ONE_SIDED,
    AcceptanceChangeView,
    ChangeDirection,
    ChangeKind,
)

_RANK = {kind: rank for rank, kind in enumerate(get_args(ChangeKind))}
DIRECTIONS = {direction: rank for rank, direction in enumerate(get_args(ChangeDirection))}
_NOT_SHOWN = "client_secret"
"""The one value of a manifest that is not quoted in a list of changes."""

RowKey: TypeAlias = tuple[ChangeKind, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that a file says, as far as it is compared."""

    kind: ChangeKind
    name: str = ""
    """What it is about: with the kind, its key in the file."""
    shown: str = ""
    """How a person reads it; empty where that it is there says all."""
    value: Any = None
    """What the rule judges by, where that is not the text."""
    within: RowKey | None = None
    """It is compared only where both files have this one."""


_Rule: TypeAlias = Callable[[Row | None, Row | None], ChangeDirection | None]
"""Judges a row of the accepted file and one of the other, None where it is missing; None: it says nothing."""


def _judge(new: ChangeDirection, gone: ChangeDirection, changed: ChangeDirection) -> _Rule:
    return lambda before, after: new if before is None else gone if after is None else changed


def _number(before: Row | None, after: Row | None) -> ChangeDirection:
    old, new = (each.value if each is not None else 0 for each in (before, after))
    return "wider" if new > old else "narrower"


def _effect(before: Row | None, after: Row | None) -> ChangeDirection:
    """Only the first word on an effect that is more than a read takes nothing from anybody."""
    return "other" if before is None and after is not None and after.shown != "read" else "wider"


def _repeats(before: Row | None, after: Row | None) -> ChangeDirection | None:
    if after is None or after.value:
        return "wider" if after else None
    return "narrower" if before is not None else None


def _steps(before: Row | None, after: Row | None) -> ChangeDirection | None:
    if before is None or after is None or before.name:
        return None  # the rows of single steps only say which steps both files have
    return "wider" if len(after.value) > len(before.value) else "other"


def _types(before: Row | None, after: Row | None) -> ChangeDirection | None:
    if before is None or after is None:
        return None
    old, new = before.value, after.value
    return "narrower" if {*new} < {*old} or (ANY in old and ANY not in new) else "wider"


_MORE: Final = _judge("wider", "narrower", "wider")
_LESS: Final = _judge("narrower", "wider", "wider")
_OTHER: Final = _judge("other", "other", "other")
_ANY: Final = _judge("wider", "wider", "wider")
_RULES: Final[dict[ChangeKind, _Rule]] = {
    **dict.fromkeys(ONE_SIDED, _MORE),
    **dict.fromkeys(("asks_no_more", "declared_read", "argument_optional", "credential"), _MORE),
    **dict.fromkeys(("no_grants", "preview", "shown_fields", "before_after"), _LESS),
    "reach": _MORE,
    **dict.fromkeys(("rule_asks", "rule_denies"), _LESS),
    **dict.fromkeys(("program", "environment"), _ANY),
    **dict.fromkeys(("preview_op", "preview_args", "shown_from", "credential_part"), _ANY),
    "wall_seconds": _number,
    "memory_mib": _number,
    "effect": _effect,
    "idempotent": _repeats,
    "steps": _steps,
    "argument_type": _types,
    **dict.fromkeys(("step_inputs", "connector_bytes", "default_idempotency"), _OTHER),
    **dict.fromkeys(("version", "module", "text"), _OTHER),
}


def compare(
    old: Iterable[Row], new: Iterable[Row], rule: _Rule | None = None
) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between the rows of two files, what allows more first.

    Args:
        old: the rows of what was accepted.
        new: those of what is offered.
        rule: judges every row, in place of its kind's.
    """
    before, after = _numbered(old), _numbered(new)
    found: list[AcceptanceChangeView] = []
    for kind, name, number in {**after, **before}:
        one, two = (rows.get((kind, name, number)) for rows in (before, after))
        within = next(each.within for each in (two, one) if each is not None)
        in_both = within is None or all((*within, 0) in rows for rows in (before, after))
        if one == two or not in_both:
            continue
        direction = (rule or _RULES[kind])(one, two)
        if direction is not None:
            found.append(
                AcceptanceChangeView(
                    kind=kind,
                    direction=direction,
                    name="" if kind in ONE_SIDED else name,
                    before=one.shown if one else "",
                    after=two.shown if two else "",
                )
            )
    return tuple(sorted(found, key=lambda each: (DIRECTIONS[each.direction], _RANK[each.kind])))


def _numbered(rows: Iterable[Row]) -> dict[tuple[ChangeKind, str, int], Row]:
    """Return *rows* by their keys. Two that a file gives the same key, as it may, are compared one by one."""
    seen = Counter[RowKey]()
    found: dict[tuple[ChangeKind, str, int], Row] = {}
    for row in rows:
        found[row.kind, row.name, seen[row.kind, row.name]] = row
        seen[row.kind, row.name] += 1
    return found


def rows_of(kind: ChangeKind, names: Iterable[str], within: RowKey | None = None) -> Iterator[Row]:
    """Yield a row for each of *names*, of a kind in `ONE_SIDED`."""
    return (Row(kind, name, name, within=within) for name in sorted({*names}))


def compare_actions(
    old: Action,
    new: Action,
    *,
    old_hosts: Iterable[str] | None = None,
    new_hosts: Iterable[str] | None = None,
    old_seconds: int | None = None,
    new_seconds: int | None = None,
) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between two action files, what allows more first.

    Args:
        old_hosts: `host:port` that the connectors of *old* may reach; None where that is not known.
        new_hosts: the same of *new*.
        old_seconds: how long a run of *old* may take; None for what the file says.
        new_seconds: the same of *new*, once it is accepted.
    """
    known = old_hosts is not None and new_hosts is not None
    whole = {step.id for each in (old, new) for step in each.steps if step.inputs is None}
    # An effect says more than whether the steps only read, a title more than the text below it.
    states_effect = any(each.approval.effect is not None for each in (old, new))

    def rows(action: Action, hosts: Iterable[str] | None, seconds: int | None) -> Iterator[Row]:
        yield from rows_of("hosts", hosts if known and hosts is not None else ())
        if not states_effect and action.is_read_only:
            yield Row("declared_read")
        yield from _action_rows(action, seconds, whole)
        if old.title == new.title:
            yield Row("text", "description", value=action.body)

    return compare(rows(old, old_hosts, old_seconds), rows(new, new_hosts, new_seconds))


def _action_rows(action: Action, seconds: int | None, whole: Collection[str]) -> Iterator[Row]:
    """Yield the rows of an action file.

    Args:
        seconds: how long a run may take; None for what the file says.
        whole: the steps that one of the two files gives all arguments of the call.
    """
    if not action.gated:
        yield Row("asks_no_more")
    if not action.approval.grants:
        yield Row("no_grants")
    if action.approval.effect is not None:
        yield Row("effect", shown=action.approval.effect)
    yield from rows_of("ops", _ops(action))
    yield from rows_of("connectors", (each.fqn for each in action.requires))
    for each in action.requires:
        build = f"{each.version} {each.hash}"
        yield Row("connector_bytes", each.fqn, build, within=("connectors", each.fqn))
    if action.approval.preview is not None:
        yield from _preview_rows(action.approval.preview)
    run = [f"{step.id}: {step.connector}.{step.op}" for step in action.steps]
    yield Row("steps", shown=", ".join(run), value=run)
    for step in action.steps:
        yield Row("steps", step.id)
        yield Row("idempotent", step.id, value=step.idempotent is True)
        yield from _step_rows(step, whole=step.id in whole)
    yield from rows_of("arguments", (each.name for each in action.inputs))
    for each in action.inputs:
        yield from _input_rows(each)
    limits = action.limits
    wall = limits.wall_seconds if seconds is None else seconds
    yield Row("wall_seconds", shown=str(wall), value=wall)
    yield Row("memory_mib", shown=str(limits.memory_mib), value=limits.memory_mib)
    yield Row("version", shown=action.version)
    for name in ("name", "source", "intent", "title"):
        yield Row("text", name, getattr(action, name))


def _ops(action: Action) -> set[str]:
    """Return every op that it runs, may run or asks for a preview, as `connector.op`."""
    ops = {f"{step.connector}.{step.op}" for step in action.steps}
    ops |= {f"{each.fqn}.{op}" for each in action.requires for op in each.capabilities}
    if action.approval.preview is not None and action.steps:
        ops.add(f"{action.steps[0].connector}.{action.approval.preview.op}")
    return ops


def _preview_rows(preview: Preview) -> Iterator[Row]:
    here: RowKey = ("preview", "")
    yield Row("preview")
    yield Row("preview_op", shown=preview.op, within=here)
    yield Row("preview_args", shown=_shown(preview.args), within=here)
    if preview.read_back is not None:
        yield Row("preview_args", "read_back", _shown(preview.read_back), within=here)
    for label, source in preview.render:
        yield Row("shown_fields", label, within=here)
        yield Row("shown_from", label, source, within=("shown_fields", label))
    if preview.reach:
        yield Row("reach", shown=", ".join(sorted(preview.reach)), within=here)
    for label, source in preview.changes:
        yield Row("before_after", label, source, within=here)
    yield Row("text", "gist", preview.gist or "", within=here)
    yield Row("text", "multiline", ", ".join(sorted(preview.multiline)), within=here)
    for label, form in preview.formats:
        yield Row("text", f"{label}.format", form, within=here)


def _step_rows(step: Step, *, whole: bool) -> Iterator[Row]:
    both: RowKey = ("steps", step.id)
    if whole:
        shown = "" if step.inputs is None else _shown(step.inputs)
        yield Row("step_inputs", step.id, shown, within=both)
        return
    for key, each in (step.inputs or {}).items():
        yield Row("step_inputs", f"{step.id}.{key}", _shown(each), within=both)


def _input_rows(entry: Input) -> Iterator[Row]:
    name = entry.name
    both: RowKey = ("arguments", name)
    if not entry.required:
        yield Row("argument_optional", name, within=both)
    types = [
        f"{each.type} of {each.items_type}" if each.items_type else each.type
        for each in entry.types
    ]
    yield Row("argument_type", name, " or ".join(types), types, within=both)
    for key, shown in (
        ("label", entry.label or ""),
        ("description", entry.description),
        ("multiline", _yes(entry.multiline)),
        ("format", entry.format or ""),
    ):
        yield Row("text", f"{name}.{key}", shown, within=both)


def compare_connectors(
    old: InstalledConnector, new: InstalledConnector
) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between two connectors, what allows more first."""
    return compare(_connector_rows(old), _connector_rows(new))


def _connector_rows(connector: InstalledConnector) -> Iterator[Row]:
    manifest = connector.manifest
    if manifest.server is not None:
        yield from _server_rows(manifest.server, connector.tools)
    else:
        yield Row("module", shown=connector.module_text)
    yield from rows_of("hosts", manifest.hosts)
    yield from rows_of("imports", manifest.imports)
    if manifest.credential is not None:
        yield from _credential_rows(manifest.credential)
    for op, seconds in manifest.wall_seconds.items():
        yield Row("wall_seconds", op, str(seconds), seconds)
    yield Row("version", shown=manifest.version)
    yield Row("default_idempotency", shown=_yes(manifest.idempotent))
    yield Row("text", "publisher", manifest.publisher)
    yield Row("text", "provenance_hash", manifest.provenance_hash)
    yield Row("text", "intents", ", ".join(manifest.intents))
    for op, schema in manifest.ops.items():
        yield Row("text", f"op {op}", _described(schema))


def _server_rows(table: ServerTable, tools: Iterable[ToolDefinition]) -> Iterator[Row]:
    yield Row("program", shown=table.shown_program, value=(table.program, table.tree))
    yield from rows_of("files_read", table.files_read)
    yield from rows_of("files_write", table.files_write)
    yield from rows_of("secrets", table.secrets)
    for name, each in table.env.items():
        yield Row("environment", name, each)
    yield from rows_of(
        "tools", (f"{name}: {word}" for name, word in table.tools.items() if word != "off")
    )
    if table.rehearse:
        yield Row("preview", "rehearsal")
    for name, preview in table.previews.items():
        both: RowKey = ("preview", name)
        yield Row("preview", name)
        yield Row("preview_op", name, preview.op, within=both)
        yield Row("preview_args", name, _shown(preview.args), within=both)
    for tool in tools:
        yield Row("text", tool.name)
        for key, claim in tool.members().items():
            within: RowKey = ("text", tool.name)
            yield Row("text", f"{tool.name} {key}", _shown(claim), within=within)


def _described(op: OpSchema) -> str:
    inputs = (
        f"{each.name} ({each.type}{'' if each.required else ', optional'}): {each.description}"
        for each in op.inputs
    )
    return "; ".join((op.description, *inputs))


def _credential_rows(credential: CredentialRequirement) -> Iterator[Row]:
    here: RowKey = ("credential", "")
    yield Row("credential", shown=credential.kind)
    parts = ("scope", "header", "format", "region", "service", "access_key_id")
    found = {key: getattr(credential, key) for key in parts}
    if (oauth2 := credential.oauth2) is not None:
        keys = ("authorize_url", "token_url", "client_id", _NOT_SHOWN)
        found |= {key: getattr(oauth2, key) for key in keys}
        yield from rows_of("scopes", oauth2.scopes, within=here)
    for key, each in found.items():
        if each:
            shown = "" if key == _NOT_SHOWN else each
            yield Row("credential_part", key, shown, each, within=here)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=dict)


def _yes(flag: bool) -> str:
    return "true" if flag else "false"
