"""A session's record says to a person what contained it, what it could reach and what it could write."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment.detection import Containment
from aileron_core.sessions.containment_line import containment_line
from aileron_core.sessions.model import Session
from aileron_core.sessions.service import unknown_session
from tests.support.core_harness import Core

SANDBOXED = replace(unknown_session("ses-1"), opened_by="contained")
LAUNCHED = replace(SANDBOXED, opened_by="launch")


@pytest.mark.parametrize(
    ("session", "containment", "line"),
    [
        (
            replace(SANDBOXED, network="all"),
            "verified",
            "In a sandbox. It reaches the whole network. It can write only its project.",
        ),
        (
            replace(SANDBOXED, network="offline", writes=("/data", "/more")),
            "claimed",
            (
                "In a sandbox, as whoever opened it reports. It reaches no network: only Aileron's "
                "actions and, through the gateway, its model. It can write its project and /data, /more."
            ),
        ),
        (
            replace(
                SANDBOXED, network="hosts", hosts=tuple(f"h{n}.example:443" for n in range(13))
            ),
            "verified",
            (
                "In a sandbox. It reaches only these hosts: "
                + ", ".join(f"h{n}.example:443" for n in range(12))
                + " and 1 more. It can write only its project."
            ),
        ),
        (
            SANDBOXED,
            "verified",
            "In a sandbox. What it can reach and write was not reported.",
        ),
        (
            replace(SANDBOXED, network="offline"),
            "none",
            (
                "Not contained: reported as contained, but seen outside any sandbox; it can do whatever "
                "your account can."
            ),
        ),
        (
            LAUNCHED,
            "none",
            "Not contained: launched with --no-sandbox; it can do whatever your account can.",
        ),
        (
            unknown_session("ses-1"),
            "none",
            "Not contained: it connected by itself; it can do whatever your account can.",
        ),
        (
            SANDBOXED,
            "other_user",
            "Runs as another user; it can do whatever that account can.",
        ),
    ],
)
def test_one_line_says_what_contains_it(
    session: Session, containment: Containment, line: str
) -> None:
    """What was seen counts over what its launcher reported."""
    assert containment_line(session, containment) == line


async def open_offline(core: Core) -> str:
    opened = await core.app.session_service.open(
        agent="codex",
        label="",
        cwd="/",
        claimed_pid=None,
        peer_pid=os.getpid(),
        ttl=60,
        opened_by="contained",
        network="hosts",
        hosts=("github.com:443",),
    )
    return opened.session.session_id


async def of_session(core: Core, event: str, session_id: str) -> dict[str, Any]:
    (found,) = [each for each in await core.records(event) if each["session"] == session_id]
    return found


async def test_the_opening_records_what_is_reported_and_the_end_what_was_seen(home: Path) -> None:
    """Both outlive the console, and so does what it may reach."""
    async with Core.open(home) as core:
        verified, outside = await open_offline(core), await open_offline(core)
        record = await of_session(core, "session.opened", verified)
        assert record["containment"].startswith("In a sandbox, as whoever opened it reports. ")
        assert record["hosts"] == ["github.com:443"]
        (view,) = [each for each in core.app.publisher.sessions() if each.session_id == verified]
        assert view.containment_line == record["containment"]
    async with Core.open(home) as core:
        again = core.app.sessions.get(verified)
        assert again is not None
        assert (again.network, again.hosts) == ("hosts", ("github.com:443",))
        await core.app.session_service.observe_containment(verified, "verified")
        await core.app.session_service.observe_containment(outside, "none")
        for each in (verified, outside):
            await core.app.session_service.end(each, "it was ended")
        seen = await of_session(core, "session.ended", verified)
        assert seen["containment"] == (
            "In a sandbox. It reaches only these hosts: github.com:443. It can write only its project."
        )
        left = await of_session(core, "session.ended", outside)
        assert left["containment"].startswith("Not contained: reported as contained, but seen ")
        known = await core.app.session_service.load()
        assert known[verified].containment == seen["containment"]
