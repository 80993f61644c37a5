"""From bytes to an action, what it is called and how it is described, or to every problem, rule by rule, with its place."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from aileron_core.actions.load import load_action, read_action
from aileron_core.actions.model import GATED_NOTE, Action, Approval
from aileron_core.actions.positions import locate
from aileron_core.canonical import sha256_hex
from aileron_core.errors import FileProblems, Problem

Build = Callable[..., bytes]
Load = Callable[..., Action]


def load_problems(data: bytes) -> tuple[Problem, ...]:
    with pytest.raises(FileProblems) as caught:
        load_action(data, "send-note.md")
    return caught.value.problems


def test_a_file_says_what_it_states(manifest: Build) -> None:
    data = manifest(
        """inputs = { to = "${args.to}", meta = { n = 1, at = 2026-01-02T03:04:05Z, day = 2026-01-02 } }

[[inputs]]
name = "to"
type = "array"
items_type = "string"
required = false
description = "who"
label = "To"

[approval]
required = true
effect = "send"

[approval.preview]
op = "read"
args = { id = "${args.to}" }
multiline = ["Body"]
gist = "${Subject} to ${To}"
recheck = true

[approval.preview.render]
To = "headers.To"
Subject = "headers.Subject"
Body = "body"

[limits]
wall_seconds = 300
memory_mib = 1024
"""
    )
    action = load_action(data, "send-note.md")
    assert (action.name, action.version, action.intent) == ("send-note", "1.2.3", "send a note")
    assert action.source == "github://acme/notes/actions/send-note@1.2.3"
    assert action.requires[0].capabilities == ("send", "read")
    (entry,) = action.inputs
    assert (entry.name, entry.type, entry.items_type) == ("to", "array", "string")
    assert (entry.required, entry.label, entry.multiline) == (False, "To", False)
    (step,) = action.steps
    assert (step.id, step.op, step.idempotent) == ("send", "send", False)
    meta = {"n": 1, "at": "2026-01-02T03:04:05+00:00", "day": "2026-01-02"}
    assert step.inputs == {"to": "${args.to}", "meta": meta}
    assert action.approval.effect == "send"
    preview = action.approval.preview
    assert preview is not None
    fields = (("To", "headers.To"), ("Subject", "headers.Subject"), ("Body", "body"))
    assert preview.render == fields
    assert (preview.multiline, preview.args) == ({"Body"}, {"id": "${args.to}"})
    assert (action.limits.wall_seconds, action.limits.memory_mib) == (300, 1024)
    assert action.sha256 == sha256_hex(data)
    assert (action.body, action.file) == ("\n# Send a note\n\nSends it.\n", "send-note.md")


def test_what_a_file_leaves_out_has_its_default(load: Load) -> None:
    action = load('[[inputs]]\nname = "a"\ntype = "string"\ndescription = "d"\n')
    assert action.inputs[0].required is True
    assert action.approval == Approval()
    assert action.steps[0].inputs is None
    assert (action.limits.wall_seconds, action.limits.memory_mib) == (30, 64)
    # A step that states no arguments gets none; one that says nothing gets the call's.
    assert load("inputs = {}\n").steps[0].inputs == {}


def test_a_byte_order_mark_blank_lines_and_crlf_are_no_problem(manifest: Build) -> None:
    """Editors of other systems leave these."""
    action = load_action(b"\xef\xbb\xbf\n  \n" + manifest().replace(b"\n", b"\r\n"), "send-note.md")
    assert (action.name, "\r" in action.body) == ("send-note", False)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"", 'missing "+++" opening delimiter', 1),
        (b"\n \n", 'missing "+++" opening delimiter', 1),
        (b"\nhello\n+++\n", 'expected "+++" at start', 2),
        (b"+++\nname = 1\n", 'missing "+++" closing delimiter', 3),
        (b"+++\n+++\n\n\xff\n", "is not UTF-8 text", 4),
        (b"+++\n# " + b"x" * 1024 * 1024 + b"\n+++\n", "has a line longer than 1 MiB", 2),
        (b"+++\na = " + b"[" * 100_000 + b"\n+++\n", "nested too deeply", 2),
        (b"+++\n\n" + b"a . " * 64 + b"b = 1\n+++\n", "dotted key of more than 64 parts", 3),
        (b"+++\n[" + b"'a b'." * 500_000 + b"b]\n+++\n", "has a line longer than 1 MiB", 2),
        (b"+++\n\na = b\n+++\n", "invalid TOML: Invalid value", 3),
        (b"+++\na = " + b"9" * 5000 + b"\n+++\n", "too many digits", 2),
        (b"+++\na = 2026-13-45\n+++\n", "invalid TOML: Expected newline", 2),
    ],
    ids=lambda value: str(value)[:30] if not isinstance(value, bytes) else "file",
)
def test_another_form_is_a_parse_error_with_its_line(data: bytes, message: str, line: int) -> None:
    (problem,) = load_problems(data)
    assert message in problem.message
    assert (problem.class_, problem.line) == ("parse_error", line)


def test_a_byte_that_is_no_text_has_its_column() -> None:
    at_ten = b'+++\nname = "\xc3\xa4\xff"\n+++\n'
    for data, column in ((at_ten, 10), (b"\xef\xbb\xbf\xe4+++", 1), (b"\xff\xfe+", 1)):
        (problem,) = load_problems(data)
        assert (problem.message, problem.column) == ("is not UTF-8 text", column)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('version = "1.2.3"\nsource', "version = 1.2.3\nsource", (3, 14)),
        ('"send a note"', '"send a note', (13, 22)),
        ('"send a note"', '"""\nsend', (20, 19)),
        ("[match]", "[match] # ok\n[match]", (13, 7)),
        ('op = "send"', "\top = send\n\tidempotent = tru", (18, 7)),
        ('op = "send"', "op = [", (19, 1)),
    ],
)
@pytest.mark.parametrize("before", ["", "\N{BYTE ORDER MARK}\r\n"])
def test_the_first_fault_of_toml_stands_where_an_editor_counts_it(
    manifest: Build, old: str, new: str, place: tuple[int, int], before: str
) -> None:
    """A byte order mark, CRLF and tabs move no column; what has no end is noticed at the end."""
    text = before + manifest(old=old, new=new).decode()
    if before:
        text = text.replace("\n", "\r\n").replace("\r\r", "\r")
    (problem,) = load_problems(text.encode())
    assert (problem.line - bool(before), problem.column, problem.key) == (*place, "")


