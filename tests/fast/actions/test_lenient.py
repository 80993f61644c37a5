"""What generated suites write, taken with a warning (and refused upstream); published suites (where AILERON_CORPUS points)."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aileron_core.actions.arguments import check_arguments, input_schema
from aileron_core.actions.catalog import Catalog, scan
from aileron_core.actions.interpolate import op_arguments
from aileron_core.actions.load import ParsedFile, load_action, read_action
from aileron_core.actions.model import Action
from aileron_core.errors import FileProblems, InvalidArguments, Problem

Build = Callable[..., bytes]


def declared(name: str, type_: str, more: str = "", description: str = "d") -> str:
    lines = f'name = "{name}"\ntype = "{type_}"\ndescription = "{description}"\n{more}'
    return f"\n[[inputs]]\n{lines}\n"


@pytest.fixture
def read_file(manifest: Build) -> Callable[..., ParsedFile]:
    def reading(extra: str = "", *, portable: bool = False, **changes: str) -> ParsedFile:
        return read_action(manifest(extra, **changes), "send-note.md", portable=portable)

    return reading


Read = Callable[..., ParsedFile]


def parsed_action(reading: ParsedFile) -> Action:
    assert reading.action is not None
    assert all(problem.severity == "warning" for problem in reading.problems)
    return reading.action


def only(reading: ParsedFile) -> Problem:
    (problem,) = reading.problems
    assert (problem.class_, problem.severity) == ("leniency", "warning")
    return problem


@pytest.mark.parametrize(
    ("type_", "spellings"),
    [
        ("string", ("String", "ID", "DateTime", "TimelessDate", "Duration")),
        *(("integer", ("Int",)), ("number", ("Float",)), ("boolean", ("Boolean",))),
    ],
)
def test_a_type_of_graphql_is_read_as_ours(
    read_file: Read, type_: str, spellings: tuple[str, ...]
) -> None:
    """Agents are told the strict type, and arguments are checked against it."""
    for spelling in spellings:
        reading = read_file(declared("a", spelling))
        schema: Any = input_schema(parsed_action(reading))
        assert schema["properties"]["a"] == {"type": type_, "description": "d"}
        problem = only(reading)
        assert f"{spelling} is accepted and read as {type_}" in problem.message
        assert (problem.line, problem.key) == (23, "inputs[0].type")


@pytest.mark.parametrize("spelling", ["JSON", "JSONObject", "IssueFilter", "Integer", "A_9"])
@pytest.mark.parametrize("value", ["x", 1, 1.5, True, None, [None], {"a": [1]}])
def test_another_capital_type_takes_any_json(read_file: Read, spelling: str, value: Any) -> None:
    """Nothing is known of it, so nothing is promised: the schema has no type. Null is JSON too."""
    reading = read_file(declared("a", spelling))
    action = parsed_action(reading)
    schema: Any = input_schema(action)
    assert schema["properties"]["a"] == {"description": "d"}
    assert check_arguments(action, {"a": value}) == {"a": value}
    assert "any JSON is accepted" in only(reading).message


def test_any_json_is_still_json_that_readers_agree_on(read_file: Read) -> None:
    """And a required one must be there; an optional null counts as absent."""
    action = parsed_action(
        read_file(declared("a", "JSON") + declared("b", "JSON", "required = false"))
    )
    assert check_arguments(action, {"a": 1, "b": None}) == {"a": 1}
    for args in ({}, {"a": 2**53}, {"a": "\ud800"}, {"a": float("nan")}):
        with pytest.raises(InvalidArguments):
            check_arguments(action, args)


def test_a_name_in_camel_case_is_taken_and_referenced(read_file: Read) -> None:
    inputs = 'inputs = { team = "${args.teamId}", text = "to ${args._X9}" }\n'
    reading = read_file(inputs + declared("teamId", "string") + declared("_X9", "string"))
    action = parsed_action(reading)
    filled = op_arguments(action.steps[0], {"teamId": "t", "_X9": "x"}, {}, action.input_names)
    assert filled == {"team": "t", "text": "to x"}
    problem = only(reading)
    assert '"teamId" is accepted, but a strict name' in problem.message
    assert '"_X9"' in problem.message


@pytest.mark.parametrize("blank", ["", " ", "\\t\\n"])
def test_a_blank_description_is_said_to_be_none(read_file: Read, blank: str) -> None:
    reading = read_file(declared("a", "string", description=blank))
    assert parsed_action(reading).inputs[0].description == "(no description)"
    assert only(reading).key == "inputs[0].description"


def test_an_input_declared_twice_takes_either_type(read_file: Read) -> None:
    """Required if either is; each declaration keeps its own description."""
    reading = read_file(
        declared("a", "string", "required = false", description=" ")
        + declared("b", "boolean", "required = false")
        + declared("a", "array", 'items_type = "integer"\nlabel = "A"', description="numbers")
    )
    action = parsed_action(reading)
    assert action.input_names == ("a", "b")
    assert (action.inputs[0].label, action.inputs[0].description) == ("A", "numbers")
    schema: Any = input_schema(action)
    assert schema["required"] == ["a"]
    text = {"type": "string", "description": "(no description)"}
    numbers = {"type": "array", "items": {"type": "integer"}, "description": "numbers"}
    assert schema["properties"]["a"] == {"description": "numbers", "anyOf": [text, numbers]}
    assert check_arguments(action, {"a": "x"}) == {"a": "x"}
    assert check_arguments(action, {"a": [1.0]}) == {"a": [1]}
    assert [each.key for each in reading.problems] == ["inputs[0].description", "inputs[2].name"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, "must be a string or an array, not a boolean"),
        (["x"], 'at "[0]": must be an integer, not a string'),
        ("\ud800", "contains a lone surrogate"),
    ],
)
def test_an_argument_that_fits_no_declaration_is_answered_with_the_nearest(
    read_file: Read, value: Any, said: str
) -> None:
    """Of the type that it has, else of all."""
    either = declared("a", "string") + declared("a", "array", 'items_type = "integer"')
    with pytest.raises(InvalidArguments) as caught:
        check_arguments(parsed_action(read_file(either)), {"a": value})
    (problem,) = caught.value.details["problems"]
    assert said in problem["problem"]


def test_an_op_outside_the_capabilities_loads_and_says_what_it_will_be(read_file: Read) -> None:
    """The executor refuses it (tests/core/runs); the file says so before, and what may have been meant."""
    reading = read_file(old='["send", "read"]', new='["read"]')
    parsed_action(reading)
    problem = only(reading)
    assert problem.key == "execute[0].op"
    assert "capability_denied" in problem.message
    assert "did you mean" not in problem.message
    near = only(read_file(old='["send", "read"]', new='["sent", "read"]'))
    assert 'did you mean "sent"? Otherwise add it' in near.message


def test_each_kind_is_warned_of_once_with_some_of_its_kin(read_file: Read) -> None:
    """A file of 100 generated inputs has no list of 300 warnings."""
    many = "".join(declared(f"aB{number}", "String", description="") for number in range(20))
    reading = read_file(many)
    parsed_action(reading)
    found = [problem.key for problem in reading.problems]
    assert found == ["inputs[0].name", "inputs[0].type", "inputs[0].description"]
    assert '"aB5" and 14 more' in reading.problems[0].message


def test_errors_come_with_the_warnings_and_before_them(read_file: Read, manifest: Build) -> None:
    """One look shows all; what only warns is no reason to refuse the file."""
    extra = declared("aB", "String") + "[limits]\nwall_seconds = 0\n"
    reading = read_file(extra)
    assert reading.action is None
    found = [(problem.key, problem.severity) for problem in reading.problems]
    assert found[0] == ("limits.wall_seconds", "error")
    assert found[1:] == [("inputs[0].name", "warning"), ("inputs[0].type", "warning")]
    with pytest.raises(FileProblems) as caught:
        load_action(manifest(extra), "send-note.md")
    assert [problem.key for problem in caught.value.problems] == ["limits.wall_seconds"]


def test_a_lenient_file_is_offered_with_its_warnings(tmp_path: Any, manifest: Build) -> None:
    """`action list` shows them at a ready action; what an error adds comes before them."""
    (tmp_path / "1.md").write_bytes(manifest(declared("aB", "String")))
    (tmp_path / "2.md").write_bytes(manifest(declared("aB", "String")) + b"\n")
    found = scan(tmp_path)
    catalog = Catalog(found, {file.file: file.sha256 for file in found.files})
    ready, second = catalog.entries
    assert (ready.state, second.state) == ("ready", "error")
    assert [problem.severity for problem in ready.problems] == ["warning"] * 2
    assert [problem.severity for problem in second.problems] == ["error", "warning", "warning"]
    assert [(each.file, each.severity) for each in catalog.problems()] == [("2.md", "error")]
    (held, _) = Catalog(found, {}).entries
    assert (held.state, len(held.problems)) == ("held_back", 2)


ADDITIONS = """
[approval]
required = true
effect = "change"
[approval.preview]
op = "read"
render = { A = "a" }
changes = { A = "b" }
gist = "${A}"
recheck = true
[limits]
wall_seconds = 3
"""


def test_portable_names_each_use_of_what_is_ours_and_each_leniency(read_file: Read) -> None:
    """Every place, not one of each kind: they are all to be mended before upstream takes it."""
    extra = declared("aB", "String", description=" ") + declared("aB", "Filter") + ADDITIONS
    reading = read_file(extra, portable=True)
    assert reading.action is not None
    found = [problem.key for problem in reading.problems if problem.class_ == "portability"]
    preview = [f"approval.preview.{key}" for key in ("gist", "recheck", "changes")]
    first = [f"inputs[0].{key}" for key in ("name", "type", "description")]
    second = [f"inputs[1].{key}" for key in ("name", "name", "type")]
    others = ["limits.wall_seconds", "approval.effect"]
    assert sorted(found) == sorted([*others, *preview, *first, *second])


@pytest.mark.parametrize(
    ("extra", "key"),
    [
        ("[limits]\nmemory_mib = 8\n", "limits.memory_mib"),
        ("[limits]\n", "limits"),
        ('[approval]\neffect = "read"\n', "approval.effect"),
    ],
)
def test_portable_names_each_addition_at_its_place(read_file: Read, extra: str, key: str) -> None:
    """Upstream's schema is closed: one key of ours and it refuses the file."""
    (problem,) = read_file(extra, portable=True).problems
    assert (problem.key, problem.class_, problem.severity) == (key, "portability", "error")
    assert problem.line >= 20


