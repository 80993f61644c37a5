"""A console killed at every step of a run that halts half-way: no step twice, none without a yes."""

import signal
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.test_crash import audit_holds, dies, run_events, until_it_dies
from tests.support.server_harness import DRAFT, Answer, Attend, Attended
from tests.support.variants import variants

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


@pytest.fixture(autouse=True)
def furnished_with_a_chain(home: Path) -> None:
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
    answer = console.run("chain", {"draft_id": DRAFT}, token)
    assert answer.status == 202
    return answer.json["approval_id"]


def is_asked_again(console: Attended, approval: str) -> bool:
    """Wait for the second question; False if the process ended first."""
    return console.until(
        lambda: (
            console.views.get(approval, {}).get("state") == "pending"
            and console.views[approval]["steps"] == ASKED
            and bool(console.views[approval]["digest"])
        )
    )


def found_draft(mailbox: Mailbox) -> int:
    return sum(each["path"].endswith("/drafts") for each in mailbox.state()["requests"])


def result_at(console: Attended, token: str, approval: str, wait: int = 20) -> Answer:
    return console.get(f"/v1/action-approvals/{approval}/result?wait={wait}", token=token)


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


@pytest.mark.parametrize("failpoint", variants(HALTED, 5))
def test_a_halted_run_survives_a_kill_at_every_step(
    attend: Attend, mailbox: Mailbox, failpoint: str
) -> None:
    """The first step's yes is used up; the second question waits, is unknown or over, never undone."""
    console = attend(failpoint=failpoint)
    token = console.session()["token"]
    approval = ask_for_chain(console, token)
    console.approve(approval)
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
    audit_holds(console)

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
    console.end()
    audit_holds(console)


@pytest.mark.parametrize("second", variants(["before run.recovered", "after run.recovered"]))
def test_a_kill_while_a_halted_run_is_taken_up_changes_nothing(
    attend: Attend, mailbox: Mailbox, second: str
) -> None:
    console = attend(failpoint="after recheck.held#2")
    token = console.session()["token"]
    approval = ask_for_chain(console, token)
    console.approve(approval)
    assert is_asked_again(console, approval)
    console.approve(approval)
    dies(console)
    with pytest.raises(AssertionError, match="did not start"):
        console.start("--failpoint", second)
    assert console.process.wait(60) == -signal.SIGKILL
    audit_holds(console)
    console.end()
    console.start()
    goes_on(console, mailbox, token, approval)
    console.end()
    audit_holds(console)


def test_a_kill_while_the_second_question_is_out_asks_it_again_and_voids_the_old_one(
    attended: Attended, mailbox: Mailbox
) -> None:
    """A yes to the earlier life's digest is none: it has a nonce of that life."""
    token = attended.session()["token"]
    approval = ask_for_chain(attended, token)
    attended.approve(approval)
    assert is_asked_again(attended, approval)
    digest = attended.views[approval]["digest"]
    attended.end(signal.SIGKILL)
    audit_holds(attended)
    attended.start()
    assert is_asked_again(attended, approval)
    assert attended.views[approval]["digest"] != digest
    attended.tell(approve=approval, digest=digest)
    attended.until(lambda: bool(attended.refusals))
    assert "changed while you answered" in attended.refusals[0]["message"]
    goes_on(attended, mailbox, token, approval)
    attended.end()
    audit_holds(attended)