def test_a_fault_of_toml_is_the_only_one_until_it_is_mended(manifest: Build) -> None:
    """Nothing is called missing or wrong that a faulty line may state; then every rule speaks."""
    faulty = manifest("retry = 3\n", old='version = "1.2.3"\nsource', new="version = v1\nsource")
    (fault,) = load_problems(faulty)
    assert fault.message == "invalid TOML: Invalid value"
    mended = load_problems(faulty.replace(b"v1", b'"v1"'))
    assert [each.key for each in mended] == ["execute[0].retry", "version"]


def test_every_problem_of_a_file_is_reported_together(manifest: Build) -> None:
    """One look at the list is enough to mend a file; those of the form come first."""
    data = manifest(
        'retry = 3\n\n[[inputs]]\nname = "bad-name"\ntype = "text"\nlabel = " "\n'
        "\n[limits]\nwall_seconds = true\nmemory_mib = 0\n",
        old='version = "1.2.3"\nsource',
        new='version = "v1"\nsource',
    )
    assert [(each.class_, each.line, each.column, each.key) for each in load_problems(data)] == [
        ("parse_error", 20, 1, "execute[0].retry"),
        ("parse_error", 28, 1, "limits.wall_seconds"),
        ("validation_error", 22, 1, "inputs[0].description"),
        ("validation_error", 3, 1, "version"),
        ("validation_error", 23, 1, "inputs[0].name"),
        ("validation_error", 24, 1, "inputs[0].type"),
        ("validation_error", 25, 1, "inputs[0].label"),
        ("validation_error", 29, 1, "limits.memory_mib"),
    ]


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ('color = "red"\n', "execute[0].color"),
        ("[state]\n", "state"),
        ("[approval]\nrequired = true\nconfirm = true\n", "approval.confirm"),
        ("irreversible = true\n", "execute[0].irreversible"),
        ("[approval.preview]\nop='x'\nrender={A='b'}\nnope=1\n", "approval.preview.nope"),
        ("[limits]\ncpu = 1\n", "limits.cpu"),
        ("[[bindings]]\nname='x'\n", "bindings"),
    ],
)
def test_an_unknown_key_is_refused_wherever_it_stands(manifest: Build, more: str, key: str) -> None:
    """The schema is closed: a misspelt `requird` must not silently ungate an action."""
    problem = load_problems(manifest(more))[0]
    assert (problem.key, problem.class_) == (key, "parse_error")
    assert "unknown front matter key" in problem.message


