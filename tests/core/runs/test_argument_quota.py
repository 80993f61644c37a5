"""What is kept of a session's arguments is bounded: by time, and by bytes."""

import asyncio
import gc
from pathlib import Path

import pytest

from aileron_core.errors import RateLimited, StorageUnavailable
from aileron_core.runs.interfaces import GateSettings
from aileron_core.runs.model import RunRecord
from tests.support.core_harness import DRAFT, UPDATE_DRAFT, Core, Start, audit_problems

GATED = UPDATE_DRAFT.replace("update-draft", "change-draft").replace(
    "+++\n\n#", "\n[approval]\nrequired = true\n+++\n\n#"
)
"""A gated action without a preview, for arguments of any size."""
BIG = 10_000


def big(mark: object, size: int = BIG) -> dict[str, str]:
    """Return arguments of *size* bytes, unlike those with another *mark*."""
    return {"id": DRAFT, "to": f"{mark}-".ljust(size, "x")}


async def asked_with(core: Core, mark: object, size: int = BIG) -> RunRecord:
    return (await core.call("change-draft", big(mark, size))).row


async def withdraw_call(core: Core, mark: object, size: int = BIG) -> RunRecord:
    row = await asked_with(core, mark, size)
    return await core.app.approvals.withdraw(core.session.session_id, row.approval_id, "")


async def deny_call(core: Core, mark: object, size: int = BIG) -> RunRecord:
    row = await asked_with(core, mark, size)
    await core.app.approvals.deny(row.approval_id, "no")
    return row


async def kept_arguments(core: Core) -> tuple[int, list[str]]:
    """Return the bytes that the rows keep of the session, and the runs that they are of."""
    query = "SELECT run_id, LENGTH(args) FROM runs WHERE session_id = ? AND args IS NOT NULL ORDER BY run_id"
    found = await core.app.database.read(
        lambda c: c.execute(query, (core.session.session_id,)).fetchall()
    )
    return sum(size for _, size in found), [run_id for run_id, _ in found]


def in_memory(core: Core) -> int:
    """Return the characters of all arguments that the core holds for runs."""
    return sum(
        len(str(live_run.row.args["to"]))
        for live_run in core.app.registry
        if live_run.row.args is not None
    )


@pytest.mark.actions(change_draft=GATED)
async def test_withdrawn_calls_keep_no_more_than_a_session_may(start: Start, home: Path) -> None:
    """In the rows and in memory; each digest stays, the audit says what went, nothing is amiss."""
    assert GateSettings().argument_bytes == 16 * 2**20
    most = 200_000
    async with start() as core:
        core.app.gate.argument_quota.max_bytes = most
        rows = [await withdraw_call(core, number) for number in range(40)]
        size, runs = await kept_arguments(core)
        assert 0 < size <= most
        assert in_memory(core) <= most
        gone = [row for row in rows if row.run_id not in runs]
        assert gone == rows[: len(gone)]  # the oldest
        records = await core.records("arguments.forgotten")
        assert [run_id for each in records for run_id in each["runs"]] == [
            row.run_id for row in gone
        ]
        assert sum(each["count"] for each in records) == len(gone)
        assert {each["session"] for each in records} == {core.session.session_id}
        first = gone[0]
        withdrawn_run = await core.result(first.approval_id)
        assert (withdrawn_run.state, withdrawn_run.args_sha256) == ("withdrawn", first.args_sha256)
        assert core.views(first.approval_id)[-1].arguments == ()
        session = core.session
    assert audit_problems(home) == []
    async with start() as core:
        core.session = session
        core.app.gate.argument_quota.max_bytes = most
        await withdraw_call(core, "after a restart")
        assert (await kept_arguments(core))[0] <= most
        assert all("tampered" not in record for record in await core.records())


@pytest.mark.actions(change_draft=GATED, update_draft=UPDATE_DRAFT)
async def test_what_a_person_decided_and_what_waits_is_kept_and_more_is_refused(core: Core) -> None:
    """Never forgotten for room: the session hears `rate_limited`, and another one is not concerned."""
    core.app.gate.argument_quota.max_bytes = 100_000
    rows = [await deny_call(core, number, 30_000) for number in range(2)]
    rows.append(await asked_with(core, "waits", 30_000))
    for action in ("change-draft", "update-draft"):
        with pytest.raises(RateLimited, match="MiB of arguments"):
            await core.call(action, big("more", 30_000))
    assert (await kept_arguments(core))[1] == [row.run_id for row in rows]
    await core.app.gate.refused_calls.sweep(everything=True)
    assert [r["action"] for r in await core.records("call.refused")] == [
        "change-draft",
        "update-draft",
    ]
    assert await core.records("arguments.forgotten") == []
    await asked_with(core, "small", 100)
    await core.call("change-draft", big("more", 30_000), session=await core.another_session())


@pytest.mark.actions(change_draft=GATED, update_draft=UPDATE_DRAFT)
async def test_withdrawn_calls_go_before_ungated_and_these_before_a_refusal(core: Core) -> None:
    """An agent that only reads is never stopped by what its earlier calls were."""
    core.app.gate.argument_quota.max_bytes = 100_000
    free = (await core.call("update-draft", big("free", 30_000))).row
    gone = await withdraw_call(core, "withdrawn", 30_000)
    waits = await asked_with(core, "waits", 30_000)
    later = await asked_with(core, "later", 30_000)
    runs = (await kept_arguments(core))[1]
    assert gone.run_id not in runs
    for number in range(5):
        await core.call("update-draft", big(number, 30_000))
    size, runs = await kept_arguments(core)
    assert size <= 100_000
    assert free.run_id not in runs
    assert {waits.run_id, later.run_id} <= set(runs)


@pytest.mark.actions(change_draft=GATED)
async def test_calls_at_once_do_not_pass_the_bound_together(start: Start) -> None:
    """Each counts before it is written; one that cannot be written counts no more."""
    full = [True] * 5

    def failpoint(name: str) -> None:
        if name == "before run.requested" and full and full.pop():
            raise StorageUnavailable("The disk is full.")

    async with start(failpoint=failpoint) as core:
        for number in range(5):
            with pytest.raises(StorageUnavailable):
                await asked_with(core, number, 60_000)
        core.app.gate.argument_quota.max_bytes = 100_000
        calls = (core.call("change-draft", big(number, 30_000)) for number in range(10))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused = [each for each in answers if isinstance(each, BaseException)]
        assert len(refused) == 7
        assert {type(each) for each in refused} == {RateLimited}
        assert (await kept_arguments(core))[0] <= 100_000
        gc.collect()
        assert in_memory(core) <= 100_000
