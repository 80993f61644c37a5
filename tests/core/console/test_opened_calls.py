"""One call is read whole: from memory, and from the database long after its console has ended."""

from pathlib import Path

import pytest

from tests.support.core_harness import DRAFT, Core, Start, change_rows


async def evicted(core: Core, run_id: str) -> None:
    """Have the console know the run from its database alone, as it does after 200 others."""
    run = core.app.registry.get(run_id)
    assert run is not None
    core.app.registry.discard(run)


async def test_a_decided_call_is_read_after_a_restart(start: Start) -> None:
    """Arguments, result, who, when, the words and the records; nothing of what was shown."""
    async with start() as core:
        run_id = (await core.run(await core.ask())).run_id
        before = await core.opened(run_id)
        assert before.approval.preview.status == "ready"
    async with start() as core:
        await evicted(core, run_id)
        call = await core.opened(run_id)
    view = call.approval
    assert (view.state, view.decided_by, view.agent) == ("completed", "person", "claude")
    assert [field.value for field in view.arguments] == [DRAFT]
    assert view.decided_at is not None
    assert view.ended_at is not None
    assert view.words == before.approval.words
    assert call.result == before.result
    assert '"SENT"' in call.result[0].value
    assert view.preview.status == "none"
    events = [record.event for record in call.records]
    assert events[0] == "run.requested"
    assert {"approval.approved", "run.completed"} <= set(events)
    assert not call.edited
    assert not view.forgotten


@pytest.mark.parametrize(
    "edit",
    [
        "output = replace(output, 'SENT', 'DRAFT')",
        "args = replace(args, 'r-', 'q-')",
        "state = 'denied'",
    ],
)
async def test_a_row_that_another_program_changed_is_shown_as_such(
    core: Core, home: Path, edit: str
) -> None:
    """The record of its end has hashes of its arguments and its result."""
    run_id = (await core.run(await core.ask())).run_id
    await evicted(core, run_id)
    sound = await core.opened(run_id)
    assert not sound.edited
    change_rows(home, f"UPDATE runs SET {edit}")
    call = await core.opened(run_id)
    assert call.edited
