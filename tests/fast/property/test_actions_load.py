"""For any bytes: an action or a manifest, or every problem; nothing else."""

import json
import tomllib
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from aileron_core.actions.arguments import check_arguments, input_schema
from aileron_core.actions.load import load_action, read_action
from aileron_core.actions.model import Action
from aileron_core.actions.positions import locate
from aileron_core.canonical import canonical
from aileron_core.connectors.manifest import Manifest, parse_manifest
from aileron_core.errors import FileProblems, InvalidArguments
from tests.support.any_values import json_values

VALID = b"""\xef\xbb\xbf
+++
name = "send-note"
version = "1.2.3"
source = "github://acme/notes/actions/send-note@1.2.3"

[[requires.connectors]]
name = "github://acme/notes"
version = "1.2.3"
hash = "sha256:ab"
capabilities = ["send", "read"]

[match]
intent = "send a note"

[[execute]]
id = "find"
connector = "github://acme/notes"
op = "read"
idempotent = true
inputs = { id = "${args.to}", at = 2026-01-02T03:04:05Z, n = [1, 2.5, { x = true }] }

[[execute]]
id = "send"
connector = "github://acme/notes"
op = "send"

[execute.inputs]
text = "${find.text} ${args.count}"

[approval]
required = true
effect = "send"

[approval.preview]
op = "read"
args = { id = "${args.to}" }
multiline = ["Body"]
gist = "${To}"

[approval.preview.render]
To = "headers.To"
Body = "body"

[[inputs]]
name = "to"
type = "string"
description = "who"

[[inputs]]
name = "count"
type = "integer"
required = false
description = "how many"

[limits]
wall_seconds = 60
+++

# Send
"""
MORE = (
    ("teamId", "String", 'description = ""'),
    ("filter", "IssueFilter", 'description = "which"\nrequired = false'),
    ("limit", "Boolean", 'description = "all"\nrequired = false'),
    ("limit", "Int", 'description = "how many"\nrequired = false'),
    ("limit", "array", 'items_type = "string"\ndescription = "names"\nrequired = false'),
)
INPUTS = "".join(f'[[inputs]]\nname = "{n}"\ntype = "{t}"\n{rest}\n\n' for n, t, rest in MORE)
LENIENT = VALID.replace(b'["send", "read"]', b'["read"]')
LENIENT = LENIENT.replace(b"[limits]", f"{INPUTS}[limits]".encode())
WORDS = [
    "+++", "\n", "[", "]", "[[", "]]", "{", "}", "=", ".", ",", '"', "'", '"""', "'''", "#", "\\",
    "name", "inputs", "execute", "approval", "preview", "render", "required", "limits", "match",
    "true", "false", "1", "-1", "1e999", "nan", "9007199254740993", "2026-01-02", "03:04:05",
    "${args.to}", "${", "}", "\r", "\x00", "\x1b", "\u202e", "é", " ", "\t", "a", "a.b",
]  # fmt: skip
KEY = st.one_of(st.sampled_from(["a", "b", "c-1"]), st.text(max_size=4))
NUMBER = st.integers(-(2**60), 2**60)
SCALAR = st.booleans() | NUMBER | st.text(max_size=6) | st.dates() | st.just("[x]\n# = {")
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEY, inner, max_size=3)),
)
JSON_VALUE = json_values(st.text(alphabet=st.characters(), max_size=4), st.integers() | st.floats())
LIMIT = JSON_VALUE | st.lists(st.text(max_size=2), max_size=3)
LENIENT_ARGS = st.fixed_dictionaries(
    {"to": st.text(max_size=3), "teamId": st.text(max_size=3)},
    optional={"count": st.integers(-3, 3), "filter": JSON_VALUE, "limit": LIMIT},
)
PLANTED = ["broken = ", 'broken = "open', "broken 1", "broken = [1 2]", '"a" = 1 2']
_TABLES = ["connector", "capabilities", "network", "credential", "oauth2", "spawn", "hosts"]
_MEMBERS = ["kind", "name", "version", "idempotency", "default", "format", "scopes", "programs"]
_KEYS = st.sampled_from([*_TABLES, *_MEMBERS, "x"])
_TEXTS = ['"a"', '"local://a/b"', '"1.0.0"', '"oauth2"', '"api_key"', '"{key}"']
_OTHERS = ["1", "1.5", "true", "[]", "[1]", '["a:1"]', "{}", "[{}]", "2020-01-01", "nan"]
_VALUES = st.sampled_from([*_TEXTS, *_OTHERS, '{a = {argv = ["x"]}}'])
_HEADERS = st.lists(_KEYS, min_size=1, max_size=3).map(lambda keys: f"[{'.'.join(keys)}]")
_LINES = st.one_of(_HEADERS, st.tuples(_KEYS, _VALUES).map(" = ".join))


def edited(of: tuple[bytes, list[tuple[int, int, bytes]]]) -> bytes:
    data, edits = of
    for place, length, new in edits:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    return data


FRAGMENT = st.one_of(st.sampled_from(WORDS).map(str.encode), st.binary(max_size=3))
EDITS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 12), FRAGMENT), max_size=4)
WORDED = st.lists(st.sampled_from(WORDS)).map(lambda w: f"+++\n{''.join(w)}\n+++\n".encode())
FILES = st.binary() | WORDED | st.tuples(st.sampled_from([VALID, LENIENT]), EDITS).map(edited)


ERRORS, WARNINGS = {"parse_error", "validation_error", "portability"}, {"leniency", "portability"}


