"""Published action suites, where they lie beside the checkout (or where AILERON_CORPUS points)."""

import os
from pathlib import Path

import pytest

from aileron_core.actions.catalog import Catalog, Scan, ScannedFile, scan
from aileron_core.actions.load import load_action
from aileron_core.errors import FileProblems

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "corpus"
CORPUS = Path(os.environ.get("AILERON_CORPUS", BESIDE))
FILES = sorted(CORPUS.glob("*/actions/*/action.md"))
STRICT = [path for path in FILES if path.parts[-4] in ("athena", "google")]
LINEAR = [path for path in FILES if path.parts[-4] == "linear-sample"]

VALID_LINEAR = {
    "archived-integrations",
    "archived-teams",
    "audit-entry-types",
    "authentication-sessions",
    "available-users",
    "integration-github-commit-create",
    "integration-intercom-delete",
    "integration-loom",
    "integration-opsgenie-refresh-schedule-mappings",
    "integration-pager-duty-refresh-schedule-mappings",
    "issue-priority-values",
    "latest-release-by-access-key",
    "microsoft-teams-channels",
    "notifications-unread-count",
    "oauth-applications",
    "organization-cancel-delete",
    "organization-delete-challenge",
    "organization-start-trial",
    "organization",
    "rate-limit-status",
    "release-pipeline-by-access-key",
    "templates",
    "user-settings",
    "viewer",
}


@pytest.mark.parametrize("path", STRICT, ids=lambda path: path.parent.name)
def test_a_published_action_loads_strictly(path: Path) -> None:
    """Published files need no change to run here."""
    action = load_action(path.read_bytes(), path.name)
    assert action.name == path.parent.name
    assert action.tool_name == action.name.replace("-", "_")
    assert all(step.inputs is None for step in action.steps)


@pytest.mark.parametrize("path", LINEAR, ids=lambda path: path.parent.name)
def test_a_generated_action_loads_only_where_it_keeps_the_rules(path: Path) -> None:
    """The strict rules allow exactly the files that upstream allows."""
    try:
        load_action(path.read_bytes(), path.name)
    except FileProblems as error:
        assert path.parent.name not in VALID_LINEAR
        lines = path.read_text().split("\n")
        for problem in error.problems:
            assert problem.class_ == "validation_error"
            last_key = problem.key.rpartition(".")[2]
            assert lines[problem.line - 1][problem.column - 1 :].startswith((last_key, "[["))
    else:
        assert path.parent.name in VALID_LINEAR


@pytest.mark.skipif(not STRICT, reason="no corpus beside the checkout")
def test_the_published_suites_are_all_ready_once_taken_in(tmp_path: Path) -> None:
    """Every published preview keeps the rules that span files."""
    for path in STRICT:
        (tmp_path / f"{path.parent.name}.md").write_bytes(path.read_bytes())
    found = scan(tmp_path)
    catalog = Catalog(found, {file.file: file.sha256 for file in found.files})
    assert len(catalog.ready()) == len(STRICT) == 36
    assert sum(action.gated for action in catalog.ready().values()) == 5
    assert sum(action.approval.preview is not None for action in catalog.ready().values()) == 2


@pytest.mark.skipif(not STRICT, reason="no corpus beside the checkout")
def test_a_preview_whose_read_only_action_is_gone_is_not_offered() -> None:
    """Without get-draft nothing says that get_draft may be asked, so send-draft stays out."""
    files = []
    for path in STRICT:
        if path.parent.name != "get-draft":
            data = path.read_bytes()
            action = load_action(data, f"{path.parent.name}.md")
            files.append(
                ScannedFile(file=action.file, sha256=action.sha256, action=action, data=data)
            )
    catalog = Catalog(Scan(files=tuple(files)), {file.file: file.sha256 for file in files})
    assert "send-draft" not in catalog.ready()
    (problem,) = catalog.problems()
    assert problem.key == "approval.preview.op"
    assert b'op = "get_draft"' in catalog_line(files, problem.file, problem.line)


def catalog_line(files: list[ScannedFile], name: str, line: int) -> bytes:
    data = next(file.data for file in files if file.file == name)
    return data.split(b"\n")[line - 1]
