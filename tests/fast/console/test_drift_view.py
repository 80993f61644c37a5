"""What the console is told of two looks that differ."""

from aileron_core.actions.model import Action, Approval, Preview
from aileron_core.console.view_mapping import _drift
from aileron_core.console_port.field_views import FieldChangeView
from aileron_core.runs import PreviewResult
from aileron_core.runs.live_run import PreviewChange

RENDER = (("To", "to"), ("Cc", "cc"), ("Body", "body"))
PREVIEW = Preview(op="get_draft", render=RENDER, multiline=frozenset({"Body"}))
GATED = Approval(required=True, preview=PREVIEW)
ACTION = Action(name="send-draft", version="1", source="", requires=(), intent="", approval=GATED)
SEEN = PreviewResult(status="ready", output={"to": "sam", "body": "Hi\nSam"}, fetched_at=1.0)


def test_a_look_that_went_away_keeps_every_field_and_one_that_came_late_compares_none() -> None:
    gone = PreviewResult(status="unavailable", reason="timed out", fetched_at=2.0)
    view = _drift(PreviewChange(before=SEEN, after=gone, words_before=None), ACTION)
    assert view.changed == (
        FieldChangeView(label="To", before="sam", after=None),
        FieldChangeView(label="Cc", before=None, after=None),
        FieldChangeView(label="Body", before="Hi\nSam", after=None, multiline=True),
    )
    assert (view.unavailable, view.same_count, view.other_count) == ("timed out", 0, 0)
    view = _drift(PreviewChange(before=gone, after=SEEN, words_before=None), ACTION)
    assert (view.changed, view.unavailable) == ((), "")
