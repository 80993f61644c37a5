"""A session that is said to be contained, and what the console makes of who comes as it."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.server_harness import DRAFT, Attended, eventually
from tests.support.variants import needs_bubblewrap

PYTHON = "/usr/bin/python3"
ASKS = (
    "import json, socket, sys\n"
    "body = json.dumps({'args': {'draft_id': sys.argv[2]}}).encode()\n"
    "with socket.socket(socket.AF_UNIX) as s:\n"
    "    s.connect(sys.argv[1])\n"
    "    s.sendall(b'POST /v1/actions/send-draft/run HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n'\n"
    "              b'Content-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) + body)\n"
    "    answer = b''\n"
    "    while chunk := s.recv(65536): answer += chunk\n"
    "print(answer.partition(b'\\r\\n\\r\\n')[2].decode())\n"
)

pytestmark = needs_bubblewrap


def asks(session: Mapping[str, Any], draft: str, *, contained: bool) -> str:
    """Ask over the session's own socket, in a sandbox or beside the console; return the approval."""
    path = session["socket"]
    command = [PYTHON, "-I", "-c", ASKS, path, draft]
    if contained:
        folder = str(Path(path).parent)
        command = [
            *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr"),
            *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
            *("--proc", "/proc", "--dev", "/dev", "--ro-bind", folder, "/run/aileron"),
            *command[:-2],
            *("/run/aileron/s.sock", draft),
        ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["approval_id"])


def draws_as(console: Attended, approval: str, containment: str) -> None:
    """Return once the console draws the call's session as contained in that way."""
    assert console.until(
        lambda: console.views.get(approval, {}).get("containment") == containment
    ), console.views


def test_one_process_outside_is_enough_for_as_long_as_the_session_lives(attended: Attended) -> None:
    """What was seen stays, through a restart too, and it is on record."""
    session = attended.session(launched=True, contained=True)
    first = asks(session, DRAFT, contained=True)
    draws_as(attended, first, "verified")
    second = asks(session, "r-2", contained=False)
    draws_as(attended, second, "none")
    draws_as(attended, first, "none")
    eventually(
        lambda: (
            [r["session"] for r in attended.records() if r["event"] == "session.seen_outside"]
            == [session["session_id"]]
        ),
        "the record that it was seen outside",
    )
    attended.end()
    attended.start()
    third = asks(session, "r-3", contained=True)
    draws_as(attended, third, "none")
    assert [r["event"] for r in attended.records()].count("session.seen_outside") == 1


def test_a_token_that_comes_another_way_is_nobodys_sandbox(attended: Attended) -> None:
    """Over TCP nothing of the sender can be seen; over the home's socket, that it sees the home."""
    session = attended.session(launched=True, contained=True)
    draws_as(attended, asks(session, DRAFT, contained=True), "verified")
    asked = {"args": {"draft_id": "r-2"}}
    path = "/v1/actions/send-draft/run"
    answer = attended.post(path, asked, token=session["token"])
    draws_as(attended, answer.json["approval_id"], "claimed")
    attended.post(path, {**asked, "args": {"draft_id": "r-3"}}, token=session["token"], local=True)
    draws_as(attended, answer.json["approval_id"], "none")
