"""Sessions: who a token belongs to, when it opens nothing any more, and what contained it."""

import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.containment.detection import Containment
from aileron_core.errors import StorageUnavailable
from aileron_core.ids import token_hash
from aileron_core.sessions.containment_line import containment_line
from aileron_core.sessions.model import OpenedSession, Session
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.sessions.service import unknown_session
from tests.support.core_harness import Core, change_rows, open_session
from tests.support.frozen_clock import FrozenClock
from tests.support.terminal import stop_process


def drafted(registry: SessionRegistry, ttl: float = 3600.0) -> OpenedSession:
    draft = registry.draft(agent="a", label="", cwd="/", pid=1, executable="", ttl=ttl)
    registry.add(draft.session)
    return draft


def test_a_token_opens_its_session_until_its_time_is_over() -> None:
    """Until the session ends; kept as SHA-256 alone."""
    clock = FrozenClock()
    registry = SessionRegistry(clock)
    mine, other = drafted(registry), drafted(registry)
    assert registry.authenticate(mine.token) == mine.session
    for wrong in ("", mine.token[:-1], mine.gateway_token, mine.session.token_hash, "\ud7ff"):
        assert registry.authenticate(wrong) is None
    assert mine.token not in repr(mine) + repr(mine.session) + repr(vars(registry))
    clock.advance(3600)
    assert registry.authenticate(mine.token) is None
    assert {session for session, _ in registry.overdue()} == {mine.session, other.session}
    registry.remove(mine.session.session_id)
    assert registry.get(mine.session.session_id) is None


def test_a_lost_hold_ends_the_session_five_seconds_later() -> None:
    """Once opened, its loss for 5 s ends the session; one that comes back in time does not."""
    clock = FrozenClock()
    registry = SessionRegistry(clock)
    session = drafted(registry).session
    clock.advance(100)
    assert registry.overdue() == ()  # it never opened one
    registry.hold(session.session_id)
    registry.hold(session.session_id)
    registry.release(session.session_id)
    clock.advance(10)
    assert registry.is_connected(session.session_id)
    assert registry.overdue() == ()
    registry.release(session.session_id)
    clock.advance(4.9)
    assert registry.overdue() == ()
    registry.hold(session.session_id)
    registry.release(session.session_id)
    clock.advance(4.9)
    clock.step(-86400)  # the wall clock does not count
    assert registry.overdue() == ()
    clock.advance(0.1)
    assert [session for session, _ in registry.overdue()] == [session]
    registry.remove(session.session_id)
    registry.release(session.session_id)
    assert not registry.is_connected(session.session_id)


async def test_an_inserted_session_opens_nothing_after_a_restart(home: Path) -> None:
    """A row without the record of its opening is no session; nor is one with another token."""
    async with Core.open(home) as core:
        assert core.app.sessions.authenticate(core.token) == core.session
    forged, changed = token_hash("forged"), token_hash("changed")
    change_rows(
        home,
        "INSERT INTO sessions(session_id, agent, label, cwd, executable, opened_by, "
        "token_hash, gateway_hash, opened_at, expires_at, held, last_record) "
        "SELECT 'ses-00000000000000000000000000', agent, label, cwd, executable, "
        f"opened_by, '{forged}', 'g', opened_at, expires_at, 0, last_record FROM sessions",
        f"UPDATE sessions SET token_hash = '{changed}' WHERE session_id = '{core.session.session_id}'",
    )
    async with Core.open(home) as again:
        for token in ("forged", "changed", core.token):
            assert again.app.sessions.authenticate(token) is None


async def test_a_session_lives_over_a_restart_and_its_end_does_too(home: Path) -> None:
    """Regression: gone from memory alone, because its end was not written, its token worked again in the next life."""
    async with Core.open(home) as core:
        token, session_id = core.token, core.session.session_id
    async with Core.open(home) as core:
        assert core.app.sessions.authenticate(token) is not None
        core.app.database._stopped = StorageUnavailable("full")
        with pytest.raises(StorageUnavailable):
            await core.app.session_service.end(session_id, "it was ended")
        core.app.database._stopped = None
        for _ in range(2):
            await core.app.session_service.end(session_id, "it was ended")
        assert len(await core.records("session.ended")) == 1
    async with Core.open(home) as core:
        assert core.app.sessions.authenticate(token) is None
        assert token not in str(await core.records())


