"""The form in which a person changes a call's arguments: what they typed in place of what it has."""

import json

from aileron_core.canonical import Json
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import render
from aileron_core.text.rendering import from_marks


class EditForm:
    """A text is typed with each hidden character as its mark, and read so; what was not typed is never sent."""

    def __init__(self, view: ApprovalView | None = None) -> None:
        """*view*: the call as it is when the form is opened."""
        self.key, self.digest = (view.call_id, view.digest) if view is not None else ("", "")
        self.inputs, self.edits = (view.inputs, view.edits) if view is not None else ((), ())
        self.index = 0
        self.problem = ""
        """Why the core changed nothing; may quote text from outside."""
        self.typed: dict[str, str] = {}
        """By argument, with marks; empty where it is to be left out."""

    @property
    def current(self) -> FieldView:
        return self.inputs[self.index]

    @property
    def text(self) -> str:
        """What stands in the current field."""
        return self.typed.get(self.current.name, _marked(self.current))

    def move(self, rows: int) -> None:
        self.index = min(max(0, self.index + rows), len(self.inputs) - 1)

    def keep(self, text: str) -> None:
        """Take *text* for the current argument."""
        self.problem = ""
        self.typed[self.current.name] = text
        if text == _marked(self.current):
            del self.typed[self.current.name]

    @property
    def changes(self) -> dict[str, Json]:
        """What was typed, by argument; what is no JSON is a text, which the core then refuses."""
        inputs = ((each, self.typed[each.name]) for each in self.inputs if each.name in self.typed)
        return {each.name: _read(each, typed) if typed else None for each, typed in inputs}


def _marked(entry: FieldView) -> str:
    return render(entry.value, unfold=True).text


def _read(entry: FieldView, typed: str) -> Json:
    if entry.shape == "lines":
        return [from_marks(each.strip()) for each in typed.split("\n") if each.strip()]
    try:
        return from_marks(typed) if entry.shape == "text" else json.loads(from_marks(typed))
    except (ValueError, RecursionError):
        return from_marks(typed)
