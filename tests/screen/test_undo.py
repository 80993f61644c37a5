"""`z` at the opened call of a built-in tool takes back what it wrote."""

from dataclasses import replace

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.events import Recorded
from aileron_core.console_port.intents import UndoRun
from tests.screen.driving import NOW, Console, console, short, start
from tests.support.screens.calls import snapshot

WROTE = replace(
    short(2), action="builtin.write", title="Write a file", state="completed", ended_at=NOW - 5
)


def undoable() -> Recorded:
    record = replace(
        snapshot(NOW).records[-1],
        seq=4000,
        at=NOW - 5,
        run_id=WROTE.run_id,
        action=WROTE.action,
        event=AuditEvent.RUN_COMPLETED,
        summary="builtin.write completed",
    )
    return Recorded(record=record, head_words=("olive", "pixel"))


async def to_its_row(shown: Console) -> None:
    shown.port.tell(undoable())
    await shown.go("2", "builtin.write")
    await shown.rest()


async def test_it_is_undone_by_one_key_where_it_is_opened() -> None:
    async with console(start(short(), WROTE), answers=True) as shown:
        await to_its_row(shown)
        await shown.press_alone("z")
        assert "z did nothing" in shown.status_line
        assert "z  undo" not in shown.keys
        await shown.go("enter", "OUTCOME")
        await shown.press_alone("z")
        await shown.passes(1)
        assert not shown.asked(UndoRun), "no rest before"
        await shown.rest()
        assert "z  undo" in shown.keys
        await shown.press_alone("z", "✓ Undone: builtin.write.")
        assert UndoRun(run_id=WROTE.run_id) in shown.port.intents
        await shown.until(lambda: "z  undo" not in shown.keys)


async def test_another_opened_call_starts_the_rest_anew() -> None:
    """A key that was pressed for one call must not take back another."""
    async with console(start(short(), WROTE), answers=True) as shown:
        await to_its_row(shown)
        await shown.go("enter", "OUTCOME")
        model = shown.model
        key, before = model.activity.key, model.screen_version
        await shown.press_alone("j")
        assert model.activity.key != key
        assert model.screen_version != before