async def test_a_stopped_launcher_keeps_its_session_over_a_restart(home: Path) -> None:
    """It cannot reconnect before `fg`; then it has its seconds once more."""
    clock = FrozenClock()
    launcher = subprocess.Popen(["sleep", "600"])
    try:
        async with Core.open(home, clock=clock) as core:
            opened = await open_session(core.app, peer_pid=launcher.pid, ttl=3600.0)
            session_id = opened.session.session_id
            await core.app.session_service.hold(session_id)
        stop_process(launcher.pid)
        async with Core.open(home, clock=clock) as core:
            service, sessions = core.app.session_service, core.app.sessions
            clock.advance(1000)
            await service.sweep()
            assert sessions.get(session_id) is not None
            launcher.send_signal(signal.SIGCONT)
            for seconds, lives in ((4.9, True), (0.2, False)):
                clock.advance(seconds)
                await service.sweep()
                assert (sessions.get(session_id) is not None) is lives
    finally:
        launcher.kill()
        launcher.wait()


SANDBOXED = replace(unknown_session("ses-1"), opened_by="contained")
LAUNCHED = replace(SANDBOXED, opened_by="launch")
OFFLINE = SessionTerms(network="offline", writes=("/data", "/more"))
HOSTS = tuple(f"h{number}.example:443" for number in range(13))
REACHES = "In a sandbox. It reaches"
ONLY = f"{REACHES} only these hosts: {', '.join(HOSTS[:12])}"
LOOSE, PROJECT = "it can do whatever your account can.", "It can write only its project."
REPORTED = "In a sandbox, as whoever opened it reports. It reaches no network: only Aileron's "
REACHED = "actions and, through the gateway, its model. It can write its project and /data, /more."
OUTSIDE = "Not contained: reported as contained, but seen outside any sandbox;"


def sandboxed_session(**terms: Any) -> Session:
    return replace(SANDBOXED, terms=SessionTerms(**terms))


@pytest.mark.parametrize(
    ("session", "containment", "line"),
    [
        (sandboxed_session(network="all"), "verified", f"{REACHES} the whole network. {PROJECT}"),
        (replace(SANDBOXED, terms=OFFLINE), "claimed", REPORTED + REACHED),
        (
            sandboxed_session(network="hosts", hosts=HOSTS),
            "verified",
            f"{ONLY} and 1 more. {PROJECT}",
        ),
        (SANDBOXED, "verified", "In a sandbox. What it can reach and write was not reported."),
        (sandboxed_session(network="offline"), "none", f"{OUTSIDE} {LOOSE}"),
        (LAUNCHED, "none", f"Not contained: launched with --no-sandbox; {LOOSE}"),
        (unknown_session("ses-1"), "none", f"Not contained: it connected by itself; {LOOSE}"),
        (SANDBOXED, "other_user", f"Runs as another user; {LOOSE.replace('your', 'that')}"),
    ],
)
def test_a_line_tells_containment(session: Session, containment: Containment, line: str) -> None:
    """What was seen counts over what its launcher reported."""
    assert containment_line(session, containment) == line


async def open_offline(core: Core) -> str:
    hosts = ("github.com:443",)
    opened = await open_session(core.app, opened_by="contained", network="hosts", hosts=hosts)
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
        assert again.terms == SessionTerms(network="hosts", hosts=("github.com:443",))
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
        assert (await core.app.session_service.load())[verified].containment == seen["containment"]


def test_terms_are_read_as_they_were_recorded_and_nothing_of_another_type_is() -> None:
    """A record of an older version names fewer, and lists that are empty."""
    terms = SessionTerms(network="hosts", hosts=("a:1", "b:2"), plugin_tools=("p",), augment=True)
    assert SessionTerms.from_json(terms.to_json()) == terms
    older = {"containment": "x", "network": "all", "hosts": [], "writes": ["/data"]}
    assert SessionTerms.from_json(older) == SessionTerms(network="all", writes=("/data",))
    other = {"hosts": "a:1", "augment": "yes", "network": ["all"], "base_url": None, "builtins": 1}
    assert SessionTerms.from_json(other) == SessionTerms()
