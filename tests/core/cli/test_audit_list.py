"""What `aileron audit list` finds: by agent, action, outcome and time, and by what calls contained."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from aileron_core.console_port.intents import Deny
from aileron_core.console_port.view_models import ShownState
from aileron_core.errors import AileronError
from aileron_tui.cli.subcommands import OUTCOMES
from tests.core.adversary.test_under_the_vaults_key import PASSPHRASE, protected_home, unlock
from tests.core.history.test_sealed_contents import sealed_later
from tests.support.core_harness import DRAFT, Core, Mailbox, Start
from tests.support.frozen_clock import FrozenClock
from tests.support.server_harness import aileron, aileron_json


async def listed(home: Path, *words: str) -> Mapping[str, Any]:
    return await asyncio.to_thread(aileron_json, "audit", "list", "-n", "500", *words, home=home)


async def test_records_are_listed_by_agent_action_outcome_time_and_text(
    start: Start, home: Path, clock: FrozenClock
) -> None:
    async with start() as core:
        ran = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        with pytest.raises(AileronError):
            await core.call("no-such-action", {})
        clock.advance(3600)
        view = await core.ask("r-8842190312")
        await core.do(Deny(approval_id=view.approval_id, reason='say "no"\nand why'))

    async def runs(*words: str) -> set[str | None]:
        return {each["run"] for each in (await listed(home, *words))["items"]}

    both, denied = {ran, view.run_id}, {view.run_id}
    assert await runs("--agent", "CLAUDE", "--action", "draft") == both
    assert await runs("--agent", "codex") == set()
    assert await runs("--action", "get-") == {ran}
    assert await runs("--outcome", "denied") == denied
    assert await runs("--outcome", "denied", "--outcome", "completed") == both
    (refused,) = (await listed(home, "--outcome", "refused"))["items"]
    assert refused["event"] == "call.refused"
    assert await runs("--grep", "q3 NUMBERS") == {ran}, "the result"
    assert await runs("--grep", 'Say "no"') == denied, "the reason"
    assert await runs("--grep", "8842190312", "--outcome", "completed") == set()
    at = datetime.fromtimestamp(clock.now(), UTC).astimezone()
    assert ran not in await runs("--since", f"{at:%Y-%m-%dT%H:%M:%S}")
    assert view.run_id in await runs("--since", f"{at:%Y-%m-%dT%H:%M:%S}")
    newest = (await listed(home, "--action", "draft", "-n", "1"))["items"]
    assert [each["run"] for each in newest] == [view.run_id]


async def test_sealed_calls_are_searched_with_the_passphrase_alone_and_counted_without_it(
    home: Path, mailbox: Mailbox, tmp_path: Path
) -> None:
    clock, key = FrozenClock(), tmp_path / "key"
    key.write_text(PASSPHRASE)
    key.chmod(0o600)
    await protected_home(home)
    async with Core.open(home, mailbox, accept=False, clock=clock) as core:
        await unlock(core)
        run = (await core.call("get-draft", {"id": DRAFT})).row.run_id
        await sealed_later(core, clock)
        closed = await listed(home, "--grep", DRAFT)
        assert (closed["items"], closed["sealed"], closed["deleted"]) == ([], 1, 0)
        words = ("audit", "list", "--grep", DRAFT)
        printed = (await asyncio.to_thread(aileron, *words, home=home)).stdout
        assert printed == "What 1 call contained is sealed, and was not searched: use --unseal.\n"
        opened = await listed(home, "--grep", DRAFT, "--unseal", "--passphrase-file", str(key))
        assert {each["run"] for each in opened["items"]} == {run}
        assert opened["sealed"] == 0
        clock.advance(31 * 86400)
        await core.app.contents.forget_due()
        gone = await listed(home, "--grep", DRAFT)
        assert (gone["items"], gone["sealed"], gone["deleted"]) == ([], 0, 1)


@pytest.mark.parametrize("time", ["999999d", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_no_record_can_have_is_refused_as_one(home: Path, time: str) -> None:
    """It ended with an internal error."""
    refused = aileron("audit", "list", "--since", time, home=home, code=2)
    assert "is neither a time like 12h" in refused.stderr


def test_nothing_is_unsealed_without_words_to_look_for(home: Path) -> None:
    refused = aileron("audit", "list", "--unseal", "--agent", "claude", home=home, code=2)
    assert refused.stderr.endswith("--unseal needs --grep.\n")


def test_every_outcome_can_be_asked_for() -> None:
    assert {*OUTCOMES} == {*get_args(ShownState), "settled", "refused"} - {"new"}
