"""Who may do what at a running console: tokens, other sessions, the socket's peers; and where no token lies."""

import os
import signal
import subprocess
import sys
import time
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

from aileron_core.ids import token_hash
from aileron_core.server.auth import challenge_proof
from aileron_core.server.routes import ROUTES
from aileron_core.sessions.registry import HOLD_GRACE_SECONDS, RESTART_GRACE_SECONDS
from examples.mailbox.server import Mailbox
from tests.support.processes import command_lines, eventually
from tests.support.server_harness import DRAFT, Answer, Attended, Console, Serve, query

UNKNOWN = "act-20260101T000000-0123456789abcdef"
NO_RUN = "run-" + "0" * 26
PERSONS = [(each.method, each.path) for each in ROUTES if each.access == "a person"]
HOMES = [each for each in ROUTES if each.access == "socket"]
SESSIONS = [
    *((each.method, each.path) for each in ROUTES if each.access == "session"),
    *((method, "/mcp") for method in ("GET", "POST", "DELETE")),
]
WRONG = [None, "", "x", "0" * 43, "\xe9", "Bearer"]


@pytest.fixture
def pending(shared: Console, token: str) -> Any:
    """An approval of `token`'s session that waits. Nothing that is refused meanwhile decides it; then it is withdrawn."""
    answer = shared.run("send-draft", {"draft_id": DRAFT}, token)
    assert answer.status == 202
    yield answer.json
    path = f"/v1/action-approvals/{answer.json['approval_id']}"
    assert shared.get(f"{path}/result", token=token).json["status"] == "pending_approval"
    events = [r["event"] for r in shared.records() if r["run"] == answer.json["audit_id"]]
    assert not [event for event in events if event.startswith("approval.")]
    shared.post(f"{path}/withdraw", token=token)


def request_of(
    shared: Console, method: str, path: str, pending: Any, known: bool, **more: Any
) -> Answer:
    id_, run = (pending["approval_id"], pending["audit_id"]) if known else (UNKNOWN, NO_RUN)
    path = path.format(id=id_, run=run, name="get-draft")
    body = {"approved": True} if method == "POST" else None
    return shared.request(method, path, body, **more)


@pytest.mark.parametrize(("method", "path"), PERSONS)
def test_what_a_person_decides_is_403_to_every_session(
    shared: Console, token: str, pending: Any, method: str, path: str
) -> None:
    """Its own approval, another's and one that is not there look alike, byte for byte."""
    other = shared.session()["token"]
    answers = [
        request_of(shared, method, path, pending, known, token=each, local=local)
        for known, each, local in product((True, False), (token, other), (True, False))
    ]
    assert {answer.status for answer in answers} == {403}
    assert answers[0].error["class"] == "forbidden"
    assert len({answer.raw for answer in answers}) == 1
    # Whether the connection ends tells when the request's own body came, and nothing else.
    all_headers = [{k: v for k, v in each.headers.items() if k != "connection"} for each in answers]
    assert all(each == all_headers[0] for each in all_headers)


@pytest.mark.parametrize(("method", "path"), PERSONS)
def test_what_a_person_decides_is_401_to_everybody_else(
    shared: Console, pending: Any, method: str, path: str
) -> None:
    """Over the home's socket too: no route decides."""
    answers = [
        request_of(shared, method, path, pending, known, token=wrong, local=local)
        for wrong, known, local in product(WRONG, (True, False), (True, False))
    ]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.raw for answer in answers}) == 1
    assert answers[0].error["class"] == "unauthorized"
    assert answers[0].headers["www-authenticate"] == "Bearer"


def test_a_gateway_token_opens_none_of_them(shared: Console, pending: Any) -> None:
    """It stands in settings and process lists, so it must not; nor does any other than the session's own."""
    gateway = shared.session()["gateway_token"]
    for (method, path), wrong in product(SESSIONS, [*WRONG, gateway]):
        answer = request_of(shared, method, path, pending, True, token=wrong)
        assert (answer.status, answer.error["class"]) == (401, "unauthorized"), (path, wrong)
    for method, path in PERSONS:
        assert request_of(shared, method, path, pending, True, token=gateway).status == 401


