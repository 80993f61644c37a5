"""Hosts that a session's sandbox refused: who reports them, who allows one, and what stays of it."""

import json
from typing import Any

from aileron_core.audit.events import AuditEvent
from tests.support.server_harness import Attended, eventually

HOST, OTHER = "registry.example:443", "telemetry.example:443"


def report(console: Attended, session: str, host: str, problem: str = "", **more: Any) -> int:
    body = {"host": host, "problem": problem}
    return console.post(f"/v1/sessions/{session}/refused-hosts", body, **more).status


def host_events(console: Attended) -> list[tuple[str, str]]:
    return [
        (record["event"], record["host"])
        for record in console.records()
        if record["event"].startswith("session.host_")
    ]


def test_a_person_allows_a_refused_host_and_the_launcher_learns_it(attended: Attended) -> None:
    """Over the session's hold, at once; it is on record before. Nothing else is allowed, and nobody else allows."""
    console = attended
    session = console.session(launched=True, contained=True)
    name, token = session["session_id"], session["token"]
    with console.hold(name) as held:
        assert report(console, name, HOST, local=True) == 204
        assert report(console, name, HOST, local=True) == 204
        assert report(console, name, "meta.example:443", "it leads to metadata", local=True) == 204
        assert console.until(lambda: len(console.hosts.get(name, {}).get("refused", ())) == 2)
        for host in (OTHER, "meta.example:443"):
            console.tell(session=name, allow_host=host)
        assert console.until(lambda: len(console.refusals) == 2)
        console.tell(session=name, allow_host=HOST)
        assert console.until(lambda: console.hosts[name]["allowed"] == [HOST])
        assert held.readline() == b"\n"
        assert json.loads(held.readline().removeprefix(b"data:")) == {"host_allowed": HOST}
    assert host_events(console) == [
        ("session.host_refused", HOST),
        ("session.host_refused", "meta.example:443"),
        ("session.host_allowed", HOST),
    ]
    assert AuditEvent.SESSION_HOST_ALLOWED.actor == "person"
    # The agent itself can neither report a host nor allow one.
    assert report(console, name, OTHER, token=token) == 403
    assert report(console, name, OTHER) == 401
    assert report(console, "ses-00000000000000000000000009", OTHER, local=True) == 404


def test_what_was_allowed_is_known_to_a_console_that_starts_again(attended: Attended) -> None:
    """From its records; the launcher gets it again with its new hold. It ends with the session."""
    console = attended
    name = console.session(launched=True, contained=True)["session_id"]
    with console.hold(name):
        for host in (HOST, OTHER):
            assert report(console, name, host, local=True) == 204
        assert console.until(lambda: len(console.hosts.get(name, {}).get("refused", ())) == 2)
        console.tell(session=name, allow_host=HOST)
        assert console.until(lambda: bool(console.hosts[name]["allowed"]))
    console.end()
    console.start()
    assert console.until(lambda: console.hosts.get(name, {}).get("allowed") == [HOST])
    assert console.hosts[name]["refused"] == {OTHER: ""}
    with console.hold(name) as held:
        assert held.readline() == b"\n"
        assert json.loads(held.readline().removeprefix(b"data:")) == {"host_allowed": HOST}
    assert console.post(f"/v1/sessions/{name}/end", {}, local=True).status == 204
    console.tell(session=name, allow_host=OTHER)
    assert console.until(lambda: bool(console.refusals))
    assert len(host_events(console)) == 3


def test_a_flood_of_names_is_bounded_and_each_is_plain_or_cannot_be_allowed(
    attended: Attended,
) -> None:
    """64 are kept and recorded, the others counted; what a person can allow is plain lower-case ASCII."""
    console = attended
    name = console.session(launched=True, contained=True)["session_id"]
    for host in (
        "Evil.example:443",
        "a b:443",
        "a\x1b[31m:443",
        "a.example",
        "a.example:0",
        "b\u0430nk.example:443",
    ):
        assert report(console, name, host, local=True) == 400
    assert report(console, name, "a\x1b[31m:443", "it is not a host name", local=True) == 204
    for number in range(70):
        assert report(console, name, f"host-{number}.example:443", local=True) == 204
    eventually(lambda: len(host_events(console)) == 64, "64 records")
    assert console.until(lambda: len(console.hosts.get(name, {}).get("refused", ())) == 64)
