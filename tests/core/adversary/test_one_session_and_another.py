"""What one agent's session can do to another's, and to the person."""

import asyncio

from aileron_core.console_port.intents import StopEverything
from tests.support.core_harness import DRAFT, Core, Mailbox


async def test_a_session_whose_calls_hang_keeps_no_other_from_running(
    core: Core, mailbox: Mailbox
) -> None:
    """Sixty hanging calls of one agent take neither the threads of another's nor of a preview."""
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
    await core.do(StopEverything())
    await asyncio.gather(*calls, return_exceptions=True)
