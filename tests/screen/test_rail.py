"""Beside the item: who asks, what its session did before, how equal calls were answered."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.console_port.events import Recorded
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import ApprovalView, ReachView, RecordView
from aileron_tui.draw import context
from aileron_tui.draw.text import cell_width, plain_text
from tests.support.screens.home import process
from tests.support.screens.play import rested
from tests.support.screens.states import NOW, mail, record, short, snapshot_of

HOSTS = ("git\u200bhub.com:443", "b:1", "c:1")
PROCESS = replace(process(NOW), parents=process(NOW).parents[:2])
TEXT = st.text(
    alphabet=st.characters(exclude_categories=()) | st.sampled_from("漢\x1b\u202e┃\n "), max_size=90
)


@pytest.mark.parametrize(
    ("reach", "shown"),
    [
        (ReachView(network="all"), "reaches   the whole network"),
        (ReachView(network="offline"), "reaches   no network (offline)"),
        (ReachView(network="hosts", hosts=HOSTS), "reaches   git‹ZWSP›hub.com:443 and 2 more"),
        (ReachView(network="hosts"), ""),
        (ReachView(), ""),
    ],
)
def test_it_says_what_the_session_may_reach(reach: ReachView, shown: str) -> None:
    lines = rail_text(context.requester_section(mail(reach=reach)))
    found = [each for each in lines if each.startswith("reaches")]
    assert found == ([shown] if shown else [])
    uncontained = context.requester_section(mail(reach=reach, containment="none"))
    assert not [each for each in rail_text(uncontained) if each.startswith("reaches")]


def of_run(seq: int, event: str, run: str, **changes: object) -> RecordView:
    known = {"at": NOW - 1000 + seq, "run_id": run, "session_id": mail().session_id}
    return record(seq, event, **{**known, **changes})


def rail_text(section: context.Section) -> list[str]:
    lines = context.rail_lines((section,), 50, 100)
    return [plain_text(line).strip() for line in lines if line]


def test_what_the_kernel_saw_stands_first_and_what_the_agent_says_last() -> None:
    view = mail(
        process=PROCESS, containment="none", times_asked=3, stopped_waiting_at=NOW - 60,
        claims=(FieldView(label="client", value="codex-mcp-client 0.61"),),
    )  # fmt: skip
    assert rail_text(context.requester_section(view)) == [
        "WHO ASKS  confirmed by the kernel",
        "agent     codex",
        "process   48112 codex ← zsh ← tmux: server",
        "program   /usr/bin/codex",
        "session   q3-report",
        "folder    /home/ana/work/q3",
        "started   13:31",
        "contained no: it can do what your account can",
        "asked     3 times",
        "waits     stopped waiting at 14:01",
        "┊ client  codex-mcp-client 0.61",
    ]
    # What a launcher or the agent itself says is called that.
    assert rail_text(context.requester_section(mail()))[0] == "WHO ASKS  according to its launcher"
    lines = rail_text(context.requester_section(mail(self_opened=True, requester_gone=True)))
    assert lines[0] == "WHO ASKS  the agent's words; not checked"
    assert {"agent     codex", "waits     the agent's session has ended"} <= {*lines}
    seen = rail_text(context.requester_section(mail(self_opened=True, process=PROCESS)))
    assert seen[:2] == ["WHO ASKS  confirmed by the kernel", "agent     codex  not checked"]


def test_the_last_runs_of_its_session_are_reported_as_far_as_they_came() -> None:
    view = mail()
    records = [
        of_run(1, "run.requested", "run-1"),
        of_run(2, "run.completed", "run-1", action="get-draft"),
        of_run(3, "run.delivered", "run-1"),
        of_run(4, "run.requested", "run-2"),
        of_run(5, "approval.denied", "run-2"),
        of_run(6, "run.started", "run-3", action="list-drafts"),
        of_run(7, "run.failed", "run-3", action="list-drafts"),
        of_run(8, "run.requested", view.run_id),
        of_run(9, "run.completed", "run-9", session_id="ses-other"),
        of_run(10, "session.opened", "", run_id=None),
        of_run(11, "run.requested", "run-4", action=None),
    ]
    assert rail_text(context.recent_runs_section(records, view)) == [
        "EARLIER CALLS  of this session, newest first",
        "● 13:45:31  run.requested",
        "✗ 13:45:27  list-drafts",
        "✗ 13:45:25  send-draft",
        "✓ 13:45:22  get-draft",
    ]
    many = [of_run(n, "run.completed", f"run-{n}") for n in range(1, 40)]
    assert len(context.recent_runs_section(many, view).details) == context.MAX_RUNS
    assert rail_text(context.recent_runs_section([], view)) == [
        "EARLIER CALLS  none in this session"
    ]


def decided(number: int, state: str, **changes: object) -> ApprovalView:
    given = {"state": state, "decided_at": NOW - 100 + number, "requested_at": NOW - 100, **changes}
    return mail(number, **given)


def test_equal_calls_are_summarized_by_how_they_were_answered() -> None:
    before = [
        decided(40, "denied", reason="wrong list"),
        decided(39, "denied", reason="an older reason"),
        decided(30, "completed"),
        decided(10, "failed"),
        decided(14, "unknown"),
        decided(5, "expired", decided_at=None),
        decided(6, "completed", action="other"),
    ]
    assert rail_text(context.equal_calls_section(before, mail())) == [
        "SAME ACTION  in the last 200 decisions",
        "✓ 3 approved, median wait 14 s",
        '✗ 2 denied: "wrong list"',
        "– 1 expired",
    ]
    assert rail_text(context.equal_calls_section([decided(1, "completed")], mail(1))) == [
        "SAME ACTION  none in the last 200 decisions"
    ]


@given(TEXT, st.integers(30, 60), st.integers(1, 40))
def test_with_any_name_the_rail_keeps_its_columns(text: str, width: int, height: int) -> None:
    seen = replace(PROCESS, executable=text, cwd=text, parents=((1, text),))
    claims = (FieldView(label=text, value=text),)
    view = mail(agent=text, session_label=text, process=seen, claims=claims)
    recent = context.recent_runs_section([of_run(1, "run.completed", "run-1", action=text)], view)
    equal = context.equal_calls_section([decided(2, "denied", reason=text)], view)
    sections = (context.requester_section(view), recent, equal)
    lines = context.rail_lines(sections, width, height)
    assert len(lines) <= height
    for line in lines:
        assert cell_width(line) <= width
        assert not any(char in plain_text(line) for char in "\x1b\u202e\n")
        assert not line or not line[0].foreign
    whole = context.rail_lines(sections, width, 10_000)
    if len(whole) > height:
        assert plain_text(lines[-1]).strip() == f"▾ {len(whole) - height + 1} more lines"


@pytest.mark.parametrize(("width", "shown_there"), [(181, False), (182, True)])
def test_a_rail_is_where_the_document_keeps_80_columns(width: int, *, shown_there: bool) -> None:
    """Below that the document has the room, and the context at its end. What comes there leaves the key armed:
    it is not what a person decides by.
    """
    play = rested(snapshot_of(short(1, process=PROCESS), records=()), size=(width, 40))
    assert play.document.width >= 80
    assert ("WHO ASKS" in play.lines[2][-50:]) is shown_there
    fresh = of_run(99, "run.completed", "run-99", action="get-draft")
    play.port.tell(Recorded(record=fresh, head_words=("olive", "pixel")))
    play.shows("get-draft")
    assert play.armed
