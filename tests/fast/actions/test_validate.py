"""The rules of an action file, one by one."""

from collections.abc import Callable

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action
from aileron_core.errors import FileProblems

Build = Callable[..., bytes]

CASES = [
    # old, new, key, part of the message
    ('name = "send-note"', "", "name", "is required"),
    ('name = "send-note"', 'name = "Send"', "name", "must match"),
    ('name = "send-note"', 'name = "-send"', "name", "must match"),
    ('name = "send-note"', 'name = "send\\n"', "name", "must match"),
    ('version = "1.2.3"\nsource', "source", "version", "is required"),
    ('version = "1.2.3"\nsource', 'version = "1.2"\nsource', "version", "strict SemVer"),
    ('version = "1.2.3"\nsource', 'version = "01.2.3"\nsource', "version", "strict SemVer"),
    ("/send-note@1.2.3", "/send-note", "source", "missing @<version> suffix"),
    ("/send-note@1.2.3", "/send-note@latest", "source", "strict SemVer"),
    ('source = "github:', 'source = "ftp:', "source", "scheme not recognized"),
    ('name = "send-note"', 'name = "withdraw-action"', "name", "of Aileron's own"),
    ("github://acme/notes/actions/send-note@1.2.3", "github://@1.2.3", "source", "missing owner"),
    (
        'github://acme/notes"',
        'github://acme/notes@1.2.3"',
        "requires.connectors[0].name",
        "must not contain @<version>",
    ),
    ("github://acme/notes/actions/send-note@1.2.3", "hub://x/@1.2.3", "source", "missing path"),
    ("github://acme/notes/actions/send-note@1.2.3", "hub@1.2.3", "source", "not a valid URI"),
    ("github://acme/notes/actions/send-note@1.2.3", "hub://a/../b@1.2.3", "source", "dots"),
    ('hash = "sha256:ab"', "", "requires.connectors[0].hash", "is required"),
    (
        'hash = "sha256:ab"',
        'hash = "sha256:"',
        "requires.connectors[0].hash",
        "followed by a digest",
    ),
    (
        'hash = "sha256:ab"',
        'hash = "md5:ab"',
        "requires.connectors[0].hash",
        "followed by a digest",
    ),
    ('["send", "read"]', "[]", "requires.connectors[0].capabilities", "list the ops"),
    ('["send", "read"]', '["send", " "]', "requires.connectors[0].capabilities[1]", "is empty"),
    ('intent = "send a note"', 'intent = " "', "match.intent", "is required"),
    ('id = "send"', "", "execute[0].id", "is required"),
    ('op = "send"', "", "execute[0].op", "is required"),
    (
        'connector = "github://acme/notes"',
        'connector = "github://acme/other"',
        "execute[0].connector",
        "not declared",
    ),
]

STEP = '\n[[execute]]\nid = "{id}"\nconnector = "github://acme/notes"\nop = "read"\n'
INPUT = '\n[[inputs]]\nname = "a"\ntype = "{type}"\ndescription = "d"\n'
PREVIEW = '\n[approval]\nrequired = true\n[approval.preview]\nop = "read"\n{more}\n'

CHANGE = (
    'inputs = {{ x = "${{args.a}}" }}\n'
    + INPUT.format(type="string")
    + INPUT.format(type="string").replace('"a"', '"unsent"')
    + '\n[approval]\nrequired = true\neffect = "{effect}"\n[approval.preview]\nop = "read"\n'
    + "render = {{ A = 'a' }}\nchanges = {changes}\n"
)

SECOND_PIN = """
[[requires.connectors]]
name = "github://acme/notes"
version = "2.0.0"
hash = "sha256:cd"
capabilities = ["read"]
"""

