"""Which op a preview asks, with which arguments."""

from dataclasses import dataclass

from aileron_core.actions.interpolate import interpolate
from aileron_core.actions.model import Action, ConnectorRequirement
from aileron_core.canonical import Json, JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewPlan:
    """One read-only call that shows what an action will really touch."""

    connector: ConnectorRequirement
    op: str
    args: dict[str, Json]


def plan_preview(
    action: Action, args: JsonObject, outputs: JsonObject | None = None
) -> PreviewPlan | None:
    """Return what to ask of the service about *action* with *args* (checked), or None without a preview.

    The connector is the one of the first step. Before the run, the op's arguments come from the call
    alone; after it also from the steps' *outputs*, where the action file has `read_back`.

    Raises:
        MissingValue: a step's output has no value at the path that `read_back` names.
    """
    preview = action.approval.preview
    if preview is None or not action.steps:
        return None
    requirement = action.requirement(action.steps[0].connector)
    if requirement is None:
        return None
    template = preview.args if outputs is None or preview.read_back is None else preview.read_back
    filled = interpolate(template, args, outputs or {}, declared=action.input_names)
    return PreviewPlan(connector=requirement, op=preview.op, args=filled)
