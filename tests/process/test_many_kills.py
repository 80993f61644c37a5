"""Kills at moments that nobody chose: between a yes and its end, over and over."""

import base64
import contextlib
import http.client
import json
import random
import signal
import time

from examples.mailbox.server import Mailbox
from tests.support.core_harness import audit_problems
from tests.support.server_harness import Attend
from tests.support.variants import ALL

ROUNDS = 60 if ALL else 4
"""`make test-all` takes the many."""
LONGEST = 0.03
"""Seconds from the yes to the kill, at most: an approved run takes about 10 ms from yes to sent."""


def _new_draft(mailbox: Mailbox, number: int) -> str:
    """Write a draft at the service: a request of an earlier round may still be on its way there."""
    raw = base64.urlsafe_b64encode(f"To: a@b.example\r\nSubject: {number}\r\n\r\nhello".encode())
    body = json.dumps({"message": {"raw": raw.decode()}})
    headers = {"Content-Type": "application/json", "Host": "gmail.googleapis.com"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", mailbox.port)) as connection:
        connection.request("POST", "/gmail/v1/users/me/drafts", body, headers)
        return json.loads(connection.getresponse().read())["id"]


def _sent(mailbox: Mailbox, draft: str) -> int:
    return sum(1 for each in mailbox.state()["sent"] if each["draft_id"] == draft)


def test_a_kill_at_any_moment_loses_nothing_and_sends_nothing_twice(
    attend: Attend, mailbox: Mailbox
) -> None:
    """However far it had come: at most one mail per approval, and never one without a record before it."""
    seed = random.randrange(2**32)
    moments = random.Random(seed)
    console = attend()
    ended: dict[str, int] = {}
    for number in range(ROUNDS):
        draft = _new_draft(mailbox, number)
        token = console.session()["token"]
        asked = console.run("send-draft", {"draft_id": draft}, token)
        approval_id = asked.json["approval_id"]
        console.approve(approval_id)
        time.sleep(moments.uniform(0, LONGEST))  # the moment that nobody chose
        console.end(signal.SIGKILL)

        state, failure = console.rows("state, failure")[-1]
        sent = _sent(mailbox, draft)
        story = f"seed {seed}, round {number}: {state}, {sent} sent, {failure}"
        assert sent <= 1, story
        assert state != "failed", story
        if sent:
            assert state in ("executing", "completed"), story
        ended[state] = ended.get(state, 0) + 1

        console.start()
        expected = {"executing": "unknown", "completed": "completed"}.get(state, "pending")
        console.state(approval_id, expected)
        # A request that was on its way may arrive late, once; only from "executing" can it have left.
        late = _sent(mailbox, draft)
        assert late == sent or (state == "executing" and late == 1), f"{story}; then {late}"
        assert audit_problems(console.home) == [], story
        if expected == "pending":
            with contextlib.suppress(OSError, http.client.HTTPException):
                console.ready(approval_id)
                console.tell(deny=approval_id, reason="next round")
                console.state(approval_id, "denied")
    print(ended)
