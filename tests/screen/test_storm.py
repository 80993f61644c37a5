"""Ten thousand that wait, and hundreds that come at once: nothing moves, nothing is lost."""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from time import monotonic

from textual.geometry import Offset

from aileron_core.console_port import ApprovalUpdated, Approve, NotAcceptedView
from aileron_tui.screens.waiting import WaitingScreen
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.rows import RowList
from tests.screen.driving import NOW, Console, console, mail, short, start

STORM = 200
PATIENCE = 60.0


def key(number: int) -> str:
    return mail(number).approval_id


def rows(shown: Console) -> RowList:
    return shown.app.screen.query_one("#queue", RowList)


def state(shown: Console) -> tuple[object, ...]:
    """Everything that an arrival must leave alone."""
    document = shown.app.screen.query_one("#document", Document)
    return (
        shown.selected,
        shown.armed,
        shown.app.focused,
        rows(shown).scroll_offset,
        document.scroll_offset,
        [line[45:] for line in shown.lines[1:-2]],
    )


async def test_two_hundred_arrivals_in_a_second_move_nothing_and_leave_the_key_armed() -> None:
    """Cursor, focus, both scrolls, the item and the armed key are as before, at every moment."""
    async with console(start(*(short(n) for n in range(1, 5)))) as shown:
        await shown.press_alone("j")
        await shown.rest()
        before = state(shown)
        assert before[1]
        began = monotonic()
        for number in range(10, 10 + STORM):
            shown.port.tell(ApprovalUpdated(view=short(number)))
            await asyncio.sleep(0.005)
            assert state(shown) == before
        assert monotonic() - began < PATIENCE
        await shown.shows(f" {STORM + 4} ")
        assert state(shown) == before
        await shown.press_alone("a")
        await shown.until(lambda: bool(shown.port.intents), "approved")
        (intent,) = shown.port.intents
        assert isinstance(intent, Approve)
        assert intent.approval_id == key(2)


async def test_arrivals_do_not_scroll_a_list_that_the_wheel_has_moved() -> None:
    """The cursor is out of sight; what the person looks at stays."""
    async with console(start(*(short(n) for n in range(1, 61)))) as shown:
        await shown.rest()
        rows(shown).scroll_to(y=20, animate=False, immediate=True)
        await shown.settled()
        shown.app.draw_all()
        await shown.settled()
        region = rows(shown).region
        side = [line[:44] for line in shown.lines[region.y : region.bottom]]
        for number in range(100, 130):
            shown.port.tell(ApprovalUpdated(view=short(number)))
        await shown.shows(" 90 ")
        assert rows(shown).scroll_offset == Offset(0, 20)
        assert [line[:44] for line in shown.lines[region.y : region.bottom]] == side
        assert shown.selected == key(1)


async def test_rows_that_go_above_the_cursor_leave_it_at_its_place_on_the_screen() -> None:
    """The list scrolls by as much as went, so that the eye need not."""
    async with console(start(*(short(n) for n in range(1, 61)))) as shown:
        await shown.rest()
        for _ in range(30):
            await shown.press("j")
        await shown.rest()
        place = next(y for y, line in enumerate(shown.lines) if line.startswith("▌"))
        for number in range(1, 6):
            ended = short(number, state="withdrawn", ended_at=NOW)
            shown.port.tell(ApprovalUpdated(view=ended))
        await shown.shows(" 55 ")
        shown.clock.advance(6)
        await shown.tick()
        assert shown.app._model.queue.length == 60
        await shown.press_alone("1")
        await shown.until(lambda: shown.app._model.queue.length == 55)
        assert next(y for y, line in enumerate(shown.lines) if line.startswith("▌")) == place
        assert shown.selected == key(31)


async def test_an_unaccepted_file_under_the_cursor_keeps_its_place_when_a_call_comes() -> None:
    """Files are listed behind calls: the call is at the end until the next key."""
    held = NotAcceptedView(
        kind="action",
        name="post-invoice",
        file="actions/post-invoice.md",
        digest="ab" * 32,
        change="new",
        gated=True,
        connector="billing",
        hosts=(),
    )

    async with console(start(short(1), held=(held,))) as shown:
        await shown.press_alone("end")
        await shown.rest()
        assert shown.selected == "held:action:post-invoice"
        shown.port.tell(ApprovalUpdated(view=short(9)))
        await shown.until(lambda: shown.app._model.queue.waiting == 2)
        shown.app.draw_all()
        await shown.settled()
        assert shown.selected == "held:action:post-invoice"
        assert shown.app._model.queue.items[-1].key == short(9).approval_id
        assert shown.armed


async def test_at_ten_thousand_a_drawing_asks_for_the_rows_in_view_alone() -> None:
    """Once for each line that stands there, whatever waits out of sight."""
    asked: list[int] = []

    async with console(start(*(short(n) for n in range(1, 10001)))) as shown:
        await shown.shows(" 10000 ")
        await shown.until(lambda: not shown.app._model.queue.unread_count, "all of them")
        await shown.rest()
        page = shown.app._screens["waiting"]
        assert isinstance(page, WaitingScreen)
        drawn = rows(shown)._draw

        def counted(row: int, width: int, selected: bool) -> object:
            asked.append(row)
            return drawn(row, width, selected)

        rows(shown)._draw = counted  # type: ignore[assignment]
        await shown.press_alone("end")
        await shown.until(lambda: shown.selected == key(10_000), "the last")
        asked.clear()
        await shown.tick()
        assert set(asked) <= set(range(9_980, 10_000))
        assert 0 < len(asked) <= 2 * rows(shown).size.height


FLOOD = """
import asyncio, sys, threading
from aileron_core.console_port import SessionsUpdated
from aileron_tui.app import AileronApp
from aileron_tui.cli.screen import show
from tests.support.screens.port import FixturePort

class Flooding(FixturePort):
    def subscribe(self, sink):
        fact = SessionsUpdated(sessions=())
        def flood():
            while True:
                sink(fact)
        threading.Thread(target=flood, daemon=True).start()
        return super().subscribe(sink)

raise SystemExit(asyncio.run(show(AileronApp(Flooding()))))
"""


def test_sigterm_ends_the_console_in_the_midst_of_a_storm() -> None:
    """The pipe that tells the loop of a signal is the one that facts cross by: it must not be full."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", FLOOD],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(slave)
    raw, asked = b"", False
    deadline = monotonic() + PATIENCE
    try:
        while process.poll() is None:
            assert monotonic() < deadline, "it did not end"
            if select.select([master], [], [], 0.05)[0]:
                try:
                    raw += os.read(master, 65536)
                except OSError:  # its end of the terminal is closed
                    break
            if b"WILL" in raw and not asked:
                asked = True
                process.send_signal(signal.SIGTERM)
        assert asked
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
