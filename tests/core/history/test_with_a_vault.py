"""What was shown at a decision, with a real vault: read after a restart, and after its time by nobody."""

import shutil
from pathlib import Path

from aileron_core.console_port import Approve
from tests.core.adversary.test_under_the_vaults_key import protected_home, unlock
from tests.support.core_harness import Core, Mailbox
from tests.support.frozen_clock import FrozenClock

DAY = 86400.0


async def test_the_whole_screen_is_read_after_a_restart_and_an_unlock(
    home: Path, mailbox: Mailbox
) -> None:
    """As it was, with every field; before the unlock a sentence says why not. A backup is erased with the key."""
    clock = FrozenClock()
    await protected_home(home)
    async with Core.open(home, mailbox, accept=False, clock=clock) as core:
        await unlock(core)
        view = await core.ask()
        await core.app.console.carry_out(Approve(approval_id=view.approval_id, digest=view.digest))
        await core.ended(view)
    async with Core.open(home, mailbox, accept=False, clock=clock) as core:
        (locked,) = await core.app.screens.read(view.run_id)
        assert locked.approval is None
        assert "Unlock the vault" in locked.problem
        await unlock(core)
        (shown,) = await core.app.screens.read(view.run_id)
        assert shown.approval is not None
        assert (shown.approval.preview, shown.approval.words) == (view.preview, view.words)
        assert shown.approval.arguments == view.arguments
    files = ("aileron.db", "audit.head", "vault.json")
    for name in files:
        shutil.copy(home / name, home.parent / f"backup-{name}")
    clock.advance(32 * DAY)
    async with Core.open(home, mailbox, accept=False, clock=clock) as core:  # locked, for a month
        await core.app.screens.sweep()
        assert len(await core.records("history.erased")) == 1
    for name in files:
        shutil.copy(home.parent / f"backup-{name}", home / name)
    async with Core.open(home, mailbox, accept=False, clock=clock) as core:
        core.app.screens._swept_at = float("inf")  # the rows are there, as in a backup
        await unlock(core)
        (again,) = await core.app.screens.read(view.run_id)
        assert again.approval is None
        assert "was destroyed" in again.problem
