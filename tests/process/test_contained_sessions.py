"""A session that is said to be contained: what the console makes of who comes as it, and of the hosts that its sandbox refused."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aileron_core.audit.events import AuditEvent
from tests.support.meeting import ROOT as BOX
from tests.support.server_harness import DRAFT, Attended, eventually
from tests.support.variants import needs_bubblewrap

ASKS = (
    "import http.client, json, socket, sys\n"
    "to = http.client.HTTPConnection('x')\n"
    "to.sock = socket.socket(socket.AF_UNIX)\n"
    "to.sock.connect(sys.argv[1])\n"
    "body = json.dumps({'args': {'draft_id': sys.argv[2]}})\n"
    "to.request('POST', '/v1/actions/send-draft/run', body, {'Content-Type': 'application/json'})\n"
    "print(to.getresponse().read().decode())\n"
)


def asks(session: Mapping[str, Any], draft: str, *, contained: bool) -> str:
    path = session["socket"]
    command = ["/usr/bin/python3", "-I", "-c", ASKS, path, draft]
    if contained:
        folder = str(Path(path).parent)
        shown = ("--ro-bind", folder, "/run/aileron")
        command = [*BOX, "--unshare-all", *shown, *command[:-2], "/run/aileron/s.sock", draft]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["approval_id"])


def draws_as(console: Attended, approval: str, containment: str) -> None:
    views = console.views
    assert console.until(lambda: views.get(approval, {}).get("containment") == containment), views


@needs_bubblewrap
def test_one_process_outside_is_enough_for_the_sessions_life(attended: Attended) -> None:
    session = attended.session(launched=True, contained=True)
    first = asks(session, DRAFT, contained=True)
    draws_as(attended, first, "verified")
    second = asks(session, "r-2", contained=False)
    draws_as(attended, second, "none")
    draws_as(attended, first, "none")

    def outside() -> list[str]:
        return [r["session"] for r in attended.records() if r["event"] == "session.seen_outside"]

    eventually(lambda: outside() == [session["session_id"]], "it was seen outside")
    attended.end()
    attended.start()
    third = asks(session, "r-3", contained=True)
    draws_as(attended, third, "none")
    assert len(outside()) == 1
    # A token that comes another way: over TCP nothing of the sender is seen, over the home's socket that it sees the home.
    other = attended.session(launched=True, contained=True)
    draws_as(attended, asks(other, DRAFT, contained=True), "verified")
    path, token = "/v1/actions/send-draft/run", other["token"]
    answer = attended.post(path, {"args": {"draft_id": "r-2"}}, token=token)
    draws_as(attended, answer.json["approval_id"], "claimed")
    attended.post(path, {"args": {"draft_id": "r-3"}}, token=token, local=True)
    draws_as(attended, answer.json["approval_id"], "none")


HOST, OTHER, META = "registry.example:443", "telemetry.example:443", "meta.example:443"


def report_host(console: Attended, session: str, host: str, problem: str = "", **more: Any) -> int:
    body = {"host": host, "problem": problem}
    return console.post(f"/v1/sessions/{session}/refused-hosts", body, **more).status


def host_events(console: Attended) -> list[tuple[str, str]]:
    records = [each for each in console.records() if each["event"].startswith("session.host_")]
    return [(each["event"], each["host"]) for each in records]


def refused_hosts(console: Attended, session: str, count: int) -> bool:
    return console.until(lambda: len(console.hosts.get(session, {}).get("refused", ())) == count)


def test_a_person_allows_a_refused_host_and_the_launcher_learns_it(attended: Attended) -> None:
    session = attended.session(launched=True, contained=True)
    name, token = session["session_id"], session["token"]
    with attended.hold(name) as held:
        assert report_host(attended, name, HOST, local=True) == 204
        assert report_host(attended, name, HOST, local=True) == 204
        why = "it leads to metadata"
        assert report_host(attended, name, META, why, local=True) == 204
        assert refused_hosts(attended, name, 2)
        for host in (OTHER, META):
            attended.tell(session=name, allow_host=host)
        assert attended.until(lambda: len(attended.refusals) == 2)
        attended.tell(session=name, allow_host=HOST)
        assert attended.until(lambda: attended.hosts[name]["allowed"] == [HOST])
        assert held.readline() == b"\n"
        assert held.readline() == f"data: {HOST}\n".encode()
    refused, allowed = "session.host_refused", "session.host_allowed"
    assert host_events(attended) == [(refused, HOST), (refused, META), (allowed, HOST)]
    assert AuditEvent.SESSION_HOST_ALLOWED.actor == "person"
    # The agent itself can neither report a host nor allow one.
    assert report_host(attended, name, OTHER, token=token) == 403
    assert report_host(attended, name, OTHER) == 401
    assert report_host(attended, "ses-00000000000000000000000009", OTHER, local=True) == 404
    # A console that starts again knows it, from its records, and the launcher gets it with its new hold.
    attended.end()
    attended.start()
    assert attended.until(lambda: attended.hosts.get(name, {}).get("allowed") == [HOST])
    assert attended.hosts[name]["refused"] == {META: why}
    with attended.hold(name) as held:
        assert held.readline() == b"\n"
        assert held.readline() == f"data: {HOST}\n".encode()
    assert attended.post(f"/v1/sessions/{name}/end", {}, local=True).status == 204
    attended.tell(session=name, allow_host=META)
    assert attended.until(lambda: bool(attended.refusals))
    assert len(host_events(attended)) == 3


def test_a_flood_of_names_is_bounded_and_only_plain_ones_can_be_allowed(attended: Attended) -> None:
    name = attended.session(launched=True, contained=True)["session_id"]
    hostile = "a\x1b[31m:443"
    for host in (
        hostile,
        "E.example:443",
        "a b:443",
        "a.example",
        "a.example:0",
        "b\u0430nk.example:443",
    ):
        assert report_host(attended, name, host, local=True) == 400
    assert report_host(attended, name, hostile, "it is not a host name", local=True) == 204
    for number in range(70):
        assert report_host(attended, name, f"host-{number}.example:443", local=True) == 204
    eventually(lambda: len(host_events(attended)) == 64, "64 records")
    assert refused_hosts(attended, name, 64)
