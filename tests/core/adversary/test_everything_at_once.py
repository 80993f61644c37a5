"""Every answer at once, in every order: at most one wins, and the service sees what the row says."""

import asyncio
import random
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import AileronError
from tests.support.core_harness import Core, Mailbox, install_examples, run

_MOVES = ("approve", "approve", "deny", "withdraw", "refresh", "again", "again", "keyed", "stale")
_FINAL = {"completed", "denied", "withdrawn", "failed"}


def _move(core: Core, name: str, view: ApprovalView, draft: str) -> Coroutine[Any, Any, Any]:
    approvals, session = core.app.approvals, core.session.session_id
    match name:
        case "approve":
            return approvals.approve(view.approval_id, view.digest)
        case "stale":
            return approvals.approve(view.approval_id, "0" * 64)
        case "deny":
            return approvals.deny(view.approval_id, "no")
        case "withdraw":
            return approvals.withdraw(session, view.approval_id, "")
        case "refresh":
            return approvals.refresh(view.approval_id)
        case "keyed":
            return core.call("get-draft", {"id": draft}, key=f"key {draft}")
        case _:
            return core.call("send-draft", {"draft_id": draft})


async def _storm(home: Path, mailbox: Mailbox, seed: int) -> None:
    order = random.Random(seed)
    async with Core.open(home, mailbox) as core:
        drafts = [draft["id"] for draft in mailbox.state()["drafts"]]
        views = {draft: await core.ask(draft) for draft in drafts}
        moves = [
            _move(core, name, view, draft)
            for draft, view in views.items()
            for name in order.choices(_MOVES, k=6)
        ]
        order.shuffle(moves)
        ends = await asyncio.gather(*moves, return_exceptions=True)
        unexpected = [e for e in ends if isinstance(e, BaseException)]
        assert all(isinstance(error, AileronError) for error in unexpected), unexpected
        for draft, view in views.items():
            await core.until(lambda v=view: core.views(v.approval_id)[-1].state not in _BETWEEN)
            row = await core.result(view.approval_id)
            sent = [s for s in mailbox.state()["sent"] if s["draft_id"] == draft]
            completed = row.state == "completed"
            assert len(sent) == completed, (row.state, sent)
            assert row.state in _FINAL | {"pending"}
        approved = await core.records("approval.approved")
        assert len(mailbox.state()["sent"]) <= len(approved)
        assert not [body for body in await core.records() if body.get("tampered")]
        keyed = [b for b in await core.records("run.started") if b["action"] == "get-draft"]
        assert len(keyed) <= len(drafts)


_BETWEEN = {"checking", "approved", "executing"}


@hypothesis_settings(max_examples=8)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_a_storm_of_answers_sends_each_draft_at_most_once(seed: int) -> None:
    """An approval is started at most once, and only by a yes to what was shown."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder, Mailbox() as mailbox:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        install_examples(home)
        run(_storm(home, mailbox, seed))