EXTRA = [
    (STEP.format(id="send"), "execute[1].id", "is duplicated"),
    ('inputs = { x = "${args.a}" }\n', "execute[0].inputs.x", "no [[inputs]] block declares"),
    ('inputs = { x = ["-", "${args.teamId}"] }\n', "execute[0].inputs.x[1]", "no [[inputs]]"),
    (
        'inputs = { x = "${later.id}" }\n' + STEP.format(id="later"),
        "execute[0].inputs.x",
        "earlier",
    ),
    ('inputs = { x = "${send.id}" }\n', "execute[0].inputs.x", "names no earlier step"),
    ('inputs = { x = "${HOME}" }\n', "execute[0].inputs.x", "is not a reference"),
    ('inputs = { x = "${args.a" }\n', "execute[0].inputs.x", "is not closed"),
    (INPUT.format(type="int"), "inputs[0].type", "|array|object; write integer"),
    (INPUT.format(type="any"), "inputs[0].type", "or JSON for any JSON"),
    (INPUT.format(type="[String]"), "inputs[0].type", "must be one of string|integer"),
    (INPUT.format(type="string").replace('"a"', '"a-b"'), "inputs[0].name", "must match"),
    (INPUT.format(type="string").replace('"a"', '"9a"'), "inputs[0].name", "must match"),
    (
        INPUT.format(type="string").replace('description = "d"\n', ""),
        "inputs[0].description",
        "is required",
    ),
    (
        INPUT.format(type="Filter") + "multiline = true\n",
        "inputs[0].multiline",
        "is allowed only with",
    ),
    (INPUT.format(type="string") + 'label = " "\n', "inputs[0].label", "must not be blank"),
    (
        INPUT.format(type="integer") + "multiline = true\n",
        "inputs[0].multiline",
        "is allowed only with",
    ),
    (
        INPUT.format(type="object") + 'items_type = "string"\n',
        "inputs[0].items_type",
        "is allowed only",
    ),
    (INPUT.format(type="array") + 'items_type = "array"\n', "inputs[0].items_type", "one of"),
    (PREVIEW.format(more=""), "approval.preview.render", "at least one field"),
    (PREVIEW.format(more="render = { A = '' }"), "approval.preview.render.A", "empty path"),
    (PREVIEW.format(more="render = { ' ' = 'a' }"), 'approval.preview.render." "', "empty label"),
    (
        PREVIEW.format(more="render = { A = 'a' }\nmultiline = ['B']"),
        "approval.preview.multiline",
        "not a label of render",
    ),
    (
        PREVIEW.format(more="render = { A = 'a' }\ngist = '${A} to ${B}'"),
        "approval.preview.gist",
        "not a label of render",
    ),
    (
        PREVIEW.format(more="render = { A = 'a' }\nrecheck = false"),
        "approval.preview.recheck",
        "must be true",
    ),
    (
        PREVIEW.format(more="render = { A = 'a' }\nargs = { id = '${args.a}' }"),
        "approval.preview.args.id",
        "no [[inputs]]",
    ),
    (
        PREVIEW.format(more="render = { A = 'a' }\nargs = { id = '${send.id}' }"),
        "approval.preview.args.id",
        "names no earlier step",
    ),
    (
        PREVIEW.format(more="render = { A = 'a' }\nformats = { B = 'html' }"),
        "approval.preview.formats.B",
        "not a label of render",
    ),
    (
        PREVIEW.format(more="render = { A = 'a' }\nformats = { A = 'rtf' }"),
        "approval.preview.formats.A",
        '"rtf" must be one of html|markdown|json|diff|addresses',
    ),
    (
        INPUT.format(type="array").rstrip() + '\nformat = "html"\n',
        "inputs[0].format",
        'is allowed only with type = "string"',
    ),
    (
        CHANGE.format(effect="change", changes="{ B = '${args.a}' }"),
        "approval.preview.changes.B",
        "not a label of render",
    ),
    (
        CHANGE.format(effect="send", changes="{ A = '${args.a}' }"),
        "approval.preview.changes",
        'is allowed only with effect = "change"',
    ),
    (
        CHANGE.format(effect="pay", changes="{}\nread_back = { id = 'x' }"),
        "approval.preview.read_back",
        'is allowed only with effect = "change" or "create"',
    ),
    (
        CHANGE.format(effect="create", changes="{}\nread_back = { id = '${later.id}' }"),
        "approval.preview.read_back.id",
        "names no earlier step",
    ),
    (
        CHANGE.format(effect="change", changes="{ A = '${args.b}' }"),
        "approval.preview.changes.A",
        "no [[inputs]]",
    ),
    (
        CHANGE.format(effect="change", changes="{ A = '${send.id}' }"),
        "approval.preview.changes.A",
        "names no argument",
    ),
    (
        CHANGE.format(effect="change", changes="{ A = '${args.a' }"),
        "approval.preview.changes.A",
        "is not closed",
    ),
    (
        CHANGE.format(effect="change", changes="{ A = '${args.unsent}' }"),
        "approval.preview.changes.A",
        "is not an input of any step",
    ),
    ('[approval]\neffect = "format"\n', "approval.effect", "read|create|change"),
    ("[limits]\nwall_seconds = 301\n", "limits.wall_seconds", "from 1 to 300"),
    ("[limits]\nwall_seconds = 0\n", "limits.wall_seconds", "from 1 to 300"),
    ("[limits]\nmemory_mib = 1025\n", "limits.memory_mib", "from 1 to 1024"),
    (SECOND_PIN, "requires.connectors[1].name", "is duplicated"),
]


