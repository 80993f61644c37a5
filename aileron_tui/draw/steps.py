"""The steps of an action that has several: the state of each, and which ones a yes runs."""

from collections.abc import Iterator, Sequence

from aileron_core.console_port.view_models import ApprovalView, StepView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Gutter, blank, heading, value
from aileron_tui.draw.foreign_text import foreign_text, host_names
from aileron_tui.draw.formats import field_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, Role, line


def steps_to_run(view: ApprovalView) -> tuple[StepView, ...]:
    """Return the steps that a yes to *view* runs: the next ones, up to where it would ask again.

    Empty where the action has one step only.
    """
    steps: list[StepView] = []
    for step in view.steps:
        if step.status == "running" and step.asks_again:
            break
        if step.status != "done":
            steps.append(step)
    return tuple(steps)


def op_blocks(names: Sequence[str], role: Role, gutter: Gutter = "fact") -> Iterator[Block]:
    """Yield what runs: one operation on its line, several each as a step with its number."""
    for number, name in enumerate(names, start=1):
        label = "Runs" if number == 1 else ""
        before = (Piece(f"{number}  ", "muted"),) if len(names) > 1 else ()
        yield value(label, (*before, *foreign_text(name, role)), gutter)


def step_blocks(view: ApprovalView, *, unfold: bool = False) -> Iterator[Block]:
    """Yield the section of the steps, the blank line before it included; nothing where there is one only."""
    if not view.steps:
        return
    yield blank()
    later = sum(step.status == "running" for step in view.steps)
    yield heading(words.item.STEPS, (Piece(words.item.steps_remark(later), "muted"),))
    for number, step in enumerate(view.steps, start=1):
        yield value(words.item.step(number), _named(step))
        yield value("", _status(step))
        if step.status != "done":
            yield from _inputs(step, unfold=unfold)


def _named(step: StepView) -> Line:
    op = foreign_text(f"{step.connector}.{step.op}", "strong")
    if not step.hosts:
        return op
    hosts = (
        host_names(step.hosts, "text")
        if len(step.hosts) == 1
        else (words.item.one_of(len(step.hosts)),)
    )
    return line(*op, Piece("  on ", "muted"), *hosts)


def _status(step: StepView) -> Line:
    match step.status:
        case "done":
            return (Piece(words.item.STEP_DONE, "ok"),)
        case "asked":
            return (Piece(words.item.STEP_ASKED, "strong"),)
        case "fixed":
            return (Piece(words.item.STEP_FIXED, "muted"),)
        case "running":
            then = words.item.STEP_ASKS_AGAIN if step.asks_again else words.item.STEP_RUNS_ON
            return line(Piece(words.item.STEP_RUNNING, "attn"), Piece(then, "muted"))


def _inputs(step: StepView, *, unfold: bool) -> Iterator[Block]:
    for field in step.inputs:
        label = foreign_text(field.label, "muted")
        for row, pieces in enumerate(field_lines(field, HiddenCharacters(), unfold=unfold)):
            yield value(label if row == 0 else (), pieces)
