"""What `aileron audit list` finds, and what `aileron audit show` prints of a call beside its records, and of
spoilt records.
"""

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import ShownState
from aileron_core.errors import AileronError
from aileron_core.home.layout import Home
from aileron_core.storage.database import Database
from aileron_tui.cli.subcommands import OUTCOMES
from tests.core.adversary.test_under_the_vaults_key import PASSPHRASE, unlock
from tests.core.history.test_sealed import sealed_later
from tests.support.core_harness import DRAFT, Core, Start
from tests.support.frozen_clock import FrozenClock
from tests.support.server_harness import aileron, aileron_json

DAY = 86400.0
HOSTILE = "no\x1b]52;c;aGk=\x07\u202e\nState  completed"


async def printed_of(home: Path, id_: str, *words: str) -> str:
    """Return what the command prints; a console may be open meanwhile."""
    return (await asyncio.to_thread(aileron, "audit", "show", id_, *words, home=home)).stdout


async def shown_json(home: Path, id_: str) -> dict[str, Any]:
    return json.loads(await printed_of(home, id_, "--json"))["call"]


async def test_a_call_is_shown_or_as_deleted(start: Start, home: Path, clock: FrozenClock) -> None:
    async with start() as core:
        free = await core.call("get-draft", {"id": DRAFT})
        run = free.row.run_id
        text = await printed_of(home, run)
        for part in ("get-draft", f'"{DRAFT}"', "Q3 numbers", core.session.agent, "completed"):
            assert part in text, part
        call = await shown_json(home, run)
        assert (call["arguments"], call["state"]) == ({"id": DRAFT}, "completed")
        assert call["output"] == (free.row.output or {})["output"]
        assert call["deleted_at"] is None
        clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        (record,) = await core.records("arguments.forgotten")
        clock.advance(31 * DAY)
        later = await core.call("get-draft", {"id": DRAFT})
        clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        gone = await shown_json(home, run)
        assert (gone["arguments"], gone["output"], gone["deleted_at"]) == (None, None, record["at"])
        assert "Deleted" in await printed_of(home, run)
        second = (await core.records("arguments.forgotten"))[-1]
        assert (await shown_json(home, later.row.run_id))["deleted_at"] == second["at"]


async def test_it_shows_what_contained_a_session_and_its_records(core: Core, home: Path) -> None:
    line = "Not contained: it connected by itself; it can do whatever your account can."
    run = (await core.call("get-draft", {"id": DRAFT})).row.run_id
    assert f"┃ {line}" in await printed_of(home, run)
    session = core.session.session_id
    await core.app.session_service.end(session, "it was ended")
    assert f"┃ {line}" in await printed_of(home, run)
    assert (await shown_json(home, run))["containment"] == line
    text = await printed_of(home, session)
    assert text.count(f"containment: {line}") == 2
    assert text.index("session.opened") < text.index("session.ended")


async def test_a_decided_call_has_who_when_the_words_and_the_reason(core: Core, home: Path) -> None:
    approved, denied = await core.ask(), await core.ask("r-8842190312")
    await core.run(approved)
    await core.app.approvals.deny(denied.approval_id, HOSTILE)
    failed = await core.call("get-draft", {"id": HOSTILE})
    call = await shown_json(home, approved.approval_id)
    assert approved.words is not None
    assert (call["decided_by"], call["words"]) == ("person", list(approved.words))
    assert call["hand"] == "console"
    assert call["decided_at"] is not None
    assert " ".join(approved.words) in await printed_of(home, approved.approval_id)
    for id_ in (denied.approval_id, failed.row.run_id):
        text = await printed_of(home, id_)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "‹" in text
        spoofed = [line for line in text.splitlines() if "State  completed" in line]
        assert all("┃" in line[: line.index("State")] for line in spoofed)
    assert (await shown_json(home, denied.approval_id))["reason"] == HOSTILE
    failure = (await shown_json(home, failed.row.run_id))["failure"]
    assert failure["class"] == failed.row.failure.class_


