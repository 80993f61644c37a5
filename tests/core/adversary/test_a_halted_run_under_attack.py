"""A run that halted half-way: everything that may come between its first yes and its second."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.audit.read import verify_home
from aileron_core.canonical import Json
from aileron_core.console_port import ApprovalView, RefreshPreview
from aileron_core.errors import Conflict
from aileron_core.home.layout import Home
from aileron_core.server.responses import result_body
from aileron_core.storage.open import open_reader
from tests.core.runs.test_halting import FINDS_THEN_SENDS, asked, chain, halted, sent_to, statuses
from tests.support.core_harness import DRAFT, Core, Mailbox, install_examples, run, writes
from tests.support.frozen_clock import FrozenClock

_LEVELS = 960
DEEP = f'{{"steps":[["find",{"[" * _LEVELS}{"]" * _LEVELS}]],"asked":"send","spent":1.0}}'
"""About as deep as JSON can be read: what read it may not be able to write it."""


async def result_of(core: Core, view: ApprovalView) -> dict[str, Json]:
    """Return the body that the agent reads."""
    return result_body(await core.result(view.approval_id))


def elsewhere(home: Path, statement: str) -> None:
    """Run *statement* as another program would."""
    with closing(sqlite3.connect(Home(home).database, timeout=10)) as connection, connection:
        connection.execute(statement)


def problems(home: Path) -> set[str]:
    """Return the kinds of what `audit verify` finds."""
    with closing(open_reader(Home(home).database)) as connection:
        return {problem.kind for problem in verify_home(connection, home).problems}


async def test_the_agent_reads_which_steps_ran_and_nothing_of_what_they_returned(
    home: Path, mailbox: Mailbox
) -> None:
    """Pending until final, with the ids of the finished steps alone; so after a no."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    async with Core.open(home, mailbox) as core:
        second = await halted(core)
        waiting = await result_of(core, second)
        assert waiting["status"] == "pending_approval"
        assert waiting.keys() == {
            "status", "approval_id", "action", "audit_id", "requested_at", "expires_at",
            "completed_steps",
        }  # fmt: skip
        await core.app.approvals.deny(second.approval_id, "no")
        over = await result_of(core, second)
        assert (over["status"], over["completed_steps"]) == ("denied", ["find"])
        assert sent_to(second, "send")["draft_id"] not in str(over)
    assert mailbox.state()["sent"] == []
    assert problems(home) == set()


async def test_a_file_changed_between_the_questions_ends_the_run_and_says_what_had_run(
    home: Path, mailbox: Mailbox
) -> None:
    """An agent that reads "nothing ran" would do the first steps once more."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    async with Core.open(home, mailbox) as core:
        second = await halted(core)
        file = home / "actions" / "chain.md"
        file.write_text(file.read_text() + "\nchanged\n")
        await core.approve(second)
        over = await core.ended(second)
        assert over.state == "failed"
        assert over.outcome.startswith("Nothing more ran")
        row = await core.result(over.approval_id)
        assert row.failure is not None
        assert row.failure.class_ == "conflict"
        assert row.failure.details["completed_steps"] == ["find"]
        assert "Nothing ran" not in row.failure.message
        assert row.progress is None
    assert mailbox.state()["sent"] == []
    assert problems(home) == set()


@pytest.mark.parametrize("restored", [False, True])
async def test_a_file_withdrawn_over_a_restart_runs_nothing_until_the_same_bytes_are_back(
    home: Path, mailbox: Mailbox, restored: bool
) -> None:
    """The second question is about the bytes of the first."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))
    file = home / "actions" / "chain.md"
    text = file.read_text()

    async with Core.open(home, mailbox) as core:
        second = await halted(core)
    file.write_text(text + "\nchanged\n")
    async with Core.open(home, mailbox, accept=False) as core:
        (view,) = (await core.app.console.snapshot()).approvals
        with pytest.raises(Conflict, match="no longer accepted"):
            await core.app.approvals.approve(view.approval_id, second.digest)
    if restored:
        file.write_text(text)
        async with Core.open(home, mailbox, accept=False) as core:
            (view,) = (await core.app.console.snapshot()).approvals
            assert statuses(view) == {"find": "done", "send": "asked"}
            with pytest.raises(Conflict, match="changed while you answered"):
                await core.app.approvals.approve(view.approval_id, second.digest)
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == restored
    assert writes(mailbox).count("GET drafts") == 1
    assert problems(home) == set()


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
        "UPDATE runs SET state = 'approved'",
        "UPDATE runs SET state = 'executing'",
    ],
)
@pytest.mark.parametrize("down", [True, False], ids=["while it was down", "while it was up"])
def test_an_edited_row_of_a_halted_run_permits_nothing(home: Path, edit: str, down: bool) -> None:
    """Down, it is not shown for a decision; up, the yes ends it as a conflict."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(home, mailbox) as core:
            second = await halted(core)
            if not down:
                elsewhere(home, edit)
                await core.approve(second)
                over = await core.ended(second)
                assert over.state == "failed"
                assert "another program" in over.outcome
                return
        elsewhere(home, edit)
        async with Core.open(home, mailbox) as core:
            assert (await core.app.console.snapshot()).approvals == ()

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("column", ["requested_at", "decided_at", "expires_at", "ended_at"])
@pytest.mark.parametrize("moment", ["-1e18", "1e300"])
async def test_a_time_that_no_calendar_has_keeps_no_console_from_starting(
    home: Path, mailbox: Mailbox, column: str, moment: str
) -> None:
    """Such a row of another program's is not shown; the console goes on without it."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    async with Core.open(home, mailbox) as core:
        over = await halted(core)
        await core.app.approvals.deny(over.approval_id, "no")
        await halted(core, key="another")
    elsewhere(home, f"UPDATE runs SET {column} = {moment}")
    async with Core.open(home, mailbox) as core:
        assert (await core.app.console.snapshot()).approvals == ()


