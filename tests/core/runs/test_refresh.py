"""A preview that differs, comes or goes between the question and the effect."""

from typing import Any

import pytest

from aileron_core.errors import Conflict
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
)


async def test_a_refresh_that_finds_a_difference_needs_a_new_yes(
    core: Core, mailbox: Mailbox
) -> None:
    """Refresh disarms approve in the same way; without a difference it shows no drift."""
    view = await core.ask()
    await core.app.approvals.refresh(view.approval_id)
    same = core.views(view.approval_id)[-1]
    assert (same.digest, same.drift) == (view.digest, None)
    mailbox.control(change={"id": DRAFT, "subject": "Q4 numbers"})
    await core.app.approvals.refresh(view.approval_id)
    other = core.views(view.approval_id)[-1]
    assert other.drift is not None
    assert [c.label for c in other.drift.changed] == ["Subject"]
    with pytest.raises(Conflict, match="The call changed"):
        await core.approve(view)
    await core.approve(other)
    assert (await core.ended(other)).state == "completed"
    assert mailbox.state()["sent"][0]["subject"] == "Q4 numbers"


def _yes_without_preview(mailbox: Mailbox, core: Core) -> Any:
    mailbox.control(fail={"op": "get", "status": 503, "times": 1})
    return core.ask()


async def test_an_unavailable_preview_can_still_be_approved_if_it_stays_so(
    core: Core, mailbox: Mailbox
) -> None:
    """Unavailable and still unavailable is no change."""
    mailbox.control(fail={"op": "get", "status": 503, "times": 2})
    view = await core.ask()
    assert view.preview.status == "unavailable"
    assert "503" in view.preview.reason
    await core.approve(view)
    assert (await core.ended(view)).state == "completed"


async def test_a_preview_that_has_become_available_is_shown_first(
    core: Core, mailbox: Mailbox
) -> None:
    """Nothing is sent on a yes that was given blind when it could have been seen."""
    view = await _yes_without_preview(mailbox, core)
    await core.approve(view)
    back = await core.back(view)
    assert back.preview.status == "ready"
    assert back.digest != view.digest
    assert mailbox.state()["sent"] == []


async def test_a_preview_that_has_gone_counts_as_changed(core: Core, mailbox: Mailbox) -> None:
    """A preview that was there and is now unavailable: nothing runs, and it says so."""
    view = await core.ask()
    mailbox.control(fail={"op": "get", "status": 500, "times": 1})
    await core.approve(view)
    back = await core.back(view)
    assert back.drift is not None
    assert "500" in back.drift.unavailable
    assert mailbox.state()["sent"] == []
