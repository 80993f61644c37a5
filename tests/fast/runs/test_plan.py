"""Which op a preview asks."""

from dataclasses import replace

from aileron_core.actions.model import Action, Approval, ConnectorRequirement, Input, Preview, Step
from aileron_core.runs.preview.resolve import PreviewPlan, plan_preview

MAIL = ConnectorRequirement(
    fqn="hub://a/mail", version="1.0.0", hash="sha256:a", capabilities=("x",)
)
DISK = ConnectorRequirement(
    fqn="hub://a/disk", version="1.0.0", hash="sha256:b", capabilities=("y",)
)
ACTION = Action(
    name="send",
    version="1.0.0",
    source="",
    requires=(DISK, MAIL),
    intent="send",
    inputs=(
        Input(name="draft_id", type="string", description="d"),
        Input(name="format", type="string", description="d", required=False),
    ),
    steps=(Step(id="a", connector=MAIL.fqn, op="send"), Step(id="b", connector=DISK.fqn, op="log")),
    approval=Approval(
        required=True,
        preview=Preview(
            op="get",
            args={"id": "${args.draft_id}", "format": "${args.format}", "full": True},
            render=(("To", "to"),),
        ),
    ),
)


def test_a_preview_asks_the_first_steps_connector_with_the_calls_arguments() -> None:
    assert plan_preview(ACTION, {"draft_id": "${args.format}"}) == PreviewPlan(
        connector=MAIL, op="get", args={"id": "${args.format}", "full": True}
    )


def test_without_a_preview_there_is_nothing_to_ask() -> None:
    assert (
        plan_preview(replace(ACTION, approval=Approval(required=True)), {"draft_id": "x"}) is None
    )
