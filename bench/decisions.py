"""Durable decisions per second, at 1, 16 and 64 callers at once.

One decision is a person's no: state and audit record in one transaction, on disk (synchronous=FULL)
when the call returns. Floor: as many fdatasync'ed 400-byte appends, one after the other, on the
same disk.
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from aileron_core.app import App, AppOptions
from aileron_core.home.layout import Home
from aileron_core.runs import Call
from bench.support import Aims, amount, fill

DECISIONS = amount(2000, check=40)
PER_SESSION = 20


def _floor(folder: Path) -> float:
    handle = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT)
    began = time.perf_counter()
    for _ in range(DECISIONS):
        os.write(handle, b"x" * 400)
        os.fdatasync(handle)
    took = time.perf_counter() - began
    os.close(handle)
    return DECISIONS / took


async def _ask(app: App) -> list[str]:
    waiting: list[str] = []
    for _ in range(DECISIONS // PER_SESSION):
        opened = await app.session_service.open(
            agent="bench", label="", cwd="/", claimed_pid=None, peer_pid=os.getpid(), ttl=3600
        )
        for number in range(PER_SESSION):
            call = Call(session=opened.session, action="ask-nothing", args={"n": number})
            answer = await app.gate.run(call)
            assert answer.row.approval_id is not None
            waiting.append(answer.row.approval_id)
    return waiting


async def _decide(app: App, callers: int) -> float:
    waiting = await _ask(app)

    async def caller() -> None:
        while waiting:
            await app.approvals.deny(waiting.pop(), "")

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return DECISIONS / (time.perf_counter() - began)


async def _measure(folder: Path, callers: int) -> float:
    home = Home(folder / f"home-{callers}")
    home.prepare()
    fill(home.path)
    async with App.open(home, AppOptions(accept_installed=True)) as app:
        return await _decide(app, callers)


def _run(folder: Path, callers: int) -> float:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_measure(folder, callers))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(folder, callers))


def main() -> None:
    """Print decisions a second and their ratio to the floor."""
    print(f"decisions: {DECISIONS} denials, durable")
    aims = Aims()
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as name:
        folder = Path(name)
        floor = _floor(folder)
        print(f"  fdatasync'ed appends, one by one (floor)  {floor:8.0f}/s")
        for callers in (1, 16, 64):
            rate = _run(folder, callers)
            print(f"  {callers:2d} callers  {rate:8.0f}/s  ratio {rate / floor:5.2f}")
            if callers == 64:
                aims.at_least("decisions a second at 64 callers", rate, 3_500)
    aims.report()


if __name__ == "__main__":
    main()
