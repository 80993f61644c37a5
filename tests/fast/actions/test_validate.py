"""The rules of an action file, one by one."""

from collections.abc import Callable

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action
from aileron_core.errors import FileProblems

Build = Callable[..., bytes]

NEED = "requires.connectors[0]"
SOURCE = "github://acme/notes/actions/send-note@1.2.3"
CASES = [
    # old, new, key, part of the message
    ('name = "send-note"', "", "name", "is required"),
    ('name = "send-note"', 'name = "Send"', "name", "must match"),
    ('name = "send-note"', 'name = "-send"', "name", "must match"),
    ('name = "send-note"', 'name = "send\\n"', "name", "must match"),
    ('name = "send-note"', 'name = "withdraw-action"', "name", "of Aileron's own"),
    ('version = "1.2.3"\nsource', "source", "version", "is required"),
    ('version = "1.2.3"\nsource', 'version = "1.2"\nsource', "version", "strict SemVer"),
    ('version = "1.2.3"\nsource', 'version = "01.2.3"\nsource', "version", "strict SemVer"),
    ("/send-note@1.2.3", "/send-note", "source", "missing @<version> suffix"),
    ("/send-note@1.2.3", "/send-note@latest", "source", "strict SemVer"),
    ('source = "github:', 'source = "ftp:', "source", "scheme not recognized"),
    (SOURCE, "github://@1.2.3", "source", "missing owner"),
    (SOURCE, "hub://x/@1.2.3", "source", "missing path"),
    (SOURCE, "hub@1.2.3", "source", "not a valid URI"),
    (SOURCE, "hub://a/../b@1.2.3", "source", "dots"),
    ('acme/notes"', 'acme/notes@1.2.3"', f"{NEED}.name", "must not contain @<version>"),
    ('hash = "sha256:ab"', "", f"{NEED}.hash", "is required"),
    ('hash = "sha256:ab"', 'hash = "sha256:"', f"{NEED}.hash", "followed by a digest"),
    ('hash = "sha256:ab"', 'hash = "md5:ab"', f"{NEED}.hash", "followed by a digest"),
    ('["send", "read"]', "[]", f"{NEED}.capabilities", "list the ops"),
    ('["send", "read"]', '["send", " "]', f"{NEED}.capabilities[1]", "is empty"),
    ('intent = "send a note"', 'intent = " "', "match.intent", "is required"),
    ('id = "send"', "", "execute[0].id", "is required"),
    ('op = "send"', "", "execute[0].op", "is required"),
    (
        'connector = "github://acme',
        'connector = "github://o',
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
    ('[approval]\neffect = "format"\n', "approval.effect", "read|create|change"),
    ("[limits]\nwall_seconds = 301\n", "limits.wall_seconds", "from 1 to 300"),
    ("[limits]\nwall_seconds = 0\n", "limits.wall_seconds", "from 1 to 300"),
    ("[limits]\nmemory_mib = 1025\n", "limits.memory_mib", "from 1 to 1024"),
    (SECOND_PIN, "requires.connectors[1].name", "is duplicated"),
]

SENT = [
    # what a step is given, where it stands in its inputs, part of the message
    ('"${args.a}"', "x", "no [[inputs]] block declares"),
    ('["-", "${args.teamId}"]', "x[1]", "no [[inputs]]"),
    ('"${later.id}"', "x", "earlier"),
    ('"${send.id}"', "x", "names no earlier step"),
    ('"${HOME}"', "x", "is not a reference"),
    ('"${args.a"', "x", "is not closed"),
]

INPUTS = [
    # type, more lines, key, part of the message
    ("int", "", "type", "|array|object; write integer"),
    ("any", "", "type", "or JSON for any JSON"),
    ("[String]", "", "type", "must be one of string|integer"),
    ("Filter", "multiline = true", "multiline", "is allowed only with"),
    ("string", 'label = " "', "label", "must not be blank"),
    ("integer", "multiline = true", "multiline", "is allowed only with"),
    ("object", 'items_type = "string"', "items_type", "is allowed only"),
    ("array", 'items_type = "array"', "items_type", "one of"),
    ("array", 'format = "html"', "format", 'is allowed only with type = "string"'),
]

RENDERED = "render = { A = 'a' }\n"
PREVIEWS = [
    # lines, key, part of the message
    ("", "render", "at least one field"),
    ("render = { A = '' }", "render.A", "empty path"),
    ("render = { ' ' = 'a' }", 'render." "', "empty label"),
    (f"{RENDERED}multiline = ['B']", "multiline", "not a label of render"),
    (f"{RENDERED}gist = '${{A}} to ${{B}}'", "gist", "not a label of render"),
    (f"{RENDERED}recheck = false", "recheck", "must be true"),
    (f"{RENDERED}args = {{ id = '${{args.a}}' }}", "args.id", "no [[inputs]]"),
    (f"{RENDERED}args = {{ id = '${{send.id}}' }}", "args.id", "names no earlier step"),
    (f"{RENDERED}formats = {{ B = 'html' }}", "formats.B", "not a label of render"),
    (f"{RENDERED}formats = {{ A = 'rtf' }}", "formats.A", "html|markdown|json|diff|addresses"),
]

CHANGES = [
    # effect, changes and what follows, key, part of the message
    ("change", "{ B = '${args.a}' }", "changes.B", "not a label of render"),
    ("send", "{ A = '${args.a}' }", "changes", 'only with effect = "change"'),
    ("pay", "{}\nread_back = { id = 'x' }", "read_back", 'only with effect = "change" or "create"'),
    ("create", "{}\nread_back = { id = '${later.id}' }", "read_back.id", "names no earlier step"),
    ("change", "{ A = '${args.b}' }", "changes.A", "no [[inputs]]"),
    ("change", "{ A = '${send.id}' }", "changes.A", "names no argument"),
    ("change", "{ A = '${args.a' }", "changes.A", "is not closed"),
    ("change", "{ A = '${args.unsent}' }", "changes.A", "is not an input of any step"),
]


LINES = [
    # old, new, key, part of the message
    ('"a"', '"a-b"', "name", "must match"),
    ('"a"', '"9a"', "name", "must match"),
    ('description = "d"\n', "", "description", "is required"),
]

LATER = STEP.format(id="later")
TEXT = INPUT.format(type="string")
FAULTS = [
    # what is added to a good file, what of it is replaced by what, key, part of the message
    *(("", *case) for case in CASES),
    *((extra, "", "", key, said) for extra, key, said in EXTRA),
    *(
        (f"inputs = {{ x = {value} }}\n{LATER}", "", "", f"execute[0].inputs.{where}", said)
        for value, where, said in SENT
    ),
    *(
        (f"{INPUT.format(type=type_)}{more}\n", "", "", f"inputs[0].{key}", said)
        for type_, more, key, said in INPUTS
    ),
    *((TEXT.replace(old, new), "", "", f"inputs[0].{key}", said) for old, new, key, said in LINES),
    *(
        (PREVIEW.format(more=lines), "", "", f"approval.preview.{key}", said)
        for lines, key, said in PREVIEWS
    ),
    *(
        (CHANGE.format(effect=effect, changes=changes), "", "", f"approval.preview.{key}", said)
        for effect, changes, key, said in CHANGES
    ),
]


@pytest.mark.parametrize(("extra", "old", "new", "key", "message"), FAULTS)
def test_a_broken_rule_is_one_problem_at_its_key(
    manifest: Build, extra: str, old: str, new: str, key: str, message: str
) -> None:
    with pytest.raises(FileProblems) as caught:
        load_action(manifest(extra, old=old, new=new), "send-note.md")
    (problem,) = caught.value.problems
    assert (problem.key, problem.class_) == (key, "validation_error")
    assert message in problem.message
    assert problem.line > 0


def test_nothing_at_all_names_everything_that_must_be_there() -> None:
    with pytest.raises(FileProblems) as caught:
        load_action(b"+++\n+++\n", "a.md")
    keys = ["name", "version", "source", "requires.connectors", "match.intent", "execute"]
    assert [problem.key for problem in caught.value.problems] == keys
    assert {problem.line for problem in caught.value.problems} == {1}


def test_a_wrong_change_is_named_where_it_stands(manifest: Build) -> None:
    """Its own line and column, also where several stand in one table."""
    faulty = manifest(CHANGE.format(effect="change", changes="{ A = '${args.a}', B = 'b' }"))
    with pytest.raises(FileProblems) as caught:
        load_action(faulty, "a.md")
    (problem,) = caught.value.problems
    row = faulty.decode().split("\n")[problem.line - 1]
    assert row[problem.column - 1 :].startswith("B = 'b'")


def test_what_is_read_back_may_be_found_by_what_a_step_gave(load: Callable[..., Action]) -> None:
    """And a change may be a text without arguments: an op may be what closes an issue, by its number."""
    lines = "{ A = 'closed' }\nread_back = { id = '${send.id}', of = '${args.a}' }"
    preview = load(CHANGE.format(effect="create", changes=lines)).approval.preview
    assert preview is not None
    assert preview.read_back == {"id": "${send.id}", "of": "${args.a}"}
    assert preview.changes == (("A", "closed"),)


def test_a_step_may_use_an_earlier_one_whose_id_has_dots(load: Callable[..., Action]) -> None:
    """Step ids have no grammar; the longest that fits is meant."""
    first, last = STEP.format(id="send.first"), STEP.format(id="last")
    action = load(f'{first}{last}inputs = {{ x = "${{send.first.id}}" }}\n')
    assert action.steps[2].inputs == {"x": "${send.first.id}"}
