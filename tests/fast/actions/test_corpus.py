"""Published action suites, where they lie beside the checkout (or where AILERON_CORPUS points)."""

import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from aileron_core.actions.arguments import input_schema
from aileron_core.actions.catalog import Catalog, scan
from aileron_core.actions.load import load_action, read_action
from aileron_core.errors import Problem

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
    assert action.name == path.parent.name
    assert action.tool_name == action.name.replace("-", "_")
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
