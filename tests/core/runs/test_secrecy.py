"""What a person sees and nobody else: the preview, the nonce, when it is being decided."""

import logging
from pathlib import Path
from typing import Any

import pytest

from aileron_core.server.agent_api import pending_body, result_body
from tests.support.core_harness import DRAFT, Core, Mailbox, Start

CANARIES = ("CANARYBODY", "canary-to@nordlicht.example", "CANARYSUBJECT")


def _plant(mailbox: Mailbox, draft: str = DRAFT) -> None:
    body, to, subject = CANARIES
    mailbox.control(change={"id": draft, "to": to, "subject": subject, "body": body})


async def _recorded(core: Core) -> str:
    """Return all that stands in the audit and in the rows of runs."""
    rows = await core.app.database.read(lambda c: c.execute("SELECT * FROM runs").fetchall())
    return str(await core.records()) + str(rows)


def _logged(home: Path) -> str:
    files = (path for path in (home / "log").rglob("*") if path.is_file())
    return "".join(path.read_text(encoding="utf-8") for path in files)


async def test_the_requester_learns_neither_preview_nor_nonce_nor_the_moment(
    start: Start, mailbox: Mailbox, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Through every end, every body, the log, the audit and the row of the run."""
    caplog.set_level(logging.DEBUG)
    bodies: list[dict[str, Any]] = []
    secrets: list[str] = []
    cores: list[Core] = []
    statuses: set[str] = set()

    def observe(_step: str) -> None:
        """Note what the agent would be told at each step of each run."""
        for core in cores:
            for live_run in core.app.registry:
                body = result_body(live_run.row)
                bodies.append(body)
                statuses.add(f"{live_run.row.state}:{body['status']}")

    async with start(failpoint=observe) as core:
        cores.append(core)
        _plant(mailbox)
        view = await core.ask()
        assert CANARIES[1] in {field.value for field in view.preview.fields}
        bodies.append(pending_body((await core.call()).row, "http://127.0.0.1:1", attached=True))
        mailbox.control(change={"id": DRAFT, "cc": CANARIES[1]})
        await core.approve(view)  # drifts
        await core.back(view)
        mailbox.control(fail={"op": "get", "status": 500, "times": 1})
        await core.app.approvals.refresh(view.approval_id)  # becomes unavailable
        await core.app.approvals.refresh(view.approval_id)
        secrets.extend(live_run.nonce for live_run in core.app.registry)
        await core.app.approvals.deny(view.approval_id, "no")
        for draft, trouble in (
            ("r-8842190312", {"op": "send", "status": 422, "times": 1}),
            ("r-8842189950", None),
        ):
            _plant(mailbox, draft)
            if trouble:
                mailbox.control(fail=trouble)
            view = await core.ask(draft)
            secrets.extend(live_run.nonce for live_run in core.app.registry)
            await core.run(view)
        recorded = await _recorded(core)
    public = str(bodies) + recorded + caplog.text + _logged(home)
    for secret in (*CANARIES, *secrets):
        assert secret not in public
    told = {body["status"] for body in bodies if body.get("digest_words")}
    assert told == {"completed", "denied", "failed"}, "every run that has ended, and no other"
    # Until it is final the agent reads `pending_approval`, whatever it really is.
    assert {s for s in statuses if s.split(":")[0] in ("checking", "approved", "executing")} == {
        "checking:pending_approval",
        "approved:pending_approval",
        "executing:pending_approval",
    }
    assert {"denied:denied", "failed:failed", "completed:completed"} <= statuses
