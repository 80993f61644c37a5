"""A console killed at every step of a run's life and started again: nothing lost, nothing sent twice."""

import contextlib
import http.client
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.support.core_harness import audit_problems
from tests.support.processes import eventually
from tests.support.server_harness import DRAFT, Answer, Attend, Attended, aileron, aileron_json
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
def until_it_dies() -> Generator[None]:
    """Requests to a console that dies meanwhile end however they end."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        yield


def ask_send(console: Attended, token: str) -> str:
    return console.run("send-draft", {"draft_id": DRAFT}, token).json["approval_id"]


def result_at(console: Attended, token: str, approval: str, wait: int = 20) -> Answer:
    return console.get(f"/v1/action-approvals/{approval}/result?wait={wait}", token=token)


def dies(console: Attended) -> None:
    """It is killed at its failpoint; what it left holds together."""
    assert console.process.wait(60) == -signal.SIGKILL, "the failpoint was never passed"
    ends(console)


def dies_at_its_start(console: Attended, failpoint: str) -> None:
    with pytest.raises(AssertionError, match="did not start"):
        console.start("--failpoint", failpoint)
    dies(console)
    console.start()


def ends(console: Attended) -> None:
    """Everything is recorded then, nothing sent without its record, no row without one."""
    console.end()
    assert audit_problems(console.home) == []


def run_events(console: Attended, run: str) -> list[str]:
    return [record["event"] for record in console.records() if record["run"] == run]


def still_waits(console: Attended, mailbox: Mailbox, token: str, approval: str, note: str) -> None:
    """The next life shows it again, sends nothing by itself, and a new yes sends it once."""
    console.until(lambda: console.views.get(approval, {}).get("preview") == "ready")
    view = console.views[approval]
    assert view["state"] == "pending"
    assert note in view["note"] if note else view["note"] == ""
    assert result_at(console, token, approval, 0).json["status"] == "pending_approval"
    assert ask_send(console, token) == approval, "asking again attaches to it"
    assert mailbox.state()["sent"] == []
    console.approve(approval)
    done = result_at(console, token, approval).json
    assert (done["status"], len(done["digest_words"])) == ("completed", 3)
    assert len(mailbox.state()["sent"]) == 1


def is_over(
    console: Attended, mailbox: Mailbox, token: str, approval: str, state: str, sent: int
) -> Answer:
    """The next life tells how it ended; no yes starts it again."""
    console.state(approval, state)
    result = result_at(console, token, approval, 0)
    assert result.json["status"] == state
    console.tell(approve=approval, digest=console.views[approval]["digest"] or "00")
    console.until(lambda: bool(console.refusals))
    assert state in console.refusals[0]["message"]
    assert len(mailbox.state()["sent"]) == sent
    return result


@pytest.mark.parametrize("failpoint", variants(GATED, 7))
def test_a_gated_run_survives_any_kill(attend: Attend, mailbox: Mailbox, failpoint: str) -> None:
    """What waited waits again, what had begun is unknown, what was done is told; never two sends."""
    attended = attend(failpoint=failpoint)
    token = attended.session()["token"]
    with until_it_dies():
        approval = ask_send(attended, token)
        if attended.approve(approval):
            result_at(attended, token, approval)
    dies(attended)

    state = GATED[failpoint]
    assert attended.rows() == ([] if state is None else [(state,)])
    sent = len(mailbox.state()["sent"])
    assert sent == (failpoint == "before run.completed" or state == "completed")

    attended.start()
    if state is None:
        still_waits(attended, mailbox, token, ask_send(attended, token), "")
    else:
        ((run, approval),) = attended.rows("run_id, approval_id")
        if sent:
            assert "run.started" in run_events(attended, run)
        if state in NOTES:
            still_waits(attended, mailbox, token, approval, NOTES[state])
        elif state == "executing":
            over = is_over(attended, mailbox, token, approval, "unknown", sent)
            assert over.json["failure"]["class"] == "outcome_unknown"
            assert over.json["failure"]["audit_id"] == run
            assert run_events(attended, run).count("run.started") == 1
        else:
            over = is_over(attended, mailbox, token, approval, "completed", 1)
            assert over.json["output"]["id"] == mailbox.state()["sent"][0]["id"]
    ends(attended)


def test_a_kill_with_the_request_out_ends_as_unknown(attended: Attended, mailbox: Mailbox) -> None:
    token = attended.session()["token"]
    mailbox.control(hang="send")
    approval = ask_send(attended, token)
    attended.approve(approval)

    def posts() -> int:
        return sum(request["method"] == "POST" for request in mailbox.state()["requests"])

    eventually(posts, "the request is at the service")
    attended.end(signal.SIGKILL)
    assert attended.rows() == [("executing",)]
    mailbox.control(reset=True)
    attended.start()
    is_over(attended, mailbox, token, approval, "unknown", 0)
    assert posts() == 1
    (unknown,) = aileron_json("status", home=attended.home)["unknown"]
    assert unknown["run_id"] == attended.rows("run_id")[0][0]
    assert (unknown["approval_id"], unknown["action"]) == (approval, "send-draft")
    told = aileron("status", home=attended.home).stdout
    assert "1 call ended with an unknown outcome. Check it in the console:" in told
    assert f"{approval}  send-draft, requested by test, ended at " in told
    ends(attended)


UNGATED = {"after run.started": "executing", "after run.completed": "completed"} | {
    "before run.started": "",
    "before run.completed": "executing",
}


@pytest.mark.parametrize("failpoint", variants(UNGATED, 2))
def test_an_ungated_run_survives_any_kill(attend: Attend, mailbox: Mailbox, failpoint: str) -> None:
    """Asked again with its key: it runs if it never began, else its one end is told."""
    attended = attend(failpoint=failpoint)
    token = attended.session()["token"]
    with until_it_dies():
        attended.run("get-draft", {"id": DRAFT}, token, idempotency_key="k")
    dies(attended)
    state = UNGATED[failpoint]
    assert attended.rows() == ([(state,)] if state else [])
    requests = len(mailbox.state()["requests"])
    assert requests == ("completed" in failpoint)
    attended.start()
    again = attended.run("get-draft", {"id": DRAFT}, token, idempotency_key="k")
    if state == "executing":
        ((run,),) = attended.rows("run_id")
        assert again.status == 500
        assert (again.error["class"], again.error["audit_id"]) == ("outcome_unknown", run)
        assert len(mailbox.state()["requests"]) == requests
        # Nobody was asked, so it is named by its run.
        (unknown,) = aileron_json("status", home=attended.home)["unknown"]
        assert (unknown["run_id"], unknown["approval_id"]) == (run, None)
        told = aileron("status", home=attended.home).stdout
        assert f"{run}  get-draft, requested by test" in told
    else:
        assert again.status == 200
        assert again.json["output"]["id"] == DRAFT
        assert len(mailbox.state()["requests"]) == 1
    ends(attended)


def cause(event: str, console: Attended, mailbox: Mailbox, approval: str, token: str) -> None:
    if event == "run.asked_again":
        ask_send(console, token)
    elif event == "approval.withdrawn":
        console.post(f"/v1/action-approvals/{approval}/withdraw", {}, token=token)
    elif event == "approval.denied":
        console.ready(approval)
        console.tell(deny=approval, reason="not today")
    else:
        console.ready(approval)
        if event == "recheck.differed":
            mailbox.control(change={"id": DRAFT, "bcc": "eve@example.com"})
        elif event == "recheck.conflict":
            (console.home / "actions" / "send-draft.md").unlink()
        else:
            mailbox.control(fail={"op": "send", "status": 400})
        console.approve(approval)


ENDS = [
    ("after approval.denied", "denied", "denied"),
    ("after approval.withdrawn", "withdrawn", "withdrawn"),
    ("before recheck.differed", "checking", "pending"),
    ("after recheck.conflict", "failed", "failed"),
    ("before run.failed", "executing", "unknown"),
    ("before approval.denied", "pending", "pending"),
    ("before approval.withdrawn", "pending", "pending"),
    ("after recheck.differed", "pending", "pending"),
    ("before recheck.conflict", "checking", "pending"),
    ("after run.failed", "failed", "failed"),
    ("before run.asked_again", "pending", "pending"),
    ("after run.asked_again", "pending", "pending"),
]


@pytest.mark.parametrize(("failpoint", "found", "then"), variants(ENDS, 5))
def test_every_other_end_survives_a_kill_before_and_after_it(
    attend: Attend, mailbox: Mailbox, failpoint: str, found: str, then: str
) -> None:
    attended = attend(failpoint=failpoint)
    token = attended.session()["token"]
    approval = ask_send(attended, token)
    with until_it_dies():
        cause(failpoint.partition(" ")[2], attended, mailbox, approval, token)
    dies(attended)
    assert attended.rows() == [(found,)]
    attended.start()
    attended.state(approval, then)
    result = result_at(attended, token, approval, 0).json
    assert result["status"] == ("pending_approval" if then == "pending" else then)
    if then == "denied":
        assert result["reason"] == "not today"
    assert mailbox.state()["sent"] == []
    ends(attended)


RECOVERIES = [
    ("after recheck.held", "before run.recovered"),
    ("after run.started", "after run.unknown"),
    ("after recheck.held", "after run.recovered"),
    ("after run.started", "before run.unknown"),
]


@pytest.mark.parametrize(("first", "second"), variants(RECOVERIES, 2))
def test_a_kill_during_the_recovery_changes_nothing(
    attend: Attend, mailbox: Mailbox, first: str, second: str
) -> None:
    attended = attend(failpoint=first)
    token = attended.session()["token"]
    approval = ask_send(attended, token)
    attended.approve(approval)
    dies(attended)
    dies_at_its_start(attended, second)
    if first == "after run.started":
        is_over(attended, mailbox, token, approval, "unknown", 0)
    else:
        still_waits(attended, mailbox, token, approval, NOTES["approved"])
    ends(attended)


# A run that halts half-way: no step twice, none without a yes

HALTED = {
    "before run.halted": "executing",
    "after approval.approved#2": "checking",
    "before run.started#2": "approved",
    "after run.started#2": "executing",
    "after approval.denied": "denied",
    "after run.halted": "pending",
    "before approval.approved#2": "pending",
    "before recheck.held#2": "checking",
    "after recheck.held#2": "approved",
    "before run.completed": "executing",
    "after run.completed": "completed",
    "before run.delivered": "completed",
    "before approval.denied": "pending",
}
"""Failpoint -> the state in which the database has to be found after it."""
ASKED = {"find": "done", "send": "asked"}


@pytest.fixture
def chain(home: Path) -> None:
    """An action of two steps, after the first of which a person is asked again."""
    text = (home / "actions" / "send-draft.md").read_text(encoding="utf-8")
    head, _, rest = text.partition("[[execute]]")
    block, _, tail = rest.partition("[approval]")
    connector = next(line for line in block.splitlines() if line.startswith("connector"))
    steps = (
        f'[[execute]]\nid = "find"\n{connector}\nop = "list_drafts"\nidempotent = true\n'
        "inputs = { max_results = 1 }\n\n"
        f'[[execute]]\nid = "send"\n{connector}\nop = "send_draft"\nidempotent = false\n'
        'inputs = { draft_id = "${find.drafts.0.id}" }\n\n'
    )
    head = head.replace('name = "send-draft"', 'name = "chain"', 1)
    head = head.replace('["send_draft"]', '["list_drafts", "send_draft"]')
    (home / "actions" / "chain.md").write_text(f"{head}{steps}[approval]{tail}", encoding="utf-8")


def ask_for_chain(console: Attended, token: str) -> str:
    approval: str = console.run("chain", {"draft_id": DRAFT}, token).json["approval_id"]
    console.approve(approval)
    return approval


def is_asked_again(console: Attended, approval: str) -> bool:
    """Wait for the second question; False if the process ended first."""

    def asked() -> bool:
        view = console.views.get(approval, {})
        return view.get("state") == "pending" and view["steps"] == ASKED and bool(view["digest"])

    return console.until(asked)


def found_draft(mailbox: Mailbox) -> int:
    return sum(each["path"].endswith("/drafts") for each in mailbox.state()["requests"])


def goes_on(console: Attended, mailbox: Mailbox, token: str, approval: str) -> None:
    """The next life asks the second question again; a yes sends once and finds nothing anew."""
    assert is_asked_again(console, approval)
    assert "Nothing ran;" not in console.views[approval]["note"]
    waiting = result_at(console, token, approval, 0).json
    assert (waiting["status"], waiting["completed_steps"]) == ("pending_approval", ["find"])
    assert "steps" not in waiting
    assert mailbox.state()["sent"] == []
    console.approve(approval)
    done = result_at(console, token, approval).json
    assert done["status"] == "completed"
    assert list(done["steps"]) == ["find", "send"]
    assert len(mailbox.state()["sent"]) == 1
    assert found_draft(mailbox) == 1


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize("failpoint", variants(HALTED, 5))
def test_a_halted_run_survives_any_kill(attend: Attend, mailbox: Mailbox, failpoint: str) -> None:
    """The first step's yes is used up; the second question waits, is unknown or over, never undone."""
    console = attend(failpoint=failpoint)
    token = console.session()["token"]
    approval = ask_for_chain(console, token)
    if is_asked_again(console, approval):
        if "denied" in failpoint:
            console.tell(deny=approval, reason="not this one")
        else:
            console.approve(approval)
        with until_it_dies():
            result_at(console, token, approval)
    dies(console)

    state = HALTED[failpoint]
    ((run, stored, progress),) = console.rows("run_id, state, progress")
    assert stored == state
    sent = len(mailbox.state()["sent"])
    assert sent == (failpoint == "before run.completed" or state == "completed")
    assert (progress is None) == (failpoint == "before run.halted" or state == "completed")

    console.start()
    if state in ("pending", "checking", "approved"):
        goes_on(console, mailbox, token, approval)
        assert run_events(console, run).count("run.completed") == 1
    elif state == "executing":
        console.state(approval, "unknown")
        over = result_at(console, token, approval, 0).json
        assert over["status"] == "unknown"
        done = over["failure"]["details"].get("completed_steps")
        assert done == (None if failpoint == "before run.halted" else ["find"])
        assert "output" not in over
    else:
        over = result_at(console, token, approval, 0).json
        assert over["status"] == state
        assert state == "completed" or over["completed_steps"] == ["find"]
    assert len(mailbox.state()["sent"]) == max(sent, state in ("pending", "checking", "approved"))
    assert found_draft(mailbox) == 1
    ends(console)


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize("second", variants(["before run.recovered", "after run.recovered"]))
def test_a_kill_while_a_halted_run_is_taken_up_changes_nothing(
    attend: Attend, mailbox: Mailbox, second: str
) -> None:
    console = attend(failpoint="after recheck.held#2")
    token = console.session()["token"]
    approval = ask_for_chain(console, token)
    assert is_asked_again(console, approval)
    console.approve(approval)
    dies(console)
    dies_at_its_start(console, second)
    goes_on(console, mailbox, token, approval)
    ends(console)


@pytest.mark.usefixtures("chain")
def test_a_kill_during_the_second_question_voids_it(attended: Attended, mailbox: Mailbox) -> None:
    """A yes to the earlier life's digest is none: it has a nonce of that life."""
    token = attended.session()["token"]
    approval = ask_for_chain(attended, token)
    assert is_asked_again(attended, approval)
    digest = attended.views[approval]["digest"]
    attended.end(signal.SIGKILL)
    ends(attended)
    attended.start()
    assert is_asked_again(attended, approval)
    assert attended.views[approval]["digest"] != digest
    attended.tell(approve=approval, digest=digest)
    attended.until(lambda: bool(attended.refusals))
    assert "changed while you answered" in attended.refusals[0]["message"]
    goes_on(attended, mailbox, token, approval)
    ends(attended)