def check_problem(data: bytes, key: str, message: str) -> None:
    with pytest.raises(FileProblems) as caught:
        load_action(data, "send-note.md")
    (problem,) = caught.value.problems
    assert problem.key == key
    assert message in problem.message
    assert problem.class_ == "validation_error"
    assert problem.line > 0


@pytest.mark.parametrize(("old", "new", "key", "message"), CASES)
def test_a_broken_rule_is_one_problem_at_its_key(
    manifest: Build, old: str, new: str, key: str, message: str
) -> None:
    """Each rule refuses what breaks it, and nothing else complains."""
    check_problem(manifest(old=old, new=new), key, message)


@pytest.mark.parametrize(("extra", "key", "message"), EXTRA)
def test_a_broken_rule_of_an_optional_part_is_one_problem_at_its_key(
    manifest: Build, extra: str, key: str, message: str
) -> None:
    """The same for inputs, templates, previews and limits."""
    check_problem(manifest(extra), key, message)


def test_nothing_at_all_names_everything_that_must_be_there() -> None:
    """An empty front matter is answered with the whole list."""
    with pytest.raises(FileProblems) as caught:
        load_action(b"+++\n+++\n", "a.md")
    assert [problem.key for problem in caught.value.problems] == [
        "name",
        "version",
        "source",
        "requires.connectors",
        "match.intent",
        "execute",
    ]
    assert {problem.line for problem in caught.value.problems} == {1}


@pytest.mark.parametrize(
    "version", ["0.0.0-dev", "1.0.0-alpha.1", "1.0.0+20130313144700", "1.0.0-x-y-z.--"]
)
def test_a_version_may_have_tails(load: Callable[..., Action], version: str) -> None:
    action = load(old='version = "1.2.3"\nsource', new=f'version = "{version}"\nsource')
    assert action.version == version


def test_a_wrong_change_is_named_where_it_stands(manifest: Build) -> None:
    """Its own line and column, also where several stand in one table."""
    faulty = manifest(CHANGE.format(effect="change", changes="{ A = '${args.a}', B = 'b' }"))
    with pytest.raises(FileProblems) as caught:
        load_action(faulty, "a.md")
    (problem,) = caught.value.problems
    row = faulty.decode().split("\n")[problem.line - 1]
    assert row[problem.column - 1 :].startswith("B = 'b'")


def test_what_is_read_back_may_be_found_by_what_a_step_returned(
    load: Callable[..., Action],
) -> None:
    lines = "{ A = 'closed' }\nread_back = { id = '${send.id}', of = '${args.a}' }"
    preview = load(CHANGE.format(effect="create", changes=lines)).approval.preview
    assert preview is not None
    assert preview.read_back == {"id": "${send.id}", "of": "${args.a}"}


def test_a_change_may_be_a_text_without_arguments(load: Callable[..., Action]) -> None:
    """An op may be what closes an issue, with nothing but its number."""
    preview = load(CHANGE.format(effect="change", changes="{ A = 'closed' }")).approval.preview
    assert preview is not None
    assert preview.changes == (("A", "closed"),)


def test_a_step_may_use_an_earlier_one_whose_id_has_dots(load: Callable[..., Action]) -> None:
    """Step ids have no grammar; the longest that fits is meant."""
    action = load(
        STEP.format(id="send.first")
        + STEP.format(id="last")
        + 'inputs = { x = "${send.first.id}" }\n'
    )
    assert action.steps[2].inputs == {"x": "${send.first.id}"}
