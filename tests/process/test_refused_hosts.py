"""Hosts that a session's sandbox refused: who reports them, who allows one, and what stays of it."""

from typing import Any

from aileron_core.audit.events import AuditEvent
from tests.support.server_harness import Attended, eventually

HOST, OTHER = "registry.example:443", "telemetry.example:443"


def report_host(console: Attended, session: str, host: str, problem: str = "", **more: Any) -> int:
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
    session = attended.session(launched=True, contained=True)
    name, token = session["session_id"], session["token"]
    with attended.hold(name) as held:
        assert report_host(attended, name, HOST, local=True) == 204
        assert report_host(attended, name, HOST, local=True) == 204
        assert (
            report_host(attended, name, "meta.example:443", "it leads to metadata", local=True)
            == 204
        )
        assert attended.until(lambda: len(attended.hosts.get(name, {}).get("refused", ())) == 2)
        for host in (OTHER, "meta.example:443"):
            attended.tell(session=name, allow_host=host)
        assert attended.until(lambda: len(attended.refusals) == 2)
        attended.tell(session=name, allow_host=HOST)
        assert attended.until(lambda: attended.hosts[name]["allowed"] == [HOST])
        assert held.readline() == b"\n"
        assert held.readline() == f"data: {HOST}\n".encode()
    assert host_events(attended) == [
        ("session.host_refused", HOST),
        ("session.host_refused", "meta.example:443"),
        ("session.host_allowed", HOST),
    ]
    assert AuditEvent.SESSION_HOST_ALLOWED.actor == "person"
    # The agent itself can neither report a host nor allow one.
    assert report_host(attended, name, OTHER, token=token) == 403
    assert report_host(attended, name, OTHER) == 401
    assert report_host(attended, "ses-00000000000000000000000009", OTHER, local=True) == 404


def test_what_was_allowed_is_known_to_a_console_that_starts_again(attended: Attended) -> None:
    """From its records; the launcher gets it again with its new hold. It ends with the session."""
    name = attended.session(launched=True, contained=True)["session_id"]
    with attended.hold(name):
        for host in (HOST, OTHER):
            assert report_host(attended, name, host, local=True) == 204
        assert attended.until(lambda: len(attended.hosts.get(name, {}).get("refused", ())) == 2)
        attended.tell(session=name, allow_host=HOST)
        assert attended.until(lambda: bool(attended.hosts[name]["allowed"]))
    attended.end()
    attended.start()
    assert attended.until(lambda: attended.hosts.get(name, {}).get("allowed") == [HOST])
    assert attended.hosts[name]["refused"] == {OTHER: ""}
    with attended.hold(name) as held:
        assert held.readline() == b"\n"
        assert held.readline() == f"data: {HOST}\n".encode()
    assert attended.post(f"/v1/sessions/{name}/end", {}, local=True).status == 204
    attended.tell(session=name, allow_host=OTHER)
    assert attended.until(lambda: bool(attended.refusals))
    assert len(host_events(attended)) == 3


def test_a_flood_of_names_is_bounded_and_each_is_plain_or_cannot_be_allowed(
    attended: Attended,
) -> None:
    """64 are kept and recorded, the others counted; what a person can allow is plain lower-case ASCII."""
    name = attended.session(launched=True, contained=True)["session_id"]
    for host in (
        "Evil.example:443",
        "a b:443",
        "a\x1b[31m:443",
        "a.example",
        "a.example:0",
        "b\u0430nk.example:443",
    ):
        assert report_host(attended, name, host, local=True) == 400
    assert report_host(attended, name, "a\x1b[31m:443", "it is not a host name", local=True) == 204
    for number in range(70):
        assert report_host(attended, name, f"host-{number}.example:443", local=True) == 204
    eventually(lambda: len(host_events(attended)) == 64, "64 records")
    assert attended.until(lambda: len(attended.hosts.get(name, {}).get("refused", ())) == 64)
