"""A run that halted half-way: everything that may come between its first yes and its second."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.canonical import Json
from aileron_core.console_port.intents import RefreshPreview
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from aileron_core.home.layout import Home
from aileron_core.server.agent_api import result_body
from tests.core.runs.test_halting import (
    FINDS_THEN_SENDS,
    asked_halting,
    chained_action,
    halted,
    sent_to,
    statuses,
)
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    Start,
    change_rows,
    problem_kinds,
    writes,
)
from tests.support.frozen_clock import FrozenClock

_LEVELS = 960
DEEP = f'{{"steps":[["find",{"[" * _LEVELS}{"]" * _LEVELS}]],"asked":"send","spent":1.0}}'
"""About as deep as JSON can be read: what read it may not be able to write it."""


async def result_of(core: Core, view: ApprovalView) -> dict[str, Json]:
    """Return the body that the agent reads."""
    return result_body(await core.result(view.approval_id))


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_the_agent_reads_which_steps_ran_and_nothing_of_what_they_returned(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """Pending until final, with the ids of the finished steps alone; so after a no."""
    async with start() as core:
        second = await halted(core)
        waiting = await result_of(core, second)
        assert waiting["status"] == "pending_approval"
        assert waiting.keys() == {
            "status", "approval_id", "action", "audit_id", "requested_at", "expires_at",
            "completed_steps", "waits_for",
        }  # fmt: skip
        await core.app.approvals.deny(second.approval_id, "no")
        over = await result_of(core, second)
        assert (over["status"], over["completed_steps"]) == ("denied", ["find"])
        assert sent_to(second, "send")["draft_id"] not in f"{over} {await core.records()}"
    assert mailbox.state()["sent"] == []
    assert problem_kinds(home) == set()


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_file_removed_between_the_questions_ends_the_run_and_says_what_had_run(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """An agent that reads "nothing ran" would do the first steps once more."""
    async with start() as core:
        second = await halted(core)
        (home / "actions" / "chain.md").unlink()
        over = await core.run(second)
        assert over.state == "failed"
        assert over.outcome.startswith("Nothing more ran")
        row = await core.result(over.approval_id)
        assert row.failure is not None
        assert row.failure.class_ == "conflict"
        assert row.failure.details["completed_steps"] == ["find"]
        assert "Nothing ran" not in row.failure.message
        assert row.progress is None
    assert mailbox.state()["sent"] == []
    assert problem_kinds(home) == set()


@pytest.mark.parametrize("change", ["changed", "removed"])
@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_after_a_restart_the_second_question_is_about_the_bytes_of_the_first(
    start: Start, mailbox: Mailbox, home: Path, change: str
) -> None:
    """A changed file waits, and they count; a removed one ends them."""
    file = home / "actions" / "chain.md"
    async with start() as core:
        second = await halted(core)
    if change == "changed":
        file.write_text(file.read_text().replace("[[execute]]", "[[execute]]\n# changed", 1))
    else:
        file.unlink()
    async with start(accept=False) as core:
        (view,) = await core.approvals()
        if change == "removed":
            with pytest.raises(Conflict, match="no longer accepted"):
                await core.app.approvals.approve(view.approval_id, second.digest)
        else:
            assert statuses(view) == {"find": "done", "send": "asked"}
            with pytest.raises(Conflict, match="changed while you answered"):
                await core.app.approvals.approve(view.approval_id, second.digest)
            assert (await core.run(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == (change == "changed")
    assert writes(mailbox).count("GET drafts") == 1
    assert problem_kinds(home) == set()


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE runs SET expires_at = NULL",
        "UPDATE runs SET expires_at = expires_at + 86400",
        "UPDATE runs SET expires_at = 1e300",
        "UPDATE runs SET expires_at = 9e999",
        "UPDATE runs SET requested_at = -1e300, expires_at = -1e18",
        "UPDATE runs SET action_sha256 = 'of another file'",
        "UPDATE runs SET progress = NULL",
        "UPDATE runs SET progress = replace(progress, 'find', 'send')",
        f"UPDATE runs SET progress = '{DEEP}'",
        'UPDATE runs SET progress = \'{"steps":[[[],1]],"asked":[],"spent":1}\'',
        "UPDATE runs SET progress = '[]'",
        "UPDATE runs SET progress = json_set(progress, '$.steps[0][1].drafts[0].id', 'r-1')",
        "UPDATE runs SET progress = json_set(progress, '$.asked', NULL)",
        "UPDATE runs SET progress = json_set(progress, '$.spent', -1000.0)",
        "UPDATE runs SET state = 'approved'",
        "UPDATE runs SET state = 'executing'",
    ],
)
@pytest.mark.parametrize("down", [True, False], ids=["while it was down", "while it was up"])
@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_an_edited_row_of_a_halted_run_permits_nothing(
    start: Start, mailbox: Mailbox, home: Path, edit: str, down: bool
) -> None:
    """Down, it is not shown for a decision; up, the yes ends it as a conflict."""
    async with start() as core:
        second = await halted(core)
        if not down:
            change_rows(home, edit)
            over = await core.run(second)
            assert over.state == "failed"
            assert "another program" in over.outcome
    if down:
        change_rows(home, edit)
        async with start() as core:
            assert await core.approvals() == ()
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("column", ["requested_at", "decided_at", "expires_at", "ended_at"])
@pytest.mark.parametrize("moment", ["-1e18", "1e300"])
@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_time_that_no_calendar_has_keeps_no_console_from_starting(
    start: Start, home: Path, column: str, moment: str
) -> None:
    """Such a row of another program's is not shown; the console goes on without it."""
    async with start() as core:
        over = await halted(core)
        await core.app.approvals.deny(over.approval_id, "no")
        await core.app.approvals.mark_delivered(over.approval_id)
        await halted(core, key="another")
    change_rows(home, f"UPDATE runs SET {column} = {moment}")
    async with start() as core:
        assert await core.approvals() == ()


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_the_audit_names_edited_progress(start: Start, home: Path, gone: bool) -> None:
    """A run whose row says that other steps ran than its record does is an orphan."""
    async with start() as core:
        await halted(core)
    assert problem_kinds(home) == set()
    value = "NULL" if gone else "replace(progress, 'find', 'send')"
    change_rows(home, f"UPDATE runs SET progress = {value}")
    assert problem_kinds(home) == {"orphan"}


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_what_was_forgotten_of_a_halted_run_leaves_its_end_and_a_whole_audit(
    start: Start, home: Path, clock: FrozenClock
) -> None:
    """After 30 days outputs go with the arguments; the row stays accounted for."""
    async with start() as core:
        second = await halted(core)
        secret = sent_to(second, "send")["draft_id"]
        await core.app.approvals.deny(second.approval_id, "no")
        assert secret in (Home(home).database.parent / "aileron.db-wal").read_bytes().decode(
            errors="replace"
        )
    clock.advance(31 * 86400)
    async with start() as core:
        await core.until(
            lambda: (
                all(live_run.row.args is None for live_run in core.app.approvals.registry) or None
            )
        )
    async with start() as core:
        (live_run,) = core.app.approvals.registry
        assert (live_run.row.state, live_run.row.args, live_run.row.progress) == (
            "denied",
            None,
            None,
        )
    with closing(sqlite3.connect(Home(home).database)) as connection:
        assert connection.execute("SELECT args, progress, output FROM runs").fetchall() == [
            (None, None, None)
        ]
    assert problem_kinds(home) == set()


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_refresh_of_a_halted_run_changes_and_records_nothing(
    core: Core, mailbox: Mailbox
) -> None:
    """There is no preview of the second question: nothing is fetched, so nothing says it was."""
    second = await halted(core)
    before, requests = len(await core.records()), len(writes(mailbox))
    await core.do(RefreshPreview(approval_id=second.approval_id))
    assert len(await core.records()) == before
    assert len(writes(mailbox)) == requests
    assert core.views(second.approval_id)[-1].version == second.version
    assert (await core.run(second)).state == "completed"


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_key_asked_with_other_arguments_tells_no_agent_where_the_run_stands(
    start: Start, mailbox: Mailbox
) -> None:
    """Before its end a run reads open, whichever way an agent asks."""
    states: list[object] = []

    async def probe(core: Core) -> None:
        with pytest.raises(Conflict) as caught:
            await core.call("chain", {"draft_id": "r-1"}, key="k")
        states.append(caught.value.details["outcome"])

    async with start() as core:
        first = await asked_halting(core, key="k")
        await probe(core)
        mailbox.control(delay_seconds={"get": 0.3})
        await core.approve(first)
        await probe(core)
        second = await core.back(first)
        await probe(core)
        again = await core.call("chain", {"draft_id": DRAFT}, key="k")
        assert (again.attached, again.row.approval_id) == (True, second.approval_id)
        await core.approve(core.views(second.approval_id)[-1])
        await core.ended(second)
        await probe(core)
    assert states == ["open", "open", "open", "completed"]
    assert len(mailbox.state()["sent"]) == 1