@pytest.mark.parametrize(
    ("extra", "key", "message"),
    [
        ("inputs = { n = 9007199254740992 }\n", "execute[0].inputs.n", "beyond 2^53"),
        ("inputs = { n = [1, inf] }\n", "execute[0].inputs.n[1]", "not a number that JSON allows"),
        ("inputs = { n = nan }\n", "execute[0].inputs.n", "not a number that JSON allows"),
        ("inputs = { n = 03:04:05 }\n", "execute[0].inputs.n", "time without a date"),
        ("inputs = { n = 2026-01-02T03:04:05 }\n", "execute[0].inputs.n", "without an offset"),
        ("inputs = 3\n", "execute[0].inputs", "must be a table, not an integer"),
        ('[approval]\nrequired = "yes"\n', "approval.required", "true or false, not a string"),
        ("[approval]\npreview = []\n", "approval.preview", "must be a table, not an array"),
        ("inputs = { a = " + "[" * 70 + "]" * 70 + " }\n", None, "nested more than 64 levels"),
    ],
)
def test_a_value_that_has_no_place_is_named(
    manifest: Build, extra: str, key: str | None, message: str
) -> None:
    """Types are checked at load, never guessed at run time."""
    problem = load_problems(manifest(extra))[0]
    assert message in problem.message
    assert problem.key == key or (key is None and problem.key.startswith("execute[0].inputs.a[0]"))


def test_a_wrong_type_is_said_once(manifest: Build) -> None:
    """`name = 5` is not also `name is required`."""
    (problem,) = load_problems(manifest(old='name = "send-note"', new="name = 5"))
    assert problem.message == "must be a string, not an integer"


def test_hostile_text_in_a_message_is_made_visible(manifest: Build) -> None:
    """A file cannot write escape sequences to the terminal through its own error."""
    (problem,) = load_problems(manifest(old='name = "send-note"', new='name = "\\u001b[2J\\u202e"'))
    assert "‹ESC›[2J‹RLO›" in problem.message
    (problem,) = load_problems(manifest('inputs = { x = "${args.\\u001b[2J\\u202e}" }\n'))
    assert "‹ESC›[2J‹RLO›" in problem.message
    assert "\x1b" not in problem.message
    (problem,) = load_problems(manifest(f'inputs = {{ x = "${{args.{"y" * 10_000}}}" }}\n'))
    assert len(problem.message) < 300


def test_a_file_full_of_problems_lists_the_first_thousand_and_counts_the_rest() -> None:
    """A hostile file cannot make the list of problems larger than itself."""
    lines = b"".join(b"k%d = 1\n" % number for number in range(2000))
    problems = load_problems(b"+++\n" + lines + b"+++\n")
    assert (len(problems), problems[-1].message) == (1001, "and 1006 more problems")


