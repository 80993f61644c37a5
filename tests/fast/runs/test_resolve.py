"""Which op a preview asks, what a person is shown, and what moved since."""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.actions.interpolate import op_arguments
from aileron_core.actions.model import Action, Approval, ConnectorRequirement, Input, Preview, Step
from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.servers.definitions import ToolDefinition
from aileron_core.connectors.servers.table import rehearsal_preview, shown_preview
from aileron_core.console_port.field_views import FieldView
from aileron_core.runs.preview.resolve import (
    PreviewPlan,
    argument_fields,
    compare_outputs,
    new_values,
    other_arguments,
    plan_preview,
    render_gist,
    resolve_fields,
    value_text,
    without_made_anew,
)

HEADERS = "message.payload.headers"
PREVIEW = Preview(
    op="get_draft", gist="${Subject} to ${To}", multiline=frozenset({"Body"}),
    render=(("To", f"{HEADERS}.To"), ("Subject", f"{HEADERS}.Subject"), ("Body", "message.snippet")),
)  # fmt: skip


def action_of(*inputs: Input, **more: Any) -> Action:
    usual = {"name": "a", "version": "1.0.0", "source": "", "requires": (), "intent": ""}
    return Action(inputs=inputs, **usual | more)


def input_of(name: str, type_: str = "string", **more: Any) -> Input:
    return Input(name=name, type=type_, description="d", **more)


def _headers(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def draft(**changes: Any) -> dict[str, Any]:
    headers = _headers(**{name: changes.get(name, name.lower()) for name in ("To", "Subject")})
    payload = {"headers": headers + changes.get("more", [])}
    return {"id": "r1", "message": {"snippet": "Hi", "payload": payload}}


def shown_field(value: Any, path: str = "v") -> FieldView:
    (field,) = resolve_fields(Preview(op="x", render=(("L", path),)), {"v": value})
    return field


def test_fields_come_in_the_files_order_with_header_values() -> None:
    assert resolve_fields(PREVIEW, draft()) == (
        FieldView(label="To", value="to"),
        FieldView(label="Subject", value="subject"),
        FieldView(label="Body", value="Hi", multiline=True),
    )


@pytest.mark.parametrize(
    ("value", "text", "shape"),
    [
        ("a\nb", "a\nb", "text"),
        ('{"a": 1}', '{"a": 1}', "text"),
        ("", "", "text"),
        (1234567, "1234567", "text"),
        (1234567.0, "1234567", "text"),
        (2**60, "1152921504606846976", "text"),
        (0.1, "0.1", "text"),
        (True, "true", "text"),
        (["a", "b"], "a\nb", "lines"),
        ([1, 2.0], "1\n2", "lines"),
        ([], "[]", "json"),
        (["a ", "b"], '[\n  "a ",\n  "b"\n]', "json"),
        (["a\nb", "c"], '[\n  "a\\nb",\n  "c"\n]', "json"),
        (["5", 5], '[\n  "5",\n  5\n]', "json"),
        (["a", ""], '[\n  "a",\n  ""\n]', "json"),
        ({"a": [1.0]}, '{\n  "a": [\n    1\n  ]\n}', "json"),
    ],
)
def test_a_value_is_shown_as_it_is(value: Any, text: str, shape: str) -> None:
    """A text is distinguished from what it reads like."""
    field = shown_field(value)
    expected = (text, shape, shape != "text", False)
    assert (field.value, field.shape, field.multiline, field.missing) == expected


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "v"),
        ({"a": 1}, "v.b"),
        ({"a": 1}, "v.a.b"),
        ([1, 2], "v.2"),
        ([1, 2], "v.-1"),
        ([1, 2], "v.1x"),
        ([1, 2], "v.²"),
        ([1], "v." + "0" * 5000),
        ([{"name": "To"}], "v.To"),
        ([{"name": "To", "value": None}], "v.to"),
        ([{"name": "Reply-To", "value": 1}], "v.To"),
        ("text", "v.0"),
        (5, "w"),
    ],
)
def test_a_path_that_leads_nowhere_is_missing(value: Any, path: str) -> None:
    field = shown_field(value, path)
    assert (field.missing, field.value) == (True, "")


def header(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "value": value}


