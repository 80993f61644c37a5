"""The steps of an action of which one depends on another's output: what is known of each now."""

from collections.abc import Iterator

from aileron_core.control_plane.port import ApprovalView, StepView
from aileron_tui.presenters.blocks import Block, blank, heading, value
from aileron_tui.presenters.lines import Line, Piece, line
from aileron_tui.presenters.outside import block, host_names, outside, rendered
from aileron_tui.presenters.wording import one_of
from aileron_tui.presenters.wording import steps as wording

__all__ = ["asked_step", "step_blocks"]


def asked_step(view: ApprovalView) -> StepView | None:
    """Return the later step that *view* is about now; None where it is about the whole."""
    return next((step for step in view.steps if step.status == "asked"), None)


def step_blocks(view: ApprovalView, *, unfold: bool = False) -> Iterator[Block]:
    """Yield the section of the steps, the blank line before it included; nothing where none depends."""
    if not view.steps:
        return
    yield blank()
    later = sum(step.status == "running" for step in view.steps)
    yield heading(wording.STEPS, (Piece(wording.steps_remark(later), "muted"),))
    for number, step in enumerate(view.steps, start=1):
        yield value(wording.step(number), _named(step))
        yield value("", _status(step))
        if step.status != "done":
            yield from _inputs(step, unfold=unfold)


def _named(step: StepView) -> Line:
    op = outside(f"{step.connector}.{step.op}", "strong")
    if not step.hosts:
        return op
    told = host_names(step.hosts, "text") if len(step.hosts) == 1 else (one_of(len(step.hosts)),)
    return line(*op, Piece("  on ", "muted"), *told)


def _status(step: StepView) -> Line:
    match step.status:
        case "done":
            return (Piece(wording.DONE, "ok"),)
        case "asked":
            return (Piece(wording.ASKED, "strong"),)
        case "fixed":
            return (Piece(wording.FIXED, "muted"),)
        case "running":
            then = wording.ASKS_AGAIN if step.asks_again else wording.RUNS_ON
            return line(Piece(wording.RUNNING, "attn"), Piece(then, "muted"))


def _inputs(step: StepView, *, unfold: bool) -> Iterator[Block]:
    for field in step.inputs:
        label = outside(field.label, "muted")
        lines = block(rendered(field.value, unfold=unfold)) if not field.missing else ((),)
        for row, pieces in enumerate(lines):
            yield value(label if row == 0 else (), pieces)