@pytest.mark.usefixtures("protected")
async def test_sealed_calls_are_shown_and_searched_with_the_passphrase_alone(
    start: Start, home: Path, tmp_path: Path, clock: FrozenClock
) -> None:
    """Beside a running console too, whose vault stays locked; without it they are named and counted."""
    wrong, right = tmp_path / "wrong", tmp_path / "right"
    for path, word in ((wrong, "not it at all"), (right, PASSPHRASE)):
        path.write_text(word)
        path.chmod(0o600)
    unseal = ("--unseal", "--passphrase-file")
    async with start() as core:
        await unlock(core)
        run = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        await sealed_later(core, clock)
        closed = await audit_list(home, "--grep", DRAFT)
        assert (closed["items"], closed["sealed"], closed["deleted"]) == ([], 1, 0)
        words = ("audit", "list", "--grep", DRAFT)
        printed = (await asyncio.to_thread(aileron, *words, home=home)).stdout
        assert printed == "What 1 call contained is sealed, and was not searched: use --unseal.\n"
        opened = await audit_list(home, "--grep", DRAFT, *unseal, str(right))
        assert ({each["run"] for each in opened["items"]}, opened["sealed"]) == ({run}, 0)
    async with start() as core:
        closed = await shown_json(home, run)
        assert (closed["sealed"], closed["arguments"], closed["output"]) == (True, None, None)
        text = await printed_of(home, run)
        assert f"aileron audit show {run} --unseal" in text
        assert "Deleted" not in text
        words = ("audit", "show", run, *unseal, str(wrong))
        assert (await asyncio.to_thread(aileron, *words, home=home, code=77)).stdout == ""
        whole = await printed_of(home, run, *unseal, str(right))
        assert "1 wrong passphrase was given" in whole
        assert "Q3 numbers" in whole
        assert f'"id": "{DRAFT}"' in whole
        assert "--unseal" not in whole
        assert core.app.vault.state == "locked"
        await unlock(core)
        clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        gone = await audit_list(home, "--grep", DRAFT)
        assert (gone["items"], gone["sealed"], gone["deleted"]) == ([], 0, 1)


SPOILT = "\x1b]52;c;aGk=\x07\x1b[2K\u202e"
RUN = "run-0000000000000000000000000a"


@pytest.mark.parametrize("spoilt", ["text", "nothing"])
async def test_no_part_of_a_spoilt_record_reaches_the_terminal_raw(home: Path, spoilt: str) -> None:
    """The table can be edited by any program of this user; its text is shown, never obeyed."""
    own = Home(home)
    own.prepare()
    at, event = "2026-01-02T03:04:05.000Z", AuditEvent.RUN_STARTED
    record = AuditRecord(at=at, event=event, summary="s", run=RUN)
    written = Database(own.database)
    await written.write(lambda tx: tx.record(record))
    await asyncio.to_thread(written.close)
    with closing(sqlite3.connect(own.database)) as database:
        body = json.loads(database.execute("SELECT body FROM audit").fetchone()[0])
        if spoilt == "nothing":
            body |= {"event": None, "actor": None, "at": 7}
        else:
            body |= dict.fromkeys(("at", "event", "actor", "summary", SPOILT), SPOILT)
        database.execute("UPDATE audit SET body = ?", (json.dumps(body),))
        database.commit()
    printed = aileron("audit", "list", home=home).stdout
    printed += aileron("audit", "show", RUN, home=home).stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    assert printed.count("‹ESC›") >= (5 if spoilt == "text" else 0)


async def audit_list(home: Path, *words: str) -> Mapping[str, Any]:
    return await asyncio.to_thread(aileron_json, "audit", "list", "-n", "500", *words, home=home)


async def test_records_are_listed_by_filters(start: Start, home: Path, clock: FrozenClock) -> None:
    async with start() as core:
        ran = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        with pytest.raises(AileronError):
            await core.call("no-such-action", {})
        clock.advance(3600)
        view = await core.ask("r-8842190312")
        await core.do(Deny(approval_id=view.approval_id, reason='say "no"\nand why'))

    async def runs(*words: str) -> set[str | None]:
        return {each["run"] for each in (await audit_list(home, *words))["items"]}

    both, denied = {ran, view.run_id}, {view.run_id}
    assert await runs("--agent", "CLAUDE", "--action", "draft") == both
    assert (await runs("--agent", "codex"), await runs("--action", "get-")) == (set(), {ran})
    assert await runs("--outcome", "denied") == denied
    assert await runs("--outcome", "denied", "--outcome", "completed") == both
    (refused,) = (await audit_list(home, "--outcome", "refused"))["items"]
    assert refused["event"] == "call.refused"
    assert await runs("--grep", "q3 NUMBERS") == {ran}, "the result"
    assert await runs("--grep", 'Say "no"') == denied, "the reason"
    assert await runs("--grep", "8842190312", "--outcome", "completed") == set()
    at = datetime.fromtimestamp(clock.now(), UTC).astimezone()
    assert ran not in await runs("--since", f"{at:%Y-%m-%dT%H:%M:%S}")
    assert view.run_id in await runs("--since", f"{at:%Y-%m-%dT%H:%M:%S}")
    newest = (await audit_list(home, "--action", "draft", "-n", "1"))["items"]
    assert [each["run"] for each in newest] == [view.run_id]
    assert {*OUTCOMES} == {*get_args(ShownState), "settled", "refused"} - {"new"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "999999d"), "is neither a time like 12h"),
        (("--since", "9999-12-31T23:59:59-12:00"), "is neither a time like 12h"),
        (("--unseal", "--agent", "claude"), "--unseal needs --grep.\n"),
    ],
)
def test_what_nothing_can_be_listed_by_is_refused(home: Path, words: list[str], said: str) -> None:
    """A time that no record can have ended with an internal error."""
    assert said in aileron("audit", "list", *words, home=home, code=2).stderr