@pytest.mark.parametrize(
    ("value", "text", "count", "spellings"),
    [
        ([header("BCC", "eve")], "eve", 1, ()),
        ([header("bcc ", "eve")], "eve", 1, ()),
        ([header("Bcc", "ann"), header("Bcc", "eve")], "ann\neve", 2, ("Bcc",)),
        ([header("Bcc", "ann"), header("BCC", "eve")], "ann\neve", 2, ("Bcc", "BCC")),
        ([header("Bcc", None), header("BCC", "eve")], "eve", 1, ("Bcc", "BCC")),
        ([{"name": "Bcc"}, header("BCC", "eve")], "eve", 1, ()),
        (["no header", {"name": 5}, header("Bcc", "eve")], "eve", 1, ()),
        ([header("Bcc", "a\nb"), header("Bcc", "c")], '[\n  "a\\nb",\n  "c"\n]', 2, ("Bcc",)),
        ({"Bcc": "ann"}, "ann", 1, ()),
        ({"BCC": "eve"}, "eve", 1, ("BCC",)),
        ({"BCC": "eve", "Bcc": "ann"}, "ann\neve", 2, ("Bcc", "BCC")),
        ({"BCC": "eve", "Bcc": None}, "eve", 1, ("Bcc", "BCC")),
    ],
)
def test_every_header_or_key_of_a_name_is_shown_in_whatever_spelling(
    value: Any, text: str, count: int, spellings: tuple[str, ...]
) -> None:
    """A service sends to each of them; what is no header among them hides none.

    Of keys the one that is written as in the path comes first.
    """
    field = shown_field(value, "v.Bcc")
    assert (field.value, field.count, field.spellings) == (text, count, spellings)
    assert not field.missing


def test_a_path_goes_on_in_every_value_that_it_reached_or_by_an_index() -> None:
    parts = {"parts": [{"name": "x", "value": {"to": 1}}, {"name": "X", "value": {"TO": 2}}]}
    field = shown_field(parts, "v.parts.x.to")
    assert (field.value, field.count, field.spellings) == ("1\n2", 2, ("x", "X", "TO"))
    headers = [header("To", "a"), header("To", "b"), 5]
    assert shown_field(headers, "v.1.value").value == "b"
    assert shown_field(headers, "v.02").value == "5"


def test_a_value_without_end_is_shown_as_such() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert shown_field(value).value == "nested too deeply to show"


def test_the_gist_is_filled_from_the_fields() -> None:
    """What is missing stands as n/a, every value on the one line, and values are not templates."""
    fields = resolve_fields(PREVIEW, draft(more=_headers(to="eve")))
    assert render_gist(PREVIEW, fields) == "subject to to, eve"
    assert render_gist(PREVIEW, resolve_fields(PREVIEW, draft(Subject="${To}"))) == "${To} to to"
    assert render_gist(PREVIEW, resolve_fields(PREVIEW, {})) == "n/a to n/a"
    assert render_gist(Preview(op="x"), ()) == ""


@pytest.mark.parametrize(
    ("before", "after", "render", "changed", "others"),
    [
        (draft(), draft(To="eve"), None, [("to", "eve")], ()),
        (draft(), draft(more=_headers(TO="eve")), None, [("to", "to\neve")], (f"{HEADERS}.2",)),
        (draft(), draft(more=_headers(Bcc="eve")), None, [], (f"{HEADERS}.2",)),
        ({"h": _headers(To="x")}, {"h": _headers(TO="x")}, (("To", "h.To"),), [], ("h.0.name",)),
        (
            {"h": _headers(A="1", B="2")},
            {"h": _headers(B="2", A="1")},
            (("A", "h.A"), ("B", "h.B")),
            [],
            ("h.0.name", "h.0.value", "h.1.name", "h.1.value"),
        ),
        ({"a": 1}, "gone", (), [], ("(the whole answer)",)),
    ],
    ids=["changed", "one more of its name", "in no field", "spelled anew", "moved", "other kind"],
)
def test_a_difference_is_shown_in_its_field_or_listed_by_its_path(
    before: Any, after: Any, render: Any, changed: list[tuple[str, str]], others: tuple[str, ...]
) -> None:
    """A Bcc added between prompt and approval is seen; what stands in its field is not listed again."""
    preview = PREVIEW if render is None else Preview(op="x", render=render)
    drift = compare_outputs(before, after, preview)
    assert [(each.before.value, each.after.value) for each in drift.changed] == changed
    assert (drift.other_paths, drift.other_count) == (others, len(others))


