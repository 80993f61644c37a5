"""Arguments and outputs of runs are deleted 30 days after the end, and leave nothing in the home's files."""

from pathlib import Path

from aileron_core.runs import Call
from tests.support.core_harness import DRAFT, Core, Mailbox, install_examples
from tests.support.frozen_clock import FrozenClock

DAY = 86400.0


def bytes_of(home: Path) -> bytes:
    """Return what the database and its log hold, byte by byte."""
    return b"".join(path.read_bytes() for path in sorted(home.glob("aileron.db*")))


async def test_what_is_old_is_deleted_for_real_and_the_audit_stays_whole(
    home: Path, mailbox: Mailbox
) -> None:
    """Neither pages nor log have a trace of it, and the agent still reads how its call ended."""
    install_examples(home)
    clock = FrozenClock()
    async with Core.open(home, mailbox, clock=clock) as core:
        free = await core.call("get-draft", {"id": DRAFT}, key="once")
        view = await core.ask()
        await core.approve(view)
        await core.ended(view)
        assert DRAFT.encode() in bytes_of(home)
        assert b"Q3 numbers" in bytes_of(home)
        clock.advance(31 * DAY)
        await core.app.retention.sweep()
        assert DRAFT.encode() not in bytes_of(home)
        assert b"Q3 numbers" not in bytes_of(home)
        (record,) = await core.records("arguments.forgotten")
        assert "2 old runs" in record["summary"]
        assert (await core.app.audit.verify()).problems == ()
        assert (await core.result(view.approval_id)).state == "completed"
        again = await core.app.gate.run(
            Call(
                session=core.session, action="get-draft", args={"id": DRAFT}, idempotency_key="once"
            )
        )
        assert (again.attached, again.row.run_id) == (True, free.row.run_id), "nothing ran twice"


async def test_what_is_not_old_enough_is_kept(home: Path, mailbox: Mailbox) -> None:
    install_examples(home)
    clock = FrozenClock()
    async with Core.open(home, mailbox, clock=clock) as core:
        await core.call("get-draft", {"id": DRAFT})
        clock.advance(29 * DAY)
        await core.app.retention.sweep()
        assert b"Q3 numbers" in bytes_of(home)
        assert await core.records("arguments.forgotten") == []