def loaded(data: bytes, *, portable: bool = False) -> Action | None:
    reading = read_action(data, "any.md", portable=portable)
    problems = reading.problems
    severities = [problem.severity for problem in problems]
    assert severities == sorted(severities)
    ours = [problem for problem in problems if problem.class_ != "portability"]
    assert (reading.action is None) is any(problem.severity == "error" for problem in ours)
    assert portable or ours == list(problems)
    for problem in problems:
        assert problem.message
        assert problem.class_ in (ERRORS if problem.severity == "error" else WARNINGS)
        assert 1 <= problem.line <= data.count(b"\n") + 1
        assert problem.column >= 1
        json.dumps(problem.to_json(), ensure_ascii=False).encode()
    return reading.action


def test_the_files_that_the_others_are_made_from_load() -> None:
    """Else the property below would look at refusals only."""
    assert loaded(VALID) is not None
    assert loaded(LENIENT) is not None
    assert len(read_action(LENIENT, "any.md").problems) == 6


@given(FILES, st.booleans())
@example(b"\xef\xbb\xbf\x00\x80", False)
@example(b"\xef\xbb", False)
def test_any_bytes_are_an_action_or_its_problems(data: bytes, portable: bool) -> None:
    action = loaded(data, portable=portable)
    try:
        assert load_action(data, "any.md") == action
    except FileProblems as error:
        refused = error.problems
    else:
        refused = ()
    assert (action is None) is bool(refused)
    assert all(problem.severity == "error" for problem in refused)
    if action is not None:
        assert len(set(action.input_names)) == len(action.input_names)
        schema = input_schema(action)
        canonical(schema)
        Draft202012Validator.check_schema(schema)
        assert action.title
        assert action.description
        assert 0 < len(action.tool_name) <= 48
        for step in action.steps:
            canonical(step.inputs)


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map("".join)))
def test_the_finder_of_positions_never_raises(text: str) -> None:
    lines = text.split("\n")
    for line, column in locate(text).values():
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[ # a comment ]\n" + "".join(f"{toml(item)},\n" for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value, default=str).strip('"')


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {path} if path else set()
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        found |= paths(item, (*path, key))
    return found


@given(
    st.dictionaries(KEY, VALUE, max_size=4),
    st.lists(st.dictionaries(KEY, VALUE, max_size=2), max_size=3),
)
def test_finder_and_parser_agree_on_toml(top: dict[str, Any], tables: list[dict[str, Any]]) -> None:
    text = "".join(f"{toml(key)} = {toml(item)}\n" for key, item in top.items() if key != "t")
    for table in tables:
        text += "[[ t ]] # next\n"
        text += "".join(f"{toml(key)} = {toml(item)}\n" for key, item in table.items())
    assert set(locate(text)) == paths(tomllib.loads(text))


@given(st.one_of(JSON_VALUE, st.dictionaries(st.sampled_from(["to", "count", "x"]), JSON_VALUE)))
def test_any_arguments_are_taken_or_refused_and_what_is_taken_can_be_digested(args: Any) -> None:
    action = loaded(VALID)
    assert action is not None
    try:
        taken = check_arguments(action, args)
    except InvalidArguments as error:
        canonical(error.to_failure().to_json())
        return
    canonical(taken)
    assert set(taken) <= {"to", "count"}
    assert isinstance(taken["to"], str)
    assert type(taken.get("count", 0)) is int


@given(LENIENT_ARGS)
def test_what_is_taken_leniently_fits_the_schema_that_agents_were_given(args: Any) -> None:
    action = loaded(LENIENT)
    assert action is not None
    given_args = {name: value for name, value in args.items() if value is not None}
    fits = Draft202012Validator(input_schema(action)).is_valid(given_args)
    try:
        taken = check_arguments(action, args)
    except InvalidArguments as error:
        refused_type = any("must be" in each["problem"] for each in error.details["problems"])
        assert fits is not refused_type
    else:
        assert fits
        assert canonical(taken) == canonical(given_args)


@given(st.dictionaries(st.integers(1, 60), st.sampled_from(PLANTED), min_size=1), st.booleans())
def test_the_first_fault_is_found_where_it_was_planted(planted: dict[int, str], crlf: bool) -> None:
    lines = VALID.decode().split("\n")
    last = lines.index("+++", 3)
    assume(any(2 <= number <= last for number in planted))
    first = min(number for number in planted if 2 <= number <= last)
    for number in sorted(planted, reverse=True):
        if 2 <= number <= last:
            lines.insert(number, planted[number])
    data = ("\r\n" if crlf else "\n").join(lines).encode()
    (problem,) = read_action(data, "any.md").problems
    assert (problem.class_, problem.line) == ("parse_error", first + 1)
    assert problem.message.startswith("invalid TOML: ")


def _read(data: bytes) -> Manifest | None:
    try:
        return parse_manifest(data, "m.toml")
    except FileProblems as error:
        problems = error.problems
    assert problems
    assert all(p.class_ in {"parse_error", "validation_error"} for p in problems)
    return None


@given(st.binary(max_size=200), st.lists(_LINES, max_size=12))
def test_any_bytes_or_words_end_as_manifest_or_problems(data: bytes, lines: list[str]) -> None:
    _read(data)
    head = '[connector]\nname = "local://a/b"\nversion = "1.0.0"\n'
    manifest = _read((head + "\n".join(lines)).encode())
    if manifest is not None:
        assert manifest.name == "local://a/b"
        assert all(host == host.lower() and ":" in host for host in manifest.hosts)