def test_a_field_that_came_or_went_is_a_change_and_many_are_counted() -> None:
    gone = draft()
    del gone["message"]["snippet"]
    drift = compare_outputs(draft(), gone, PREVIEW)
    assert (drift.changed[0].after.missing, drift.other_paths) == (True, ())
    assert compare_outputs(gone, draft(), PREVIEW).changed[0].before.missing
    drift = compare_outputs([0] * 80, [1] * 80, PREVIEW)
    assert drift.other_paths[:2] == ("0", "1")
    assert (len(drift.other_paths), drift.other_count) == (50, 80)


def test_arguments_are_shown_in_declared_order_then_by_name() -> None:
    action = action_of(
        input_of("to", label="To"),
        input_of("body", multiline=True),
        input_of("cc", required=False),
        input_of("n", "number", required=False),
        input_of("files", "array", required=False),
    )
    args: JsonObject = {"z": 1.0, "body": "x", "n": 1e6, "files": [{"a": 1}], "b": True, "q": None}
    assert argument_fields(action, args) == (
        FieldView(label="To", missing=True),
        FieldView(label="body", value="x", multiline=True),
        FieldView(label="n", value="1000000"),
        FieldView(label="files", value='[\n  {\n    "a": 1\n  }\n]', multiline=True, shape="json"),
        FieldView(label="b", value="true"),
        FieldView(label="z", value="1"),
    )


def changing_action(**changes: str) -> Action:
    types = {"to": "string", "body": "string", "people": "array", "note": "string"}
    preview = Preview(
        op="get", render=(("To", "to"), ("Subject", "subject"), ("Body", "body")),
        multiline=frozenset({"Body"}), changes=tuple(changes.items()),
    )  # fmt: skip
    inputs = (input_of(k, v, required=False, label=k.title()) for k, v in types.items())
    approval = Approval(required=True, effect="change", preview=preview)
    return action_of(*inputs, name="change", approval=approval)


def test_new_values_are_what_a_step_with_the_same_template_sends() -> None:
    """Whatever an argument holds: types stay, references inside it are never read again."""
    subject = "Re: ${args.note} (${args.to})"
    templates = {"Body": "${args.body}", "To": "${args.people}", "Subject": subject}
    args: JsonObject = {"body": "${args.to}\n${x.y}", "people": ["a", "b"], "note": "5", "to": "c"}
    step = Step(id="s", connector="c", op="o", inputs=dict(templates))
    sent = op_arguments(step, args, {}, changing_action().input_names)
    after = {field.label: field for field in new_values(changing_action(**templates), args)}
    assert list(after) == ["To", "Subject", "Body"], "in the order of render"
    for label, field in after.items():
        assert (field.value, field.shape) == value_text(sent[label])
    assert after["Body"].multiline
    action = changing_action(To="${args.to}", Body="${args.body}")
    given = new_values(action, {"body": "x"})
    assert [field.label for field in given] == ["Body"], "one that was not given stays"
    # Only what stands whole is left out of the rest: inside other text nobody sees where an argument begins and ends.
    action = changing_action(To="${args.to}", Subject="${args.note}${args.body}")
    args = {"to": "a", "note": "n", "body": "b", "people": ["p"]}
    assert [field.label for field in other_arguments(action, args)] == ["Body", "People", "Note"]


def test_a_text_has_the_format_that_the_file_says_and_no_other_value_has_one() -> None:
    render = tuple((each, each.lower()) for each in "ABCDE")
    preview = Preview(op="x", render=render, formats=tuple((each, "html") for each in "ABCD"))
    fields = resolve_fields(preview, {"a": "<p>", "b": ["<p>"], "c": {"x": 1}, "e": "<p>"})
    assert [field.format for field in fields] == ["html", "", "", "", ""]
    action = action_of(input_of("body", format="markdown"))
    assert argument_fields(action, {"body": "# x"})[0].format == "markdown"


def test_what_a_service_makes_anew_is_removed_from_its_answers_alone() -> None:
    """At any depth, and from no other host's; nothing hides behind the name but a text."""
    body: Json = {"size": 3, "attachmentId": "ANGj1"}
    message: Json = {"parts": [{"body": body}, {"body": {"data": "eA"}}], "attachmentId": {"a": 1}}
    kept = {"parts": [{"body": {"size": 3}}, {"body": {"data": "eA"}}], "attachmentId": {"a": 1}}
    assert without_made_anew(message, ["gmail.googleapis.com:443"]) == kept
    assert without_made_anew(message, ["a.example:443", "gmail.googleapis.com:443"]) is message
    assert without_made_anew(message, ["a.example:443", "gmail.googleapis.com:8443"]) is message
    assert without_made_anew(message, []) is message


