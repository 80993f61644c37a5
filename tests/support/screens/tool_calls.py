"""Calls of the built-in tools that wait, as the core would show what a worker answered."""

from collections.abc import Mapping
from dataclasses import replace

from aileron_core.canonical import Json
from aileron_core.connectors.builtin.results import command_preview, file_preview
from aileron_core.connectors.builtin.tools import builtin_actions
from aileron_core.connectors.builtin.worker.text_diff import unified_diff
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.runs.preview.resolve import render_gist, resolve_fields
from tests.support.screens.calls import approval

BEFORE = '''\
"""Totals of invoices."""


def total(lines):
    return sum(line.price for line in lines)
'''
AFTER = BEFORE.replace("line.price", "line.price * line.count")
NOTES = "# Notes\nTotals ignore the count.\n"


def edit(now: float) -> ApprovalView:
    diff, added, removed = unified_diff(BEFORE, AFTER, "totals.py")
    found: dict[str, Json] = {
        "path": "totals.py", "exists": True, "diff": diff, "added": added, "removed": removed,
    }  # fmt: skip
    args = {
        "file_path": "totals.py",
        "old_string": "sum(line.price for",
        "new_string": "sum(line.price * line.count for",
    }
    return _call("builtin.edit", args, file_preview(found), "no rule allows this change", now)


def command(now: float) -> ApprovalView:
    args: dict[str, Json] = {
        "command": "mv notes.md old/ && sed -i 's/0.4/0.5/' VERSION && cat VERSION"
    }
    moved = (None, NOTES, "old/notes.md"), (NOTES, None, "notes.md")
    texts = (("0.4\n", "0.5\n", "VERSION"), *moved)
    rehearsed: dict[str, Json] = {
        "exit_code": 0, "stdout": "0.5\n",
        "changes": [{"kind": "changed", "path": "VERSION"},
                    {"kind": "made", "path": "old/notes.md", "mode": "0644"},
                    {"kind": "deleted", "path": "notes.md", "previous_mode": "0644"}],
        "diff": "".join(unified_diff(*each)[0] for each in texts),
    }  # fmt: skip
    shown = command_preview(args, {}, rehearsed)
    return _call("builtin.bash", args, shown, "no rule allows this command", now)


def _call(name: str, args: Mapping[str, Json], output: Json, rule: str, now: float) -> ApprovalView:
    action = builtin_actions()[name]
    preview = action.approval.preview
    assert preview is not None
    found = resolve_fields(preview, output)
    fields = tuple(
        FieldView(
            label=each.label, value=each.value, multiline=each.multiline, shape=each.shape,
            count=each.count, format=each.format,
        )
        for each in found
    )  # fmt: skip
    view = approval(
        1, now, session_label="invoices", cwd="~/work/invoices", action=name, title=action.title,
        effect=str(action.approval.effect).upper(), connector=action.steps[0].connector,
        op=action.steps[0].op, hosts=(), rule=rule,
        seconds_allowed=float(action.limits.wall_seconds),
        arguments=tuple(
            FieldView(label=label, value=str(value), multiline="\n" in str(value))
            for label, value in args.items()
        ),
        preview=PreviewView(
            status="ready", fields=fields, gist=render_gist(preview, found), updated_at=now - 2
        ),
    )  # fmt: skip
    return replace(view, requested_at=now - 3)
