"""Values of the port in which everything that may come from outside is an attack."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from aileron_core.console_port import view_models
from aileron_core.console_port.account_views import AccountNeed, AccountView
from aileron_core.console_port.events import Snapshot
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.session_terms import ProcessView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Problem
from tests.support.screens.calls import approval, drifted, later_steps, snapshot
from tests.support.screens.home import library_items

_IDS = {"approval_id", "run_id", "session_id", "digest", "version", "host"}
_STATES = {"state", "status", "containment", "kind", "change", "severity", "event", "actor"}
OURS = _IDS | _STATES
"""Ids and words that Aileron itself makes, and the host of a preview: each is of a fixed form."""


_ACCOUNT = AccountView(name="x", account="x")
_NEEDS = ("locked", "unbound", "choice")


def _without_account(number: int, now: float, reason: Any) -> ApprovalView:
    need = AccountNeed(
        reason=reason, connector="x", kind="x", candidates=(_ACCOUNT, _ACCOUNT), problem="x"
    )
    return approval(number, now, state="awaiting_vault", digest="", words=None, account_need=need)


Say = Callable[[], str]
"""What the next text from outside says."""


def hostile(value: Any, say: Say) -> Any:
    """Return *value*, a view, with an attack in place of every text that is not ours, all the way down."""
    hints = get_type_hints(type(value), vars(view_models) | {"FieldView": FieldView})
    changes: dict[str, Any] = {}
    for each in dataclasses.fields(value):
        if not each.init or each.name in OURS:
            continue
        changes[each.name] = _hostile(getattr(value, each.name), say, hints[each.name])
    return dataclasses.replace(value, **changes)


def _hostile(value: Any, say: Say, hint: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return hostile(value, say)
    if get_origin(hint) is Literal:
        return value  # one of a few words of ours
    if isinstance(value, str) or (value is None and hint == (str | None)):
        return say()
    if isinstance(value, tuple) and value and isinstance(value[0], int):
        return (value[0], *(say() for _ in value[1:]))  # a parent: its pid is the kernel's
    if isinstance(value, tuple) and hint != tuple[str, str, str] | None:
        if value:
            return tuple(_hostile(each, say, type(each)) for each in value)
        inner = get_args(hint)[0] if get_args(hint) else None
        if inner is str:
            return (say(), say())
        if inner is FieldView:
            return (FieldView(label=say(), value=say()), FieldView(label="x", value=say()))
    return value


def hostile_snapshot(now: float, say: Say) -> Snapshot:
    """Return a console's state in which every agent, service, file and record says an attack."""
    state = snapshot(now)
    process = ProcessView(
        pid=48112, executable="x", cwd="x", parents=((1, "x"), (2, "x")), started_at=now
    )
    field = FieldView(label="In", value="x")
    step = dataclasses.replace(later_steps("asked")[1], hosts=("x",), inputs=(field,))
    claims = (FieldView(label="x", value="x"),)
    gone = next(view for view in state.approvals if view.preview.status == "unavailable")
    items = [
        approval(1, now, agent="codex", reason="", note="x", outcome="x", decided_by="x"),
        approval(2, now, drift=drifted(now), self_opened=True, containment="none"),
        approval(9, now, new_values=(FieldView(label="To"), FieldView(label="Body"))),
        approval(10, now, drift=drifted(now), new_values=(FieldView(label="Subject"),)),
        approval(3, now, process=process, claims=claims, steps=(step,), times_asked=3),
        dataclasses.replace(gone, drift=drifted(now)),
        approval(5, now, state="awaiting_vault", digest="", words=None, requester_gone=True),
        *(_without_account(number, now, reason) for number, reason in enumerate(_NEEDS, start=20)),
        approval(30, now, accounts=(_ACCOUNT, _ACCOUNT)),
        approval(6, now, state="checking", decided_at=now),
        approval(7, now, state="failed", decided_at=now, outcome="x"),
        approval(8, now, state="denied", decided_at=now, ended_at=now, reason="x"),
    ]
    views = [_labels_of_ours(hostile(item, say), item) for item in items]
    library = dataclasses.replace(library_items(now)[3], state="error", reason="new")
    return dataclasses.replace(
        state,
        home=say(),
        routes=(f"{say()} -> {say()}",),
        approvals=tuple(views),
        sessions=tuple(hostile(each, say) for each in state.sessions),
        not_accepted=tuple(hostile(each, say) for each in state.not_accepted),
        problems=(Problem(file=say(), line=3, key=say(), message=say(), severity="error"),),
        records=tuple(hostile(each, say) for each in state.records),
        library=(hostile(library, say),),
    )


def _labels_of_ours(view: Any, before: Any) -> Any:
    fields = tuple(
        dataclasses.replace(field, label=old.label)
        for field, old in zip(view.preview.fields, before.preview.fields, strict=False)
    )
    drift = view.drift
    if drift is not None:
        changed = tuple(
            dataclasses.replace(change, label=old.label, after=f"{change.after} again")
            for change, old in zip(drift.changed, before.drift.changed, strict=True)
        )
        gone = drift.unavailable if view.preview.status == "unavailable" else ""
        drift = dataclasses.replace(drift, changed=changed, unavailable=gone)
    preview = dataclasses.replace(view.preview, fields=fields)
    new = view.new_values if before.new_values else ()
    new = tuple(
        dataclasses.replace(field, label=old.label)
        for field, old in zip(new, before.new_values, strict=False)
    )
    return dataclasses.replace(view, preview=preview, drift=drift, new_values=new)
