"""`aileron action show` and `connector show`: the same content and difference, without a console."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from aileron_tui.cli.commands import aileron
from tests.support.core_harness import Core, install_examples, run


def printed_page(home: Path, *words: str) -> str:
    """Return what a command prints on a terminal of 100 columns."""
    env = {"AILERON_HOME": str(home), "COLUMNS": "100"}
    done = CliRunner().invoke(aileron, words, prog_name="aileron", env=env)
    return done.stdout + done.stderr


@pytest.fixture
def changed_home(home: Path) -> Path:
    """A home in which everything was accepted, and one action file then overwritten."""
    install_examples(home)

    async def accept_all() -> None:
        async with Core.open(home):
            pass

    run(accept_all())
    path = home / "actions" / "send-draft.md"
    text = path.read_text("utf-8").replace("required = true", "required = false")
    path.write_text(text.replace("Sends a draft", "\x1b[2JSends a draft"), "utf-8")
    return home


def test_a_changed_action_is_printed_with_what_it_allows_more(changed_home: Path) -> None:
    page = printed_page(changed_home, "action", "show", "send-draft")
    for part in (
        "▲ allows more than before: no longer asks you",
        "ALLOWS MORE  than the version accepted on",
        "┃ − required = true",
        "┃ + required = false",
        "CONTENT  the whole file, as it is on disk",
        '┃ name = "send-draft"',
        "‹ESC›[2JSends a draft",
    ):
        assert part in page
    assert "\x1b" not in page


def test_programs_get_the_texts_and_the_changes(changed_home: Path) -> None:
    body = json.loads(printed_page(changed_home, "action", "show", "send-draft", "--json"))
    assert (body["state"], body["module"]) == ("held_back", None)
    assert "\x1b[2JSends" in body["text"]
    assert "required = true" in body["before"]["text"]
    assert body["before"]["changes"][0] == {
        "direction": "wider", "kind": "asks_no_more", "name": "", "before": "", "after": "",
    }  # fmt: skip
    body = json.loads(printed_page(changed_home, "connector", "show", "mail-drafts", "--json"))
    assert (body["state"], body["before"]) == ("ready", None)
    assert "sha256:" in body["module"]


def test_a_name_that_is_nearly_one_is_suggested(changed_home: Path) -> None:
    assert "Did you mean send-draft?" in printed_page(changed_home, "action", "show", "send-darft")
    assert "Did you mean mail-drafts?" in printed_page(
        changed_home, "connector", "show", "mail-draft"
    )