def test_another_scheme_than_bearer_opens_nothing(shared: Console, token: str) -> None:
    """Case of the scheme apart (RFC 9110); nor does a token in the query, which stands in logs."""
    for value in (f"Basic {token}", token, f"Token {token}", f"Bearer{token}", "Bearer", ""):
        assert shared.get("/v1/actions", headers={"Authorization": value}).status == 401
    assert shared.get("/v1/actions", headers={"Authorization": f"bEARER {token}"}).status == 200
    assert shared.get(f"/v1/actions?token={token}&access_token={token}").status == 401


def test_another_sessions_approval_is_404_like_none_at_all(shared: Console, pending: Any) -> None:
    """The bodies are the same but for the id; it is neither told nor withdrawn."""
    other = shared.session()["token"]
    known = pending["approval_id"]
    for method, tail in (("GET", "result"), ("GET", "result?wait=1"), ("POST", "withdraw")):
        bodies: list[str] = []
        for each in (known, UNKNOWN):
            own = shared.request(method, f"/v1/action-approvals/{each}/{tail}", token=other)
            assert (own.status, own.error["class"]) == (404, "not_found")
            bodies.append(own.raw.decode().replace(each, "ID"))
        assert bodies[0] == bodies[1]
    assert known not in shared.get("/v1/actions", token=other).raw.decode()


def test_a_withdrawal_ends_it_once(shared: Console, token: str) -> None:
    pending = shared.run("send-draft", {"draft_id": DRAFT}, token).json
    path = f"/v1/action-approvals/{pending['approval_id']}/withdraw"
    assert shared.post(path, {"reason": 5}, token=token).status == 400
    assert shared.post(path, {"reason": "x" * 2001}, token=token).status == 400
    first = shared.post(path, {"reason": "no longer needed"}, token=token)
    assert (first.status, first.json["status"]) == (200, "withdrawn")
    second = shared.post(path, token=token)
    assert (second.status, second.error["details"]) == (409, {"outcome": "withdrawn"})


VALID: dict[str, dict[str, Any]] = {
    "/v1/sessions": {"agent": "a", "cwd": "/"},
    "/v1/projects": {"agent": "codex", "path": "/srv/a project", "digest": "ab" * 32},
    "/v1/intents": {"CreateVault": {"passphrase": "long enough for a vault"}},
}
"""What the home's socket would take; another body is refused for who asks before it is read."""


def test_the_homes_routes_are_for_its_socket_alone(shared: Console, token: str) -> None:
    """Sessions, projects, vault, accounts, keys: nobody reaches one over TCP, nor a session over either."""
    assert len(HOMES) > 8
    before = shared.records()
    for route in HOMES:
        body = VALID.get(route.path, {}) if route.method == "POST" else None
        for more, status in (
            ({}, 401),
            ({"token": token}, 403),
            ({"token": token, "local": True}, 403),
            ({"token": "wrong", "local": True}, 401),
        ):
            asked = shared.request(route.method, route.path.format(id=UNKNOWN), body, **more)
            assert asked.status == status, (route, more)
    assert shared.records() == before
    assert not (shared.home / "vault.json").exists()
    assert shared.get("/v1/status", local=True).status == 200


def test_a_session_is_never_more_than_the_kernel_says(shared: Console) -> None:
    def record(**claims: Any) -> dict[str, Any]:
        name = shared.session(**claims)["session_id"]
        records = (each for each in shared.records() if each["session"] == name)
        return next(each for each in records if each["event"] == "session.opened")

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as neighbour:
        for claim in (1, shared.process.pid, neighbour.pid, 2**31 - 1):
            assert record(pid=claim)["pid"] == os.getpid()
        neighbour.communicate()
    for claim in (os.getpid(), os.getppid()):
        assert claim == 1 or record(pid=claim)["pid"] == claim
    assert record(agent="launch", label="aileron launch")["opened_by"] == "relay"