def test_long_lists_are_judged_in_a_time_that_grows_with_their_length() -> None:
    """Thousands of inputs, references, steps and capabilities: each was looked up in a list."""
    inputs = "".join(f"[[inputs]]\nname='a{number}'\n" for number in range(10_000))
    steps = "[[execute]]\nconnector='github://a/b'\nop='o'\n"
    references = "".join(f"x{number}='{'${args.b}' * 500}'\n" for number in range(100))
    capabilities = "".join(f"'c{number}',\n" for number in range(75_000))
    front = (
        f"[[requires.connectors]]\nname='github://a/b'\ncapabilities=[\n{capabilities}]\n"
        f"{inputs}{steps * 5_000}[execute.inputs]\n{references}"
    )
    begun = time.process_time()
    assert read_action(f"+++\n{front}+++\n".encode(), "long.md").action is None
    assert time.process_time() - begun < 10


TEXT = '''# a comment
name = "x" # [not.a.table]
"quoted \\u0041 key" . 'lit' = 1

[a.b]
c = """
[fake]
d = 1 """
e = [ 1, # one
  { f = "}", g = [[2]] },
]
[[t]]
x = \'\'\'it's ]\'\'\'
[[t]]
  x = 2026-01-02 03:04:05Z
[t.sub]
y = { z.w = 'a,b' }
[[t.sub2]]
[[t.sub2]]
k = true
'''


def test_every_key_table_and_element_has_its_place() -> None:
    """Text inside strings and comments is no key, whatever it looks like."""
    places = locate(TEXT)
    e = ("a", "b", "e")
    expected = {
        ("name",): (2, 1),
        ("quoted A key",): (3, 1),
        ("quoted A key", "lit"): (3, 23),
        ("a",): (5, 1),
        ("a", "b"): (5, 1),
        ("a", "b", "c"): (6, 1),
        e: (9, 1),
        (*e, 0): (9, 7),
        (*e, 1): (10, 3),
        (*e, 1, "f"): (10, 5),
        (*e, 1, "g"): (10, 14),
        (*e, 1, "g", 0): (10, 19),
        (*e, 1, "g", 0, 0): (10, 20),
        ("t",): (12, 1),
        ("t", 0): (12, 1),
        ("t", 0, "x"): (13, 1),
        ("t", 1): (14, 1),
        ("t", 1, "x"): (15, 3),
        ("t", 1, "sub"): (16, 1),
        **{("t", 1, "sub", *"yzw"[:n]): (17, at) for n, at in ((1, 1), (2, 7), (3, 9))},
        ("t", 1, "sub2"): (18, 1),
        ("t", 1, "sub2", 0): (18, 1),
        ("t", 1, "sub2", 1): (19, 1),
        ("t", 1, "sub2", 1, "k"): (20, 1),
    }
    assert dict(places) == expected


def test_what_comes_before_a_fault_keeps_its_place() -> None:
    """Where the thread is lost the finder stops; it never raises."""
    places = locate("a = 1\nb = [1, }\nc = 2\n")
    assert places["a",] == (1, 1)
    assert ("c",) not in places


ACTION = Action(name="send.a-note", version="1.0.0", source="", requires=(), intent="send a note")


@pytest.mark.parametrize(
    ("body", "title", "description"),
    [
        ("", "send.a-note", "send a note"),
        ("\n\n# Send a Note #\n\nSends it.\n", "Send a Note", "Sends it."),
        ("Sends it.\n\n## When\n", "When", "Sends it.\n\n## When"),
        ("# C#\nx", "C#", "x"),
        ("#hashtag\n", "send.a-note", "#hashtag"),
        ("```sh\n# comment\n```\n# Real\n", "Real", "```sh\n# comment\n```\n# Real"),
        ("# Only\n", "Only", "send a note"),
        ("#\n\ntext", "send.a-note", "text"),
    ],
)
def test_title_and_description_come_from_the_body(body: str, title: str, description: str) -> None:
    """The leading heading is the title, the rest what an agent reads; the intent stands in."""
    action = replace(ACTION, body=body)
    assert (action.title, action.description) == (title, description)


