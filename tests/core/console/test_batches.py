"""One key for calls that wait in one row: what each of them is in the core."""

from dataclasses import replace

from aileron_core.console_port.events import ApprovalUpdated
from aileron_core.console_port.intents import Approve
from tests.support.core_harness import Core, Mailbox
from tests.support.screens.play import Play
from tests.support.screens.states import snapshot_of

DRAFTS = ("r-8842190447", "r-8842190312", "r-8842189771", "r-8842188204")


async def test_each_call_of_a_batch_is_checked_again_run_and_recorded_alone(
    core: Core, mailbox: Mailbox
) -> None:
    views = [await core.ask(draft) for draft in DRAFTS]
    left_out, changed, *others = views
    play = Play(snapshot_of(*views), (120, 60))
    play.shows("4 calls  ")
    play.read_all()
    mailbox.control(change={"id": DRAFTS[1], "subject": "Another subject"})
    play.press_alone("a")
    answers = play.asked(Approve)
    assert [each.digest for each in answers] == [view.digest for view in views[1:]]
    for each in answers:
        await core.do(each)
    back = await core.back(changed)
    ended = [await core.ended(view) for view in others]
    assert [view.state for view in ended] == ["completed", "completed"]
    assert {each["draft_id"] for each in mailbox.state()["sent"]} == {*DRAFTS[2:]}
    approved = await core.records("approval.approved")
    assert [each["digest"] for each in approved] == [view.digest for view in views[1:]]
    for view in (*ended, back):
        checking = replace(view, state="checking", drift=None)
        play.port.tell(ApprovalUpdated(view=checking), ApprovalUpdated(view=view))
    play.shows("2 calls together ▲ 1 call changed and waits.")
    play.go("u", "▲ changed")
    waiting = [each.key for each in play.model.queue.items if each.is_waiting]
    assert waiting == [left_out.approval_id, changed.approval_id]
