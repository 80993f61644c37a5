"""A changed file waits beside what was accepted of it, which counts until a person accepts the other."""

import asyncio
from pathlib import Path

import pytest

from aileron_core.errors import Conflict
from tests.support.core_harness import DRAFT, Core, Mailbox, Start, hold_answers


def new_version(home: Path, name: str = "send-draft") -> None:
    """Write version 0.2.0 of an example's action, with one line more, in its place."""
    path = home / "actions" / f"{name}.md"
    path.write_text(path.read_text().replace("0.1.0", "0.2.0", 1) + "\nOne more line.\n")


async def accept_new_version(core: Core, home: Path) -> None:
    new_version(home)
    await core.app.library.poll()
    (waits,) = core.app.library.not_accepted()
    await core.app.library.accept("action", "send-draft", waits.digest, by="person")


async def test_what_was_accepted_counts_until_the_changed_file_is_accepted(
    start: Start, home: Path, mailbox: Mailbox
) -> None:
    """Tools, and calls that wait, are as they were; also over a restart."""
    async with start() as core:
        view = await core.ask()
        new_version(home)
        await core.app.library.poll()
        assert "send-draft" in core.ready()
        assert (await core.run(view)).state == "completed"
    async with start(accept=False) as core:
        (waits,) = core.app.library.not_accepted()
        assert (waits.name, waits.change) == ("send-draft", "changed")
        assert waits.is_update
        kept = [i for i in core.app.library.items() if i.content is not None and i.content.is_kept]
        assert [(each.name, each.version) for each in kept] == [("send-draft", "0.1.0")]
        found = core.app.library.find("send-draft").action
        assert (found.version, found.sha256 == waits.digest) == ("0.1.0", False)
        await core.app.library.accept("action", "send-draft", waits.digest, by="person")
        assert core.app.library.find("send-draft").action.version == "0.2.0"
        assert core.app.library.not_accepted() == ()
    assert len(mailbox.state()["sent"]) == 1


async def test_a_call_under_what_was_replaced_runs_nothing_and_names_the_new_version(
    core: Core, home: Path, mailbox: Mailbox
) -> None:
    view = await core.ask()
    await accept_new_version(core, home)
    assert (await core.run(view)).state == "failed"
    failure = await core.failure(view)
    assert failure.class_ == "conflict"
    assert "send-draft.md was replaced by its version 0.2.0" in failure.message
    assert mailbox.state()["sent"] == []
    accepted = await core.records("library.accepted")
    (_, record) = [each for each in accepted if each["name"] == "send-draft.md"]
    assert record["connectors"]


async def test_what_runs_ends_as_it_was_approved_though_an_update_is_accepted_meanwhile(
    core: Core, home: Path, mailbox: Mailbox
) -> None:
    """Its request has left: that it ran is not taken back."""
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as sending:
        running = asyncio.ensure_future(core.run(view))
        await sending()
        await accept_new_version(core, home)
        assert core.app.library.find("send-draft").action.version == "0.2.0"
    assert (await running).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("other")])
async def test_a_damaged_copy_counts_for_nothing(start: Start, home: Path, damage: object) -> None:
    async with start() as core:
        digest = core.app.library.find("get-draft").action.sha256
    new_version(home, "get-draft")
    assert callable(damage)
    damage(home / "store" / "accepted" / digest)
    async with start(accept=False) as core:
        assert "get-draft" not in core.ready()
        with pytest.raises(Conflict, match="is not accepted"):
            await core.call("get-draft", {"id": DRAFT})
