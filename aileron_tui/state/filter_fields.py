"""What a row of the waiting list offers to a filter: the values behind `agent:`, `state:` and the like."""

from aileron_core.actions.model import shown_name
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView, NotAcceptedView
from aileron_core.errors import Problem
from aileron_tui import words
from aileron_tui.items import Item, SuiteFiles
from aileron_tui.state.filter import FilterFields

ITEM_FIELDS = ("agent", "action", "state", "effect", "host")
"""What the filter of the waiting list knows, besides words and `age:`."""
ARGUMENT_CHARACTERS = 200
"""Of each argument this much is looked through: 10,000 calls are narrowed at each key."""


def item_fields(item: Item) -> FilterFields:
    if item.approval is not None:
        return call_fields(item.approval)
    if item.file is not None:
        return file_fields(item.file)
    if item.suite is not None:
        return suite_fields(item.suite)
    return problem_fields(item.problem) if item.problem is not None else FilterFields(text="")


def call_fields(view: ApprovalView) -> FilterFields:
    """Return what a call offers; its age counts from when it was asked for."""
    state = f"{view.state} {words.item.OUTCOMES.get(view.shown_state, '')}"
    if view.state in WAITING_STATES or view.awaits_acknowledgement:
        state += " waiting"
    if view.drift is not None:
        state += " changed"
    if view.preview.status != "ready":
        state += " no preview"
    hosts = " ".join(view.hosts)
    sent = " ".join(f"{e.label} {e.value[:ARGUMENT_CHARACTERS]}" for e in view.arguments)
    named = {
        "agent": view.agent,
        "action": f"{shown_name(view.action)} {view.action}",
        "state": state,
        "effect": view.effect,
        "host": hosts,
    }
    names = f"{view.title} {view.preview.gist} {view.agent} {view.session_label} {named['action']}"
    ops = " ".join(f"{step.connector}.{step.op}" for step in view.steps)
    ops = ops or f"{view.connector}.{view.op}"
    text = f"{names} {view.effect} {ops} {hosts} {sent} {state}"
    return FilterFields(text=text, fields=named, at=view.requested_at)


def file_fields(file: NotAcceptedView) -> FilterFields:
    """Return what a file that is not accepted offers; it has no age, so an age leaves it out."""
    state = f"not accepted {file.change}"
    named = {"action": file.name, "state": state, "host": " ".join(file.hosts)}
    runs = " ".join(file.steps)
    text = f"{file.kind} {file.name} {file.file} {file.connector} {runs} {named['host']} {state}"
    return FilterFields(text=text, fields=named, at=None)


def problem_fields(problem: Problem) -> FilterFields:
    text = f"{problem.file} {problem.key} {problem.message}"
    return FilterFields(text=text, fields={"state": f"problem {problem.severity}"}, at=None)


def suite_fields(suite: SuiteFiles) -> FilterFields:
    """Return what a suite offers to a filter: whatever one of its files does."""
    names = " ".join(each.name for each in suite.files)
    hosts = " ".join(suite.hosts)
    text = f"action {suite.suite.source} {names} {' '.join(suite.connectors)} {hosts} not accepted"
    return FilterFields(
        text=text, fields={"action": names, "state": "not accepted", "host": hosts}, at=None
    )
