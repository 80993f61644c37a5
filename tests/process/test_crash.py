"""A console killed at every step of a run's life and started again: nothing lost, nothing sent twice."""

import contextlib
import http.client
import signal
from collections.abc import Callable
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.support.core_harness import audit_problems
from tests.support.server_harness import (
    DRAFT,
    Answer,
    Attend,
    Attended,
    aileron,
    aileron_json,
    eventually,
)
from tests.support.variants import variants

GATED = {
    "before run.requested": None,
    "before approval.approved": "pending",
    "after approval.approved": "checking",
    "before run.started": "approved",
    "after run.started": "executing",
    "before run.completed": "executing",
    "after run.completed": "completed",
    # one on each side of every record, of which those above leave a state of their own
    "after run.requested": "pending",
    "before preview.fetched": "pending",
    "after preview.fetched": "pending",
    "before recheck.held": "checking",
    "after recheck.held": "approved",
    "before run.delivered": "completed",
    "after run.delivered": "completed",
}
"""Failpoint -> the state in which the database has to be found after it."""
NOTES = {
    "pending": "",
    "checking": "stopped during the last check",
    "approved": "stopped before the run began",
}


@contextlib.contextmanager
def until_it_dies() -> Any:
    """Requests to a console that dies meanwhile end however they end."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        yield


def ask_send(console: Attended, token: str, **more: Any) -> Answer | None:
    with until_it_dies():
        return console.run("send-draft", {"draft_id": DRAFT}, token, **more)
    return None


def dies(console: Attended) -> None:
    assert console.process.wait(60) == -signal.SIGKILL, "the failpoint was never passed"
    console.end()


def audit_holds(console: Attended) -> None:
    """Everything recorded, nothing sent without its record, no row without one."""
    assert audit_problems(console.home) == []


def run_events(console: Attended, run: str) -> list[str]:
    return [record["event"] for record in console.records() if record["run"] == run]


def waits_and_can_be_approved(
    console: Attended, mailbox: Mailbox, token: str, approval_id: str, note: str
) -> None:
    """The next life shows it again, sends nothing by itself, and a new yes sends it once."""
    console.until(lambda: console.views.get(approval_id, {}).get("preview") == "ready")
    view = console.views[approval_id]
    assert view["state"] == "pending"
    assert note in view["note"] if note else view["note"] == ""
    result = console.get(f"/v1/action-approvals/{approval_id}/result", token=token)
    assert result.json["status"] == "pending_approval"
    again = ask_send(console, token)
    assert again is not None
    assert again.json["approval_id"] == approval_id, "asking again attaches to it"
    assert mailbox.state()["sent"] == []
    console.approve(approval_id)
    done = console.get(f"/v1/action-approvals/{approval_id}/result?wait=20", token=token)
    assert done.json["status"] == "completed"
    assert len(done.json["digest_words"]) == 3
    assert len(mailbox.state()["sent"]) == 1


def is_over(
    console: Attended, mailbox: Mailbox, token: str, approval_id: str, state: str, sent: int
) -> Answer:
    """The next life tells how it ended; no yes starts it again."""
    console.state(approval_id, state)
    result = console.get(f"/v1/action-approvals/{approval_id}/result", token=token)
    assert result.json["status"] == state
    console.tell(approve=approval_id, digest=console.views[approval_id]["digest"] or "00")
    console.until(lambda: bool(console.refusals))
    assert state in console.refusals[0]["message"]
    assert len(mailbox.state()["sent"]) == sent
    return result


@pytest.mark.parametrize("failpoint", variants(GATED, 7))
def test_a_gated_run_survives_a_kill_at_every_step(
    attend: Attend, mailbox: Mailbox, failpoint: str
) -> None:
    """What waited waits again, what had begun is unknown, what was done is told; never two sends."""
    attended = attend(failpoint=failpoint)
    token = attended.session()["token"]
    answer = ask_send(attended, token)
    if answer is not None:
        approval = answer.json["approval_id"]
        if attended.approve(approval):
            with until_it_dies():
                attended.get(f"/v1/action-approvals/{approval}/result?wait=20", token=token)
    dies(attended)

    state = GATED[failpoint]
    assert [row[0] for row in attended.rows()] == ([] if state is None else [state])
    sent = len(mailbox.state()["sent"])
    assert sent == (failpoint == "before run.completed" or state == "completed")
    audit_holds(attended)

    attended.start()
    if state is None:
        again = ask_send(attended, token)
        assert again is not None
        waits_and_can_be_approved(attended, mailbox, token, again.json["approval_id"], "")
    else:
        ((run, approval_id),) = attended.rows("run_id, approval_id")
        if sent:
            assert "run.started" in run_events(attended, run)
        if state in NOTES:
            waits_and_can_be_approved(attended, mailbox, token, approval_id, NOTES[state])
        elif state == "executing":
            over = is_over(attended, mailbox, token, approval_id, "unknown", sent)
            assert over.json["failure"]["class"] == "outcome_unknown"
            assert over.json["failure"]["audit_id"] == run
            assert run_events(attended, run).count("run.started") == 1
        else:
            over = is_over(attended, mailbox, token, approval_id, "completed", 1)
            assert over.json["output"]["id"] == mailbox.state()["sent"][0]["id"]
    attended.end()
    audit_holds(attended)


def test_a_kill_while_the_request_is_at_the_service_ends_as_unknown(
    attended: Attended, mailbox: Mailbox
) -> None:
    """The service has it and has not answered: nobody sends it again."""
    token = attended.session()["token"]
    mailbox.control(hang="send")
    answer = ask_send(attended, token)
    assert answer is not None
    attended.approve(answer.json["approval_id"])

    def posts() -> int:
        return sum(request["method"] == "POST" for request in mailbox.state()["requests"])

    eventually(posts, "the request is at the service")
    attended.end(signal.SIGKILL)
    assert attended.rows() == [("executing",)]
    mailbox.control(reset=True)
    attended.start()
    is_over(attended, mailbox, token, answer.json["approval_id"], "unknown", 0)
    assert posts() == 1
    (unknown,) = aileron_json("status", home=attended.home)["unknown"]
    assert unknown["run_id"] == attended.rows("run_id")[0][0]
    assert (unknown["approval_id"], unknown["action"]) == (answer.json["approval_id"], "send-draft")
    told = aileron("status", home=attended.home).stdout
    assert "1 call ended with an unknown outcome. Check it in the console:" in told
    assert f"{unknown['approval_id']}  send-draft, requested by test, ended at " in told
    attended.end()
    audit_holds(attended)


UNGATED = {
    "after run.started": "executing",
    "after run.completed": "completed",
    "before run.started": None,
    "before run.completed": "executing",
}


@pytest.mark.parametrize("failpoint", variants(UNGATED, 2))
def test_an_ungated_run_survives_a_kill_at_every_step(
    attend: Attend, mailbox: Mailbox, failpoint: str
) -> None:
    """Asked again with its key: it runs if it never began, else its one end is told."""
    attended = attend(failpoint=failpoint)
    token = attended.session()["token"]
    with until_it_dies():
        attended.run("get-draft", {"id": DRAFT}, token, idempotency_key="k")
    dies(attended)
    state = UNGATED[failpoint]
    assert [row[0] for row in attended.rows()] == ([] if state is None else [state])
    requests = len(mailbox.state()["requests"])
    assert requests == ("completed" in failpoint)
    audit_holds(attended)
    attended.start()
    again = attended.run("get-draft", {"id": DRAFT}, token, idempotency_key="k")
    if state == "executing":
        assert again.status == 500
        assert again.error["class"] == "outcome_unknown"
        assert again.error["audit_id"] == attended.rows("run_id")[0][0]
        assert len(mailbox.state()["requests"]) == requests
        # Nobody was asked, so it is named by its run.
        ((run,),) = attended.rows("run_id")
        (unknown,) = aileron_json("status", home=attended.home)["unknown"]
        assert (unknown["run_id"], unknown["approval_id"]) == (run, None)
        assert (
            f"{run}  get-draft, requested by test" in aileron("status", home=attended.home).stdout
        )
    else:
        assert again.status == 200
        assert again.json["output"]["id"] == DRAFT
        assert len(mailbox.state()["requests"]) == 1
    attended.end()
    audit_holds(attended)


def denied_by_person(console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    console.ready(approval)
    console.tell(deny=approval, reason="not today")


def withdrawn(console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    console.post(f"/v1/action-approvals/{approval}/withdraw", {}, token=token)


def drifted_draft(console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    console.ready(approval)
    mailbox.control(change={"id": DRAFT, "bcc": "eve@example.com"})
    console.approve(approval)


def conflicting(console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    console.ready(approval)
    (console.home / "actions" / "send-draft.md").unlink()
    console.approve(approval)


def failing(console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    mailbox.control(fail={"op": "send", "status": 400})
    console.approve(approval)


def asked_again(console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    ask_send(console, token)


Trouble = Callable[[Attended, Mailbox, str, str], None]
ENDS: list[tuple[str, Trouble, str, str]] = [
    ("after approval.denied", denied_by_person, "denied", "denied"),
    ("after approval.withdrawn", withdrawn, "withdrawn", "withdrawn"),
    ("before recheck.differed", drifted_draft, "checking", "pending"),
    ("after recheck.conflict", conflicting, "failed", "failed"),
    ("before run.failed", failing, "executing", "unknown"),
    ("before approval.denied", denied_by_person, "pending", "pending"),
    ("before approval.withdrawn", withdrawn, "pending", "pending"),
    ("after recheck.differed", drifted_draft, "pending", "pending"),
    ("before recheck.conflict", conflicting, "checking", "pending"),
    ("after run.failed", failing, "failed", "failed"),
    ("before run.asked_again", asked_again, "pending", "pending"),
    ("after run.asked_again", asked_again, "pending", "pending"),
]


@pytest.mark.parametrize(("failpoint", "trouble", "found", "then"), variants(ENDS, 5))
def test_every_other_end_survives_a_kill_before_and_after_it(
    attend: Attend, mailbox: Mailbox, failpoint: str, trouble: Trouble, found: str, then: str
) -> None:
    """The state on disk is that of the last record; the next life goes on from there and sends nothing."""
    attended = attend(failpoint=failpoint)
    token = attended.session()["token"]
    answer = ask_send(attended, token)
    assert answer is not None
    approval: str = answer.json["approval_id"]
    with until_it_dies():
        trouble(attended, mailbox, approval, token)
    dies(attended)
    assert attended.rows() == [(found,)]
    audit_holds(attended)
    attended.start()
    attended.state(approval, then)
    result = attended.get(f"/v1/action-approvals/{approval}/result", token=token).json
    assert result["status"] == ("pending_approval" if then == "pending" else then)
    if then == "denied":
        assert result["reason"] == "not today"
    assert mailbox.state()["sent"] == []
    attended.end()
    audit_holds(attended)


@pytest.mark.parametrize(
    ("first", "second", "then"),
    variants(
        [
            ("after recheck.held", "before run.recovered", "pending"),
            ("after run.started", "after run.unknown", "unknown"),
            ("after recheck.held", "after run.recovered", "pending"),
            ("after run.started", "before run.unknown", "unknown"),
        ],
        2,
    ),
)
def test_a_kill_during_the_recovery_changes_nothing(
    attend: Attend, mailbox: Mailbox, first: str, second: str, then: str
) -> None:
    attended = attend(failpoint=first)
    token = attended.session()["token"]
    answer = ask_send(attended, token)
    assert answer is not None
    approval: str = answer.json["approval_id"]
    attended.approve(approval)
    dies(attended)
    with pytest.raises(AssertionError, match="did not start"):
        attended.start("--failpoint", second)
    assert attended.process.wait(60) == -signal.SIGKILL
    audit_holds(attended)
    attended.end()
    attended.start()
    if then == "unknown":
        is_over(attended, mailbox, token, approval, "unknown", 0)
    else:
        waits_and_can_be_approved(attended, mailbox, token, approval, NOTES["approved"])
    attended.end()
    audit_holds(attended)