def test_a_gated_action_says_that_a_person_is_asked() -> None:
    """The agent knows beforehand that the answer may be pending."""
    action = replace(ACTION, body="# T\n\nSends.", approval=Approval(required=True))
    assert action.gated
    assert action.description == f"Sends.\n\n{GATED_NOTE}"


def test_a_tool_name_has_only_the_characters_that_tools_may_have() -> None:
    assert ACTION.tool_name == "send_a_note"
    assert replace(ACTION, name="a-" * 40).tool_name == "a_" * 24


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
    ('notes"\nop = ', 'other"\nop = ', "execute[0].connector", "not declared"),
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

A_TEXT = INPUT.format(type="string")
FAULTS = [
    # what is added to a good file, what of it is replaced by what, key, part of the message
    *(("", *case) for case in CASES),
    (STEP.format(id="send"), "", "", "execute[1].id", "is duplicated"),
    ('[approval]\neffect = "format"\n', "", "", "approval.effect", "read|create|change"),
    ("[limits]\nwall_seconds = 301\n", "", "", "limits.wall_seconds", "from 1 to 300"),
    ("[limits]\nwall_seconds = 0\n", "", "", "limits.wall_seconds", "from 1 to 300"),
    ("[limits]\nmemory_mib = 1025\n", "", "", "limits.memory_mib", "from 1 to 1024"),
    (SECOND_PIN, "", "", "requires.connectors[1].name", "is duplicated"),
    *(
        (
            f"inputs = {{ x = {value} }}\n{STEP.format(id='later')}",
            "",
            "",
            f"execute[0].inputs.{where}",
            said,
        )
        for value, where, said in SENT
    ),
    *(
        (f"{INPUT.format(type=type_)}{more}\n", "", "", f"inputs[0].{key}", said)
        for type_, more, key, said in INPUTS
    ),
    (A_TEXT.replace('"a"', '"a-b"'), "", "", "inputs[0].name", "must match"),
    (A_TEXT.replace('"a"', '"9a"'), "", "", "inputs[0].name", "must match"),
    (A_TEXT.replace('description = "d"\n', ""), "", "", "inputs[0].description", "is required"),
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
    (problem,) = load_problems(manifest(extra, old=old, new=new))
    assert (problem.key, problem.class_) == (key, "validation_error")
    assert message in problem.message
    assert problem.line > 0


def test_nothing_at_all_names_everything_that_must_be_there() -> None:
    keys = ["name", "version", "source", "requires.connectors", "match.intent", "execute"]
    found = load_problems(b"+++\n+++\n")
    assert [(each.key, each.line) for each in found] == [(key, 1) for key in keys]


def test_a_wrong_change_is_named_where_it_stands(manifest: Build) -> None:
    """Its own line and column, also where several stand in one table."""
    faulty = manifest(CHANGE.format(effect="change", changes="{ A = '${args.a}', B = 'b' }"))
    (problem,) = load_problems(faulty)
    assert faulty.decode().split("\n")[problem.line - 1][problem.column - 1 :].startswith("B = 'b'")


def test_what_is_read_back_may_be_found_by_what_a_step_gave(load: Callable[..., Action]) -> None:
    """And a change may be a text without arguments: an op may be what closes an issue, by its number."""
    lines = "{ A = 'closed' }\nread_back = { id = '${send.id}', of = '${args.a}' }"
    preview = load(CHANGE.format(effect="create", changes=lines)).approval.preview
    assert preview is not None
    read_back = {"id": "${send.id}", "of": "${args.a}"}
    assert (preview.read_back, preview.changes) == (read_back, (("A", "closed"),))


def test_a_step_may_use_an_earlier_one_whose_id_has_dots(load: Callable[..., Action]) -> None:
    """Step ids have no grammar; the longest that fits is meant."""
    first, last = STEP.format(id="send.first"), STEP.format(id="last")
    action = load(f'{first}{last}inputs = {{ x = "${{send.first.id}}" }}\n')
    assert action.steps[2].inputs == {"x": "${send.first.id}"}