_OTHER_USER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    print(repr(s.recv(100)))
except PermissionError:
    print("refused")
except ConnectionError:
    print("dropped")
"""


@pytest.mark.parametrize("opened", [False, True])
def test_another_user_gets_nothing_from_the_socket(console: Console, opened: bool) -> None:
    """Neither through its modes, nor, were they opened by accident, through its peer check."""
    if os.getuid() != 0:
        pytest.skip("being another user needs root")
    home = console.home
    path = home / "run" / "console.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    if opened:
        for folder in (home.parent, home, path.parent):
            folder.chmod(0o755)
        path.chmod(0o666)
    command = [sys.executable, "-I", "-c", _OTHER_USER, str(path)]
    said = subprocess.check_output(command, text=True, timeout=20).strip()
    assert said in ({"dropped", "b''"} if opened else {"refused"})


def test_ending_a_session_twice_is_204_twice(shared: Console) -> None:
    opened = shared.session()
    path, token = f"/v1/sessions/{opened['session_id']}/end", opened["token"]
    for more in ({"token": token}, {"token": token}, {"local": True}, {"local": True}):
        answer = shared.post(path, **more)
        assert (answer.status, answer.raw) == (204, b"")
    assert shared.get("/v1/actions", token=token).status == 401
    assert shared.get(f"/v1/sessions/{opened['session_id']}/hold", token=token).status == 401
    events = [r["event"] for r in shared.records() if r["session"] == opened["session_id"]]
    assert events.count("session.ended") == 1


def test_nobody_ends_or_holds_another_session(shared: Console, token: str) -> None:
    victim = shared.session()
    for tail, method in (("end", "POST"), ("hold", "GET")):
        path = f"/v1/sessions/{victim['session_id']}/{tail}"
        unknown = f"/v1/sessions/ses-{'0' * 26}/{tail}"
        known, strange = (shared.request(method, each, token=token) for each in (path, unknown))
        assert (known.status, known.raw) == (404, strange.raw)
        assert shared.request(method, path).status == 401
        assert shared.request(method, path, token=victim["gateway_token"]).status == 401
    ended = shared.session()
    shared.post(f"/v1/sessions/{ended['session_id']}/end", token=ended["token"])
    path = f"/v1/sessions/{victim['session_id']}/end"
    assert shared.post(path, token=ended["token"]).status == 401
    assert shared.get("/v1/actions", token=victim["token"]).status == 200
    assert shared.post("/v1/sessions/x/end", local=True).status == 404


def test_a_launcher_killed_before_its_agent_starts_leaves_no_session(shared: Console) -> None:
    """It holds the session from the moment that it has it, and not only once it reads what comes over it."""
    opened = shared.session()
    holds = (
        "import sys; from pathlib import Path; from aileron_tui.cli.launching import _Hold; "
        "_Hold(Path(sys.argv[1]), sys.argv[2], print); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-I", "-c", holds, str(shared.home), opened["session_id"]]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "held\n"
        launcher.kill()
    eventually(lambda: shared.get("/v1/actions", token=opened["token"]).status == 401)


def test_after_a_restart_a_held_session_has_a_time_to_come_back(attended: Attended) -> None:
    """30 s, shortened here; one that nobody holds again ends then, one never held goes on."""
    assert (RESTART_GRACE_SECONDS, HOLD_GRACE_SECONDS) == (30.0, 5.0)
    back, gone, never = attended.session(), attended.session(), attended.session()
    with attended.hold(back["session_id"]), attended.hold(gone["session_id"]):
        attended.end(signal.SIGKILL)
    begun = time.monotonic()
    attended.start("--restart-grace", "4")
    with attended.hold(back["session_id"], token=back["token"]):
        eventually(lambda: attended.get("/v1/actions", token=gone["token"]).status == 401)
        assert time.monotonic() - begun > 3
        for other in (back, never):
            assert attended.get("/v1/actions", token=other["token"]).status == 200


def test_no_preview_reaches_an_agent(attended: Attended) -> None:
    token = attended.session()["token"]
    answer = attended.run("send-draft", {"draft_id": DRAFT}, token)
    attended.ready(answer.json["approval_id"])
    attended.tell(deny=answer.json["approval_id"], reason="because")
    attended.state(answer.json["approval_id"], "denied")
    path = f"/v1/action-approvals/{answer.json['approval_id']}/result"
    result = attended.get(path, token=token)
    assert (result.json["status"], result.json["reason"]) == ("denied", "because")
    assert result.headers["cache-control"] == "no-store"
    subject = b"Q3 numbers"
    assert subject in attended.run("get-draft", {"id": DRAFT}, token).raw
    log = (attended.home / "log" / "aileron.log").read_bytes()
    assert subject not in answer.raw + result.raw + log


def test_a_listener_that_is_not_the_console_is_told_nothing(shared: Console) -> None:
    """A health check's proof is only for who knows a token, and names the address it was asked at."""
    opened = shared.session()
    hashed = token_hash(opened["token"])
    key_id, nonce = token_hash(hashed)[:16], "n" * 32
    answer = shared.get("/v1/health", headers={"Aileron-Challenge": f"{key_id}:{nonce}"})
    assert answer.json["proof"] == challenge_proof(hashed, nonce, f"127.0.0.1:{shared.port}")
    for challenge in (f"{'0' * 16}:{nonce}", f"{key_id}:short", key_id, ":", f":{nonce}"):
        answer = shared.get("/v1/health", headers={"Aileron-Challenge": challenge})
        assert answer.json == {"status": "ok"}
    valid = {"Aileron-Challenge": f"{key_id}:{nonce}"}
    assert "proof" not in shared.get("/v1/health", headers=valid, local=True).json


