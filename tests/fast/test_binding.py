import shutil
from pathlib import Path

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import UNBOUND_HASH
from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import FileProblems, Problem
from aileron_tui.cli.adding import bind_placeholders

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "examples" / "actions" / "send-draft.md").read_text().splitlines(keepends=True)
UNBOUND = f'hash = "{UNBOUND_HASH}"  # filled in at release\n'
RELEASED = "".join(UNBOUND if each.startswith("hash = ") else each for each in LINES).encode()


def test_a_placeholder_is_bound_to_the_installed_bytes_and_nothing_else_changes(home: Path) -> None:
    store = ConnectorStore(home)
    installed = store.install(ROOT / "examples" / "connectors" / "mail-drafts")
    bound, names = bind_placeholders(RELEASED, load_action(RELEASED, "send-draft.md"), store.list())
    assert names == {installed.identity.fqn: installed.identity.hash}
    assert bound == RELEASED.replace(UNBOUND_HASH.encode(), installed.identity.hash.encode())
    assert load_action(bound, "send-draft.md").requires[0].hash == installed.identity.hash


def _refused_problem(home: Path) -> Problem:
    action = load_action(RELEASED, "send-draft.md")
    with pytest.raises(FileProblems) as refused:
        bind_placeholders(RELEASED, action, ConnectorStore(home).list())
    (problem,) = refused.value.problems
    assert (problem.key, problem.line) == ("requires.connectors[0].hash", 9)
    return problem


def _installed(home: Path, tmp_path: Path, old: str, new: str) -> str:
    folder = tmp_path / new.strip('# "\n').replace(" ", "-")
    shutil.copytree(ROOT / "examples" / "connectors" / "mail-drafts", folder)
    manifest = (folder / "manifest.toml").read_text()
    (folder / "manifest.toml").write_text(manifest.replace(old, new, 1))
    return ConnectorStore(home).install(folder).identity.hash


def test_a_placeholder_that_none_or_two_connectors_fit_is_refused(
    home: Path, tmp_path: Path
) -> None:
    message = _refused_problem(home).message
    assert "and there is none. Run `aileron connector install FOLDER`" in message
    _installed(home, tmp_path, 'version = "0.1.0"', 'version = "0.2.0"')
    assert "and there is none, only version 0.2.0. " in _refused_problem(home).message
    first = _installed(home, tmp_path, "\n", "\n# one\n")
    second = _installed(home, tmp_path, "\n", "\n# two\n")
    message = _refused_problem(home).message
    assert first != second
    assert first in message
    assert second in message
    assert "remove the others with `aileron connector remove HASH`" in message