ARGUMENTS = ("issue", "title", "body", "a.b", "Answer")
SCHEMA: JsonObject = {"properties": {each: {} for each in ARGUMENTS}}
UPDATE_ISSUE = ToolDefinition(name="update_issue", input_schema=SCHEMA)


def of_server(preview: Preview) -> Action:
    inputs = (input_of(each, "any", required=False) for each in ARGUMENTS)
    approval = Approval(required=True, effect="run", preview=preview)
    return action_of(*inputs, source="mcp://local/tracker", approval=approval)


def test_the_whole_answer_of_a_server_is_shown_with_what_its_call_changes_of_it() -> None:
    """An argument that the answer has at top level is a change of it; every other is shown as it was sent."""
    shown = shown_preview(UPDATE_ISSUE, Preview(op="get_issue", args={"issue": "${args.issue}"}))
    action = of_server(shown)
    text = '{"title": "Old", "body": "Hi", "labels": []}'
    output: Json = {"json": {"title": "Old", "body": "Hi", "labels": []}, "text": text}
    args: JsonObject = {"issue": 7, "title": "New", "a.b": 1, "Answer": "x"}
    expected = [("title", "Old"), ("body", "Hi"), ("Answer", text)]
    assert [(each.label, each.value) for each in resolve_fields(shown, output)] == expected
    (new,) = new_values(action, args, output)
    assert (new.label, new.value) == ("title", "New")
    others = other_arguments(action, args, output)
    assert [each.label for each in others] == ["issue", "a.b", "Answer"]
    own = Preview(op="get_issue", render=(("Title", "json.title"),))
    assert shown_preview(UPDATE_ISSUE, own) is own, "its table says what is shown"
    # What is not an object is its text, and the data that says something else.
    action = of_server(shown_preview(UPDATE_ISSUE, Preview(op="get_issue")))
    output = {"json": {"n": 2}, "text": "one\ntwo", "data": {"n": 2}}
    assert resolve_fields(action.approval.preview, output) == (
        FieldView(label="Answer", value="one\ntwo", multiline=True),
        FieldView(label="Answer as data", value='{\n  "n": 2\n}', multiline=True, shape="json"),
    )
    assert new_values(action, {"title": "New"}, output) == ()


def test_no_property_of_a_servers_is_shown_under_a_label_of_ailerons() -> None:
    """Else its answer would say that it had been rehearsed."""
    own = ("Rehearsal", " changes", "Diff", "OUTPUT", "Output as data", "answer", "Answer as data")
    schema: JsonObject = {"type": "object", "properties": {each: {} for each in ("title", *own)}}
    tool = replace(UPDATE_ISSUE, input_schema=schema)
    shown = rehearsal_preview(tool, Preview(op="get_issue"))
    assert shown.changes == (("title", "${args.title}"),)
    assert [path for _, path in shown.render if path.startswith("now.json.")] == ["now.json.title"]


MAIL, DISK = (
    ConnectorRequirement(fqn=fqn, version="1.0.0", hash=f"sha256:{fqn}", capabilities=("x",))
    for fqn in ("hub://a/mail", "hub://a/disk")
)


ACTION = action_of(
    input_of("draft_id"),
    input_of("format", required=False),
    requires=(DISK, MAIL),
    steps=(Step(id="a", connector=MAIL.fqn, op="send"), Step(id="b", connector=DISK.fqn, op="log")),
    approval=Approval(
        required=True,
        preview=Preview(
            op="get", args={"id": "${args.draft_id}", "format": "${args.format}", "full": True},
            render=(("To", "to"),),
        ),
    ),
)  # fmt: skip


def test_a_preview_asks_the_first_steps_connector_with_the_calls_arguments() -> None:
    """Of a rehearsal with every argument that the step takes, whatever a preview's `args` would say."""
    assert plan_preview(ACTION, {"draft_id": "${args.format}"}) == PreviewPlan(
        connector=MAIL, op="get", args={"id": "${args.format}", "full": True}
    )
    without = replace(ACTION, approval=Approval(required=True))
    assert plan_preview(without, {"draft_id": "x"}) is None
    step = Step(id="s", connector="mcp://local/notes", op="append", takes_any=True)
    whose = replace(MAIL, fqn=step.connector, capabilities=("append",))
    approval = Approval(required=True, preview=Preview(op="append", is_rehearsal=True))
    action = replace(changing_action(), requires=(whose,), steps=(step,), approval=approval)
    args: JsonObject = {"path": "a.txt", "more": [1]}
    assert plan_preview(action, args) == PreviewPlan(connector=whose, op="append", args=dict(args))