def test_tcp_is_bound_to_loopback_alone(shared: Console) -> None:
    hexed = f"{shared.port:04X}"
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    lines = chain(*(each.read_text().splitlines() for each in tables if each.exists()))
    listening = [words[1] for words in map(str.split, lines) if words[3] == "0A"]
    assert [each for each in listening if each.endswith(f":{hexed}")] == [f"0100007F:{hexed}"]


def test_a_token_is_returned_once_and_kept_nowhere(serve: Serve, mailbox: Mailbox) -> None:
    console = serve(mailbox, close_fds=True)  # started, not forked: its command line is its own
    answer = console.post(
        "/v1/sessions", {"agent": "a", "cwd": "/", "ttl_seconds": 600}, local=True
    )
    assert (answer.status, answer.headers["cache-control"]) == (201, "no-store")
    opened = answer.json
    assert set(opened) == {"session_id", "token", "gateway_token", "url", "expires_at"}
    assert opened["url"] == console.url
    token, gateway = opened["token"], opened["gateway_token"]
    assert token != gateway
    assert min(len(token), len(gateway)) >= 43
    console.run("list-drafts", {}, token)
    console.run("send-draft", {"draft_id": DRAFT}, token)
    console.get(f"/v1/actions?{token}", token=token)
    console.get("/v1/actions", headers={"Authorization": f"Basic {token}"})
    console.request("POST", "/v1/actions/x/run", raw=token.encode(), token=token)
    console.get("/v1/actions", token=token, headers={"Origin": f"https://{token}.example"})
    with console.hold(opened["session_id"], token=token):
        lines = "\n".join(command_lines().values())
        assert "aileron_tui.cli" in lines
        held = [path for path in console.home.rglob("*") if path.is_file()]
        names = {path.name for path in held}
        assert {"aileron.db", "aileron.db-wal", "daemon.json", "aileron.log"} <= names
        for secret in (token, gateway):
            assert secret not in lines
            for path in held:
                assert secret.encode() not in path.read_bytes(), path
    kept = query(console.home, "SELECT token_hash, gateway_hash FROM sessions")
    assert (token_hash(token), token_hash(gateway)) in kept