def test_portable_warns_of_what_upstream_takes_and_does_otherwise(read_file: Read) -> None:
    """It would send `${send.id}` as text; an op outside the capabilities it only refuses to run."""
    step = '[[execute]]\nid = "next"\nconnector = "github://acme/notes"\nop = "other"\n'
    reading = read_file(f'{step}inputs = {{ id = "${{send.id}}" }}\n', portable=True)
    assert [(p.key, p.class_, p.severity) for p in reading.problems] == [
        ("execute[1].inputs.id", "portability", "warning"),
        ("execute[1].op", "leniency", "warning"),
    ]
    assert read_file(declared("a", "string"), portable=True).problems == ()


BESIDE = Path(__file__).resolve().parents[4] / "shared" / "corpus"
CORPUS = Path(os.environ.get("AILERON_CORPUS", BESIDE))
FILES = sorted(CORPUS.glob("*/actions/*/action.md"))
STRICT = [path for path in FILES if path.parts[-4] in ("athena", "google")]
LINEAR = [path for path in FILES if path.parts[-4] == "linear-sample"]

STRICT_LINEAR = {
    *("archived-integrations", "archived-teams", "audit-entry-types", "authentication-sessions"),
    *("available-users", "integration-github-commit-create", "integration-intercom-delete"),
    *("integration-loom", "integration-opsgenie-refresh-schedule-mappings", "templates"),
    *("integration-pager-duty-refresh-schedule-mappings", "issue-priority-values", "viewer"),
    *("latest-release-by-access-key", "microsoft-teams-channels", "notifications-unread-count"),
    *("oauth-applications", "organization-cancel-delete", "organization-delete-challenge"),
    *("organization-start-trial", "organization", "rate-limit-status", "user-settings"),
    "release-pipeline-by-access-key",
}


