"""Accepting and withdrawing: what agents see, what an open approval may still do, what is shown and listed."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from aileron_core.console_port.events import LibraryUpdated
from aileron_core.console_port.intents import Accept, WithdrawAcceptance
from aileron_core.console_port.view_models import LibraryItemView
from aileron_core.errors import Conflict
from aileron_tui.cli.commands import aileron
from tests.support.core_harness import Core, Mailbox, Start

CONNECTOR = "local://aileron/mail-drafts@0.1.0"
GATED_CHAIN = """\
[[execute]]
id = "after"
connector = "local://aileron/mail-drafts"
op = "update_draft"
inputs = { id = "${send.id}" }

[approval]
"""


def item_named(library: tuple[LibraryItemView, ...], name: str) -> LibraryItemView:
    return next(each for each in library if each.name == name)


async def items_of(core: Core) -> tuple[LibraryItemView, ...]:
    return (await core.app.console.snapshot()).library


async def withdraw(core: Core, name: str) -> None:
    found = item_named(await items_of(core), name)
    await core.do(WithdrawAcceptance(kind=found.kind, name=name, digest=found.digest))


async def accept_by_name(core: Core, name: str) -> None:
    found = item_named(await items_of(core), name)
    await core.do(Accept(kind=found.kind, name=name, digest=found.digest))


async def test_what_is_withdrawn_is_gone_for_agents_at_once_and_comes_back(start: Start) -> None:
    async with start() as core:
        assert core.ready() == ["get-draft", "list-drafts", "send-draft"]
        await withdraw(core, "get-draft")
        assert core.ready() == ["list-drafts"]  # send-draft's preview asks what get-draft may ask
        update = core.last(LibraryUpdated)
        shown = item_named(update.library, "get-draft")
        assert (shown.state, shown.reason) == ("held_back", "You withdrew its acceptance.")
        assert (shown.accepted_at, shown.accepted_by) == (None, "")
        assert [each.name for each in update.not_accepted] == ["get-draft"]
        with pytest.raises(Conflict, match="is not accepted"):
            await core.call("get-draft", {"id": "r-1"})
        query = "SELECT name FROM pins WHERE kind = 'action' ORDER BY name"
        rows = await core.app.database.read(lambda c: c.execute(query).fetchall())
        assert rows == [("list-drafts.md",), ("send-draft.md",)]
        assert (await core.app.audit.verify()).problems == ()
        (record,) = await core.records("library.withdrawn")
        withdrawn = ("person", "action", "get-draft.md")
        assert (record["actor"], record["kind"], record["name"]) == withdrawn
        with pytest.raises(Conflict, match="Nothing changed"):
            await withdraw(core, "get-draft")
    async with start(accept=False) as core:  # over a restart too
        shown = item_named(await items_of(core), "get-draft")
        assert shown.reason == "You withdrew its acceptance."
        await accept_by_name(core, "get-draft")
        shown = item_named(await items_of(core), "get-draft")
        assert (shown.state, shown.reason, shown.accepted_by) == ("ready", "", "person")
        assert shown.accepted_at is not None
        assert core.ready() == ["get-draft", "list-drafts", "send-draft"]


async def test_holding_back_asks_for_the_bytes_that_were_shown_and_takes_a_connectors_actions_with_it(
    core: Core, home: Path
) -> None:
    for kind, name in (("action", "get-draft"), ("connector", CONNECTOR), ("action", "x")):
        with pytest.raises(Conflict, match="is not accepted in the form you saw"):
            await core.do(WithdrawAcceptance(kind=kind, name=name, digest="0" * 64))  # type: ignore[arg-type]
    assert len(core.ready()) == 3
    assert await core.records("library.withdrawn") == []
    await withdraw(core, CONNECTOR)
    assert core.ready() == []
    shown = await items_of(core)
    assert item_named(shown, CONNECTOR).state == "held_back"
    (held,) = (await core.app.console.snapshot()).not_accepted
    assert (home / held.file / "manifest.toml").is_file(), "one can look at what is asked"
    broken = item_named(shown, "get-draft")
    assert broken.state == "error"
    assert f"{CONNECTOR} is not accepted" in broken.reason
    await accept_by_name(core, CONNECTOR)
    assert len(core.ready()) == 3


@pytest.mark.parametrize("name", ["send-draft", CONNECTOR])
async def test_what_was_withdrawn_does_not_run(core: Core, mailbox: Mailbox, name: str) -> None:
    view = await core.ask()
    await withdraw(core, name)
    ended = await core.run(view)
    assert ended.state == "failed"
    assert "had its acceptance withdrawn after you looked" in ended.outcome
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("moment", ["withdrawn", "accepted in another form", "removed"])
async def test_a_row_put_back_takes_nothing_in(start: Start, home: Path, moment: str) -> None:
    path = home / "actions" / "get-draft.md"
    earlier = path.read_text(encoding="utf-8")

    def rows(statement: str, *values: object) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(home / "aileron.db")
        with connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found

    async with start() as core:
        (old,) = rows("SELECT * FROM pins WHERE name = 'get-draft.md'")
        if moment == "withdrawn":
            await withdraw(core, "get-draft")
        elif moment == "removed":
            path.unlink()
            await core.app.library.poll()
            assert rows("SELECT * FROM pins WHERE name = 'get-draft.md'") == []
        else:
            path.write_text(earlier + "\nMore.\n", encoding="utf-8")
            await core.app.library.poll()
            await accept_by_name(core, "get-draft")
    path.write_text(earlier, encoding="utf-8")
    rows("INSERT OR REPLACE INTO pins VALUES(?, ?, ?, ?, ?, ?)", *old)
    async with start(accept=False) as core:
        assert "get-draft" not in core.ready()
        assert item_named(await items_of(core), "get-draft").state == "held_back"


async def test_everything_is_listed_with_what_is_to_be_said_of_it(start: Start, home: Path) -> None:
    folder = home / "actions"
    async with start() as core:
        text = (folder / "get-draft.md").read_text(encoding="utf-8")
        new = text.replace('"get-draft"', '"new-one"').replace("s/get-draft@", "s/new-one@")
        (folder / "new-one.md").write_text(new, encoding="utf-8")
        (folder / "broken.md").write_text('+++\nname = "broken"\n+++\n', encoding="utf-8")
        with (folder / "list-drafts.md").open("a", encoding="utf-8") as opened:
            opened.write("\nChanged.\n")
        stored = next((home / "store" / "connectors" / "sha256").iterdir())
        shutil.copytree(stored, stored.with_name("0" * 64))
        await core.app.library.poll()
        snapshot = await core.app.console.snapshot()
    said = {each.name: each for each in reversed(snapshot.library)}
    assert [(each.name, each.state) for each in snapshot.library] == [
        ("broken.md", "error"),
        ("get-draft", "ready"),
        ("list-drafts", "held_back"),
        ("list-drafts", "ready"),
        ("new-one", "held_back"),
        ("send-draft", "ready"),
        (CONNECTOR, "ready"),
        ("sha256:" + "0" * 64, "error"),
    ]
    assert said["new-one"].reason == "It has not been accepted."
    assert said["list-drafts"].reason == "What was accepted before counts until you accept this."
    assert said["list-drafts"].is_update
    assert said["broken.md"].reason
    assert said["sha256:" + "0" * 64].reason
    send = said["send-draft"]
    facts = (send.file, send.version, send.gated, send.preview, send.effect)
    assert facts == ("send-draft.md", "0.1.0", True, "get_draft", "SEND")
    assert send.steps == ("local://aileron/mail-drafts.send_draft",)
    place = f"store/connectors/{said[CONNECTOR].digest.replace(':', '/')}"
    assert said[CONNECTOR].file == place
    assert (home / place / "manifest.toml").is_file()
    assert send.connector == "local://aileron/mail-drafts"
    assert send.hosts == ("gmail.googleapis.com:443",)
    assert said["get-draft"].effect == ""
    accepted_by = {each.accepted_by for each in snapshot.library if each.state == "ready"}
    assert accepted_by == {"--accept-installed"}


async def test_the_list_says_of_every_file_what_the_console_says(start: Start, home: Path) -> None:
    """Regression: the list called ready what the console does not offer."""
    sent = (home / "actions" / "send-draft.md").read_text(encoding="utf-8")
    chain = sent.replace('"send-draft"', '"chain"').replace('["send_draft"]', '["send_draft", "update_draft"]')  # fmt: skip
    chain = chain.replace("[approval]\n", GATED_CHAIN)
    (home / "actions" / "chain.md").write_text(chain, encoding="utf-8")
    read = (home / "actions" / "get-draft.md").read_text(encoding="utf-8")
    other = read.replace('"get-draft"', '"other"')
    other = other.replace('version = "0.1.0"\nhash', 'version = "9.9.9"\nhash')
    (home / "actions" / "other.md").write_text(other, encoding="utf-8")
    async with start() as core:
        console = {
            entry.name: (entry.state, [problem.message for problem in entry.problems])
            for entry in core.app.library.entries()
        }
    done = CliRunner().invoke(aileron, ["action", "list", "--json", "--home", str(home)])
    listed = {
        item["name"]: (item["state"], [problem["message"] for problem in item["problems"]])
        for item in json.loads(done.stdout)["items"]
    }
    assert listed == console
    assert done.exit_code == 1
    assert console["send-draft"] == ("ready", [])
    assert console["chain"] == ("ready", [])
    assert "not local://aileron/mail-drafts@9.9.9" in console["other"][1][0]


async def test_an_action_that_cannot_run_is_listed_with_why(start: Start, home: Path) -> None:
    path = home / "actions" / "send-draft.md"
    sent = path.read_text(encoding="utf-8")
    changed = sent.replace('capabilities = ["send_draft"]', 'capabilities = ["get_draft"]')
    path.write_text(changed, encoding="utf-8")
    async with start():
        pass
    said = CliRunner().invoke(aileron, ["action", "list", "--home", str(home)]).stdout
    (row,) = (line for line in said.splitlines() if "send-draft " in line)
    assert row.startswith("✗ send-draft")
    assert "needs approval " in row
    assert row.endswith("  cannot run")
    assert "is not among the capabilities" in said
    done = CliRunner().invoke(aileron, ["action", "list", "--json", "--home", str(home)])
    reasons = {item["name"]: item["cannot_run"] for item in json.loads(done.stdout)["items"]}
    assert "send_draft is not among the capabilities" in reasons.pop("send-draft")
    assert set(reasons.values()) == {None}
