from pathlib import Path

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import UNBOUND_HASH
from aileron_core.connectors.store import ConnectorStore
from aileron_core.errors import FileProblems
from aileron_tui.cli.binding import bind

ROOT = Path(__file__).resolve().parents[2]


def _released() -> bytes:
    lines = (ROOT / "examples" / "actions" / "send-draft.md").read_text().splitlines(keepends=True)
    return "".join(
        f'hash = "{UNBOUND_HASH}"  # filled in at release\n' if line.startswith("hash = ") else line
        for line in lines
    ).encode()


def test_a_placeholder_is_bound_to_the_installed_bytes_and_nothing_else_of_the_file_changes(
    home: Path,
) -> None:
    """What runs is named exactly, and a person's comments stay (clause B3's way of `action add`)."""
    store = ConnectorStore(home)
    installed = store.install(ROOT / "examples" / "connector")
    released = _released()

    bound, names = bind(released, load_action(released, "send-draft.md"), store.list())

    assert names == {installed.identity.fqn: installed.identity.hash}
    assert bound == released.replace(UNBOUND_HASH.encode(), installed.identity.hash.encode())
    assert load_action(bound, "send-draft.md").requires[0].hash == installed.identity.hash


def test_a_placeholder_without_an_installed_connector_is_refused_with_the_place(home: Path) -> None:
    """Nothing is guessed: none or several that fit is a problem of the file."""
    released = _released()
    with pytest.raises(FileProblems) as refused:
        bind(released, load_action(released, "send-draft.md"), ConnectorStore(home).list())
    assert refused.value.problems[0].key == "requires.connectors[0].hash"
    assert "installed: none" in refused.value.problems[0].message