@pytest.mark.parametrize("gone", [False, True])
async def test_the_audit_names_edited_progress(home: Path, mailbox: Mailbox, gone: bool) -> None:
    """A run whose row says that other steps ran than its record does is an orphan."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    async with Core.open(home, mailbox) as core:
        await halted(core)
    assert problems(home) == set()
    value = "NULL" if gone else "replace(progress, 'find', 'send')"
    elsewhere(home, f"UPDATE runs SET progress = {value}")
    assert problems(home) == {"orphan"}


async def test_what_was_forgotten_of_a_halted_run_leaves_its_end_and_a_whole_audit(
    home: Path, mailbox: Mailbox
) -> None:
    """After 30 days outputs go with the arguments; the row stays accounted for."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))
    clock = FrozenClock()

    async with Core.open(home, mailbox, clock=clock) as core:
        second = await halted(core)
        secret = sent_to(second, "send")["draft_id"]
        await core.app.approvals.deny(second.approval_id, "no")
        assert secret in (Home(home).database.parent / "aileron.db-wal").read_bytes().decode(
            errors="replace"
        )
    clock.advance(31 * 86400)
    async with Core.open(home, mailbox, clock=clock) as core:
        await core.until(
            lambda: (
                all(live_run.row.args is None for live_run in core.app.approvals.registry) or None
            )
        )
    async with Core.open(home, mailbox, clock=clock) as core:
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
    assert problems(home) == set()


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_a_refresh_of_a_halted_run_changes_and_records_nothing(
    core: Core, mailbox: Mailbox
) -> None:
    """There is no preview of the second question: nothing is fetched, so nothing says it was."""
    second = await halted(core)
    before, requests = len(await core.records()), len(writes(mailbox))
    await core.app.console.carry_out(RefreshPreview(approval_id=second.approval_id))
    assert len(await core.records()) == before
    assert len(writes(mailbox)) == requests
    assert core.views(second.approval_id)[-1].version == second.version
    await core.approve(second)
    assert (await core.ended(second)).state == "completed"


async def test_a_key_asked_with_other_arguments_tells_no_agent_where_the_run_stands(
    home: Path, mailbox: Mailbox
) -> None:
    """Before its end a run reads open, whichever way an agent asks."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    states: list[object] = []

    async def probe(core: Core) -> None:
        with pytest.raises(Conflict) as caught:
            await core.call("chain", {"draft_id": "r-1"}, key="k")
        states.append(caught.value.details["outcome"])

    async with Core.open(home, mailbox) as core:
        first = await asked(core, "chain", key="k")
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
