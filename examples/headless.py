"""Aileron without its console: an agent asks to send a mail, this terminal shows it, and you answer.

Beside the example's mail service:

    aileron init --example
    aileron example                                # in another terminal
    python -m examples.headless ~/.aileron 8025
"""

import asyncio
import sys
from pathlib import Path

from aileron_core.api import Route, open_core


async def main(home: Path, port: int) -> None:
    """Have the draft of `aileron example` sent, or not; it answers at *port*."""
    gmail = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=port)
    async with (
        open_core(home, accept_installed=True, routes=[gmail]) as core,
        core.session("headless") as agent,
    ):
        await agent.call("send-draft", {"draft_id": "r-8842190447"})
        (waiting,) = core.waiting()
        call = await core.preview(waiting.approval_id)
        for field in call.preview.fields:
            print(f"{field.label}: {field.value!r}")
        if await asyncio.to_thread(input, "Send it? [y/N] ") == "y":
            await core.approve(call.approval_id, call.digest)
        else:
            await core.deny(call.approval_id, call.digest, "Not now.")
        result = await agent.result(call.approval_id, wait=60)
        audit = await core.verify()
        print(f"{result['status']}; {audit.records} records, problems: {len(audit.problems)}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).expanduser(), int(sys.argv[2])))