@pytest.mark.parametrize("path", STRICT, ids=lambda path: path.parent.name)
def test_a_published_action_loads_strictly(path: Path) -> None:
    action = load_action(path.read_bytes(), path.name)
    assert (action.name, action.tool_name) == (path.parent.name, action.name.replace("-", "_"))
    assert all(step.inputs is None for step in action.steps)


def stands_there(path: Path, problem: Problem) -> bool:
    line = path.read_text().split("\n")[problem.line - 1]
    return line[problem.column - 1 :].startswith((problem.key.rpartition(".")[2], "[["))


@pytest.mark.parametrize("path", LINEAR, ids=lambda path: path.parent.name)
def test_a_generated_action_loads_with_a_warning_for_each_kind_of_leniency(path: Path) -> None:
    """Agents get it; whoever looks sees each kind once, with the place of its first use."""
    reading = read_action(path.read_bytes(), path.name)
    assert reading.action is not None
    assert reading.action.name == path.parent.name
    Draft202012Validator.check_schema(input_schema(reading.action))
    lenient = path.parent.name not in STRICT_LINEAR - {"viewer"}  # its op is not a capability
    assert bool(reading.problems) is lenient
    kinds = {re.sub(r'".*?"', "", problem.message) for problem in reading.problems}
    assert len(kinds) == len(reading.problems)
    for problem in reading.problems:
        assert (problem.class_, problem.severity) == ("leniency", "warning")
        assert stands_there(path, problem)


@pytest.mark.parametrize("path", [*STRICT, *LINEAR], ids=lambda path: path.parent.name)
def test_portable_refuses_exactly_what_upstream_does(path: Path) -> None:
    """24 of the generated files, and every other one, keep the rules that upstream checks."""
    reading = read_action(path.read_bytes(), path.name, portable=True)
    refused = [problem for problem in reading.problems if problem.class_ == "portability"]
    assert bool(refused) is (path in LINEAR and path.parent.name not in STRICT_LINEAR)
    assert all(problem.severity == "error" for problem in refused)
    assert all(stands_there(path, problem) for problem in refused)


def bound(path: Path) -> bytes:
    """The file as `action add` would leave it."""
    return path.read_bytes().replace(b"sha256:bound-at-release", b"sha256:" + b"ab" * 32)


@pytest.mark.skipif(not STRICT, reason="no corpus beside the checkout")
def test_the_published_suites_are_all_ready_once_accepted(tmp_path: Path) -> None:
    """Every published preview keeps the rules that span files."""
    for path in STRICT:
        (tmp_path / f"{path.parent.name}.md").write_bytes(bound(path))
    found = scan(tmp_path)
    catalog = Catalog(found, {file.file: file.sha256 for file in found.files})
    assert len(catalog.ready()) == len(STRICT) == 36
    assert sum(action.gated for action in catalog.ready().values()) == 5
    assert sum(action.approval.preview is not None for action in catalog.ready().values()) == 2
