"""What a file allows that the one accepted before it does not, and what else differs. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from aileron_core.actions.model import ANY, Action, Input, Preview, Step
from aileron_core.canonical import Json
from aileron_core.connectors.manifest import Manifest, OpSchema
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.console_port.file_views import AcceptanceChangeView, ChangeDirection, ChangeKind

_RANK = {kind: rank for rank, kind in enumerate(get_args(ChangeKind))}
_DIRECTIONS = {direction: rank for rank, direction in enumerate(get_args(ChangeDirection))}
_NOT_SHOWN = "client_secret"
"""The one value of a manifest that is not quoted in a list of changes."""


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
    found = [*_asking(old, new), *_sets("ops", _ops(old), _ops(new))]
    if old_hosts is not None and new_hosts is not None:
        found += _sets("hosts", old_hosts, new_hosts)
    found += _required_connectors(old, new)
    found += _preview(old.approval.preview, new.approval.preview)
    found += _steps(old.steps, new.steps)
    found += _inputs(old.inputs, new.inputs)
    before = old.limits.wall_seconds if old_seconds is None else old_seconds
    after = new.limits.wall_seconds if new_seconds is None else new_seconds
    found += _limit("wall_seconds", before, after)
    found += _limit("memory_mib", old.limits.memory_mib, new.limits.memory_mib)
    found += _other("version", "", old.version, new.version)
    for name, before, after in (
        ("name", old.name, new.name),
        ("source", old.source, new.source),
        ("intent", old.intent, new.intent),
        ("title", old.title, new.title),
    ):
        found += _other("text", name, before, after)
    if old.body != new.body and old.title == new.title:
        found.append(AcceptanceChangeView(kind="text", direction="other", name="description"))
    return _ranked(found)


def compare_manifests(
    old: Manifest, new: Manifest, *, old_module: str, new_module: str
) -> tuple[AcceptanceChangeView, ...]:
    """Return what differs between two connectors, what allows more first.

    Args:
        old_module: size and hash of the module, as a sentence.
        new_module: the same of the new one.
    """
    found = [
        *_sets("hosts", old.hosts, new.hosts),
        *_sets("imports", old.imports, new.imports),
        *_credential(old.credential, new.credential),
        *_op_seconds(old.wall_seconds, new.wall_seconds),
        *_other("module", "", old_module, new_module),
        *_other("version", "", old.version, new.version),
        *_other("default_idempotency", "", _yes(old.idempotent), _yes(new.idempotent)),
        *_other("text", "publisher", old.publisher, new.publisher),
        *_other("text", "provenance_hash", old.provenance_hash, new.provenance_hash),
        *_other("text", "intents", ", ".join(old.intents), ", ".join(new.intents)),
        *_op_schemas(old.ops, new.ops),
    ]
    return _ranked(found)


def _ranked(found: Iterable[AcceptanceChangeView]) -> tuple[AcceptanceChangeView, ...]:
    return tuple(sorted(found, key=lambda each: (_DIRECTIONS[each.direction], _RANK[each.kind])))


def _sets(
    kind: ChangeKind, before: Iterable[str], after: Iterable[str]
) -> Iterator[AcceptanceChangeView]:
    """Yield what is added, which allows more, and what is gone."""
    old, new = {*before}, {*after}
    for name in sorted(new - old):
        yield AcceptanceChangeView(kind=kind, direction="wider", after=name)
    for name in sorted(old - new):
        yield AcceptanceChangeView(kind=kind, direction="narrower", before=name)


def _change(
    kind: ChangeKind, direction: ChangeDirection, name: str, before: str, after: str
) -> Iterator[AcceptanceChangeView]:
    if before != after:
        yield AcceptanceChangeView(
            kind=kind, direction=direction, name=name, before=before, after=after
        )


def _other(kind: ChangeKind, name: str, before: str, after: str) -> Iterator[AcceptanceChangeView]:
    return _change(kind, "other", name, before, after)


def _wider(kind: ChangeKind, name: str, before: str, after: str) -> Iterator[AcceptanceChangeView]:
    return _change(kind, "wider", name, before, after)


def _flag(
    kind: ChangeKind, name: str, *, before: bool, after: bool
) -> Iterator[AcceptanceChangeView]:
    """Yield a change of what allows more where it is true."""
    if before != after:
        direction: ChangeDirection = "wider" if after else "narrower"
        yield AcceptanceChangeView(kind=kind, direction=direction, name=name)


def _limit(kind: ChangeKind, before: int, after: int) -> Iterator[AcceptanceChangeView]:
    direction: ChangeDirection = "wider" if after > before else "narrower"
    return _change(kind, direction, "", str(before), str(after))


def _op_seconds(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[AcceptanceChangeView]:
    for op in _in_order(old, new):
        before, after = old.get(op, 0), new.get(op, 0)
        direction: ChangeDirection = "wider" if after > before else "narrower"
        yield from _change("wall_seconds", direction, op, str(before or ""), str(after or ""))


def _op_schemas(
    old: Mapping[str, OpSchema], new: Mapping[str, OpSchema]
) -> Iterator[AcceptanceChangeView]:
    for op in _in_order(old, new):
        before, after = (_described(ops[op]) if op in ops else "" for ops in (old, new))
        yield from _other("text", f"op {op}", before, after)


def _described(op: OpSchema) -> str:
    inputs = (
        f"{each.name} ({each.type}{'' if each.required else ', optional'}): {each.description}"
        for each in op.inputs
    )
    return "; ".join((op.description, *inputs))


def _asking(old: Action, new: Action) -> Iterator[AcceptanceChangeView]:
    yield from _flag("asks_no_more", "", before=not old.gated, after=not new.gated)
    before, after = old.approval.effect, new.approval.effect
    if before != after:
        # Only the first word on an effect that is more than a read takes nothing from anybody.
        first = before is None and after != "read"
        yield AcceptanceChangeView(
            kind="effect",
            direction="other" if first else "wider",
            before=before or "",
            after=after or "",
        )
    elif before is None:
        yield from _flag("declared_read", "", before=old.is_read_only, after=new.is_read_only)


def _ops(action: Action) -> set[str]:
    """Return every op that it runs, may run or asks for a preview, as `connector.op`."""
    ops = {f"{step.connector}.{step.op}" for step in action.steps}
    ops |= {f"{each.fqn}.{op}" for each in action.requires for op in each.capabilities}
    if action.approval.preview is not None and action.steps:
        ops.add(f"{action.steps[0].connector}.{action.approval.preview.op}")
    return ops


def _required_connectors(old: Action, new: Action) -> Iterator[AcceptanceChangeView]:
    before = {each.fqn: each for each in old.requires}
    after = {each.fqn: each for each in new.requires}
    yield from _sets("connectors", before, after)
    for fqn in sorted(before.keys() & after.keys()):
        one, two = before[fqn], after[fqn]
        yield from _other(
            "connector_bytes", fqn, f"{one.version} {one.hash}", f"{two.version} {two.hash}"
        )


def _preview(old: Preview | None, new: Preview | None) -> Iterator[AcceptanceChangeView]:
    yield from _flag("preview", "", before=old is None, after=new is None)
    if old is None or new is None:
        return
    yield from _wider("preview_op", "", old.op, new.op)
    yield from _wider("preview_args", "", _shown(old.args), _shown(new.args))
    asked = ("" if each.read_back is None else _shown(each.read_back) for each in (old, new))
    yield from _wider("preview_args", "read_back", *asked)
    before, after = dict(old.render), dict(new.render)
    for label in _in_order(before, after):
        if label in before and label in after:
            yield from _wider("shown_from", label, before[label], after[label])
        else:
            yield from _flag(
                "shown_fields", label, before=label not in before, after=label not in after
            )
    yield from _fields_compared(dict(old.changes), dict(new.changes))
    yield from _other("text", "gist", old.gist or "", new.gist or "")
    multiline = (", ".join(sorted(each.multiline)) for each in (old, new))
    yield from _other("text", "multiline", *multiline)
    its, theirs = dict(old.formats), dict(new.formats)
    for label in _in_order(its, theirs):
        yield from _other("text", f"{label}.format", its.get(label, ""), theirs.get(label, ""))


def _fields_compared(
    before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[AcceptanceChangeView]:
    for label in _in_order(before, after):
        direction: ChangeDirection = "narrower" if label not in before else "wider"
        yield from _change(
            "before_after", direction, label, before.get(label, ""), after.get(label, "")
        )


def _steps(old: Sequence[Step], new: Sequence[Step]) -> Iterator[AcceptanceChangeView]:
    before = [f"{step.id}: {step.connector}.{step.op}" for step in old]
    after = [f"{step.id}: {step.connector}.{step.op}" for step in new]
    direction: ChangeDirection = "wider" if len(new) > len(old) else "other"
    yield from _change("steps", direction, "", ", ".join(before), ", ".join(after))
    known = {step.id: step for step in old}
    for step in new:
        if step.id not in known:
            if step.idempotent is True:
                yield from _flag("idempotent", step.id, before=False, after=True)
            continue
        earlier = known[step.id]
        yield from _flag(
            "idempotent",
            step.id,
            before=earlier.idempotent is True,
            after=step.idempotent is True,
        )
        yield from _step_inputs(earlier, step)


def _step_inputs(old: Step, new: Step) -> Iterator[AcceptanceChangeView]:
    if old.inputs is None or new.inputs is None:
        if old.inputs is not new.inputs:
            both = ("" if step.inputs is None else _shown(step.inputs) for step in (old, new))
            yield AcceptanceChangeView(
                kind="step_inputs", direction="other", name=new.id, before=next(both), after=next(both)
            )  # fmt: skip
        return
    for key in _in_order(old.inputs, new.inputs):
        before = _shown(old.inputs[key]) if key in old.inputs else ""
        after = _shown(new.inputs[key]) if key in new.inputs else ""
        if key not in old.inputs or key not in new.inputs or before != after:
            yield AcceptanceChangeView(
                kind="step_inputs",
                direction="other",
                name=f"{new.id}.{key}",
                before=before,
                after=after,
            )


def _inputs(old: Sequence[Input], new: Sequence[Input]) -> Iterator[AcceptanceChangeView]:
    before = {each.name: each for each in old}
    after = {each.name: each for each in new}
    yield from _sets("arguments", before, after)
    for name in _in_order(before, after):
        if name not in before or name not in after:
            continue
        one, two = before[name], after[name]
        yield from _flag("argument_optional", name, before=not one.required, after=not two.required)
        yield from _types(name, one, two)
        for key, its, theirs in (
            ("label", one.label or "", two.label or ""),
            ("description", one.description, two.description),
            ("multiline", _yes(one.multiline), _yes(two.multiline)),
            ("format", one.format or "", two.format or ""),
        ):
            yield from _other("text", f"{name}.{key}", its, theirs)


def _types(name: str, old: Input, new: Input) -> Iterator[AcceptanceChangeView]:
    before, after = _type_names(old), _type_names(new)
    fewer = {*after} < {*before} or (ANY in before and ANY not in after)
    yield from _change(
        "argument_type",
        "narrower" if fewer else "wider",
        name,
        " or ".join(before),
        " or ".join(after),
    )


def _type_names(entry: Input) -> list[str]:
    return [
        f"{each.type} of {each.items_type}" if each.items_type else each.type
        for each in entry.types
    ]


def _credential(
    old: CredentialRequirement | None, new: CredentialRequirement | None
) -> Iterator[AcceptanceChangeView]:
    if old is None or new is None:
        direction: ChangeDirection = "narrower" if new is None else "wider"
        kinds = (each.kind if each is not None else "" for each in (old, new))
        yield from _change("credential", direction, "", *kinds)
        return
    yield from _wider("credential", "", old.kind, new.kind)
    before, after = _parts(old), _parts(new)
    for key in _in_order(before, after):
        its, theirs = before.get(key, ""), after.get(key, "")
        if its == theirs:
            continue
        hidden = key == _NOT_SHOWN
        yield AcceptanceChangeView(
            kind="credential_part",
            direction="wider",
            name=key,
            before="" if hidden else its,
            after="" if hidden else theirs,
        )
    scopes = [each.oauth2.scopes if each.oauth2 is not None else () for each in (old, new)]
    yield from _sets("scopes", *scopes)


def _parts(credential: CredentialRequirement) -> dict[str, str]:
    """Return everything but kind and scopes, which are compared by themselves."""
    found = {
        "scope": credential.scope,
        "header": credential.header,
        "format": credential.format,
        "region": credential.region,
        "service": credential.service,
        "access_key_id": credential.access_key_id,
    }
    if (oauth2 := credential.oauth2) is not None:
        found |= {
            "authorize_url": oauth2.authorize_url,
            "token_url": oauth2.token_url,
            "client_id": oauth2.client_id,
            _NOT_SHOWN: oauth2.client_secret,
        }
    return found


def _in_order(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return list({**dict.fromkeys(after), **dict.fromkeys(before)})


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=dict)


def _yes(flag: bool) -> str:
    return "true" if flag else "false"
