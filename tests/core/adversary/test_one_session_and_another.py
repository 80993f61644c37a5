"""What one agent's session can do to another's, and to the person."""

import asyncio
from pathlib import Path

from tests.support.core_harness import DRAFT, Core, Mailbox, install_examples, run


def test_a_session_whose_calls_hang_keeps_no_other_from_running(home: Path) -> None:
    """Sixty hanging calls of one agent take neither the threads of another's nor of a preview."""
    install_examples(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            mailbox.control(hang="list")
            other = await core.another_session()
            calls = [asyncio.create_task(core.call("list-drafts", {})) for _ in range(60)]
            while len(mailbox.state()["requests"]) < 8:
                await asyncio.sleep(0)
            async with asyncio.timeout(10):
                answer = await core.call("get-draft", {"id": DRAFT}, session=other)
                assert answer.row.state == "completed"
                view = await core.ask(session=other)
            assert view.preview.status == "ready"
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    with Mailbox() as mailbox:
        run(story(mailbox))


def test_a_session_cannot_push_out_an_end_that_another_has_not_heard_of(home: Path) -> None:
    """An equal call is attached while its end is undelivered, however busy others are."""
    install_examples(home)

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            other = await core.another_session()
            view = await core.ask(session=other)
            await core.approve(view)
            await core.ended(view)
            for number in range(210):
                answer = await core.call(key=f"key {number}")
                assert answer.row.approval_id is not None
                session, approval = core.session.session_id, answer.row.approval_id
                await core.app.approvals.withdraw(session, approval, "")
            again = await core.call(session=other)
            assert (again.attached, again.row.state) == (True, "completed")
        assert len(mailbox.state()["sent"]) == 1

    with Mailbox() as mailbox:
        run(story(mailbox))
