"""What one agent's session can do to another's, and to the person."""

import asyncio
from pathlib import Path

from core_harness import DRAFT, Core, Mailbox, furnish, run


def test_a_session_whose_calls_hang_keeps_no_other_from_running(home: Path) -> None:
    """Sixty hanging calls of one agent take neither the threads of another's nor of a preview."""
    furnish(home)

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
