"""Views 2 to 6: what their rows, heads and pages say, and which row keeps the cursor."""

from dataclasses import replace

import pytest

from aileron_core.console_port import events, view_models
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.session_terms import SessionTerms
from aileron_core.console_port.view_models import CallView, DecidedScreenView
from aileron_core.containment.detection import Containment
from aileron_tui.draw.context import Section, requester_section
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.draw.times import clock_seconds
from aileron_tui.input.commands import View
from aileron_tui.state.tables.activity import ActivityTable
from aileron_tui.state.tables.sessions import SessionsTable
from tests.screen.bound_accounts import ANA, CHANGED, ENDED, accounts
from tests.support.screens.drawn import Drawn
from tests.support.screens.home import library_items, not_accepted, problems, record_views, sessions
from tests.support.screens.states import (
    NOW,
    denied,
    mail,
    record,
    recorded_event,
    short,
    snapshot_of,
)

CODEX, CLAUDE, RELAY = sessions(NOW)
TRAFFIC = view_models.TrafficView(
    requests=3, in_flight=0, bytes_up=10, bytes_down=20, last_status=503,
    last_route="POST /v1/responses", gateway_errors=2,
)  # fmt: skip
HOME = snapshot_of(held=(not_accepted(),), library=library_items(NOW), problems=problems())
LONG = snapshot_of(short(), records=tuple(record(seq) for seq in range(1, 101)))
SHOWN = DecidedScreenView(at=NOW - 600, approval=short(2))
SEALED = "What was shown is sealed, and its key is locked. Unlock the vault to read it."
CONTAINED = "What the call contained is sealed. Unlock the vault to read it."
RESULT = (FieldView(label="Result", value="\x1b[2J\u202eevil\nOUTCOME  denied\n" + "x" * 300),)


def at_work(*found: view_models.SessionView, opened: bool = False) -> Drawn:
    state = snapshot_of(mail(), sessions=found or (CODEX, CLAUDE, RELAY))
    return Drawn(state).go("sessions", "codex", opened=opened)


def test_each_session_says_whether_it_is_there_and_whether_something_contains_it() -> None:
    drawn = at_work()
    assert "3 sessions open, 2 connected · ▲ 2 not contained" in drawn.list_texts
    codex, claude, relay = drawn.rows
    assert all(each in codex for each in ("codex", "● connected", "yes"))
    assert all(each in claude for each in ("claude", "▲ no"))
    assert all(each in relay for each in ("┊ WILL HAPPEN", "○"))


@pytest.mark.parametrize(
    ("containment", "count", "short_", "whole", "follows"),
    [
        ("claimed", "1 unverified", "unverified", "containment unverified",
         "could not confirm that all its processes"),
        ("other_user", "2 not contained", "other user", "runs as another user",
         "can do whatever that account can"),
    ],
)  # fmt: skip
def test_what_is_only_said_or_another_users_is_not_drawn_as_contained(
    containment: Containment, count: str, short_: str, whole: str, follows: str
) -> None:
    drawn = at_work(replace(CODEX, containment=containment), CLAUDE, RELAY)
    assert count in drawn.list_texts
    assert short_ in drawn.rows[0]
    drawn.go("sessions", "codex", opened=True)
    above, below = drawn.item.split("SEEN")
    assert whole in above
    assert short_ in below
    assert follows in drawn.words


def test_an_opened_session_shows_the_kernels_facts_and_below_them_claims_behind_their_bar() -> None:
    lines = at_work(opened=True).document
    seen, claimed = (next(i for i, x in enumerate(lines) if w in x) for w in ("SEEN", "CLAIMED"))
    above, below = "\n".join(lines[seen:claimed]), "\n".join(lines[claimed:])
    for fact in ("48112 codex ← zsh ← tmux", "/usr/bin/codex", "/home/ana/work/q3"):
        assert fact in above
    assert "┊" not in above
    assert any("client" in x and "┊ codex-mcp-client" in x for x in lines[claimed:])
    assert "q3-report" in below


def test_the_name_that_an_agent_gave_its_session_is_no_fact() -> None:
    """It is a claim, which the list of sessions shows as one: the kernel confirms nothing of it."""

    def facts(section: Section) -> list[str]:
        return [plain_text(each.label) for each in section.details if not each.claim]

    named = {"session_label": "approved by root"}
    assert "session" in facts(requester_section(mail(**named)))
    assert "session" not in facts(requester_section(mail(self_opened=True, **named)))


def test_a_session_whose_model_requests_wait_for_the_vault_says_so() -> None:
    waits = replace(CODEX, traffic=TRAFFIC, waits_for_vault=True)
    drawn = at_work(waits, CLAUDE, RELAY)
    assert "▲ 1 waits for the vault" in drawn.list_texts
    drawn.go("sessions", "codex", opened=True)
    assert "model requests are refused until it is unlocked" in drawn.words
    drawn.tell(events.SessionsUpdated(sessions=(replace(waits, waits_for_vault=False), CLAUDE)))
    assert "refused until it is unlocked" not in drawn.words


def test_a_host_that_cannot_be_allowed_is_shown_with_the_reason_and_marked() -> None:
    leads = "it leads to 169.254.169.254, which is link-local"
    name = view_models.RefusedHost("a\x1b[31m\u202eb:443", "it is not a host name")
    hosts = (name, view_models.RefusedHost("meta.example:443", leads))
    allowed = ("evil-registry.example:443",)
    asks = replace(CODEX, hosts=view_models.HostsView(refused=hosts, allowed=allowed, further=1200))
    drawn = at_work(asks)
    assert "asks for" not in drawn.list_texts
    drawn.go("sessions", "codex", opened=True)
    why = ("it is not a host name", "which is link-local", "by you, until the session ends")
    for text in (*why, "1,200 more attempts", "a‹ESC›[31m‹RLO›b:443"):
        assert text in drawn.words
    assert "allow" not in drawn.keys


def test_a_session_that_went_around_the_gate_is_marked_with_time_and_tool() -> None:
    went = ("apply_patch", NOW - 90), ("exec_command", NOW - 61)
    calls = view_models.ToolCallsView(
        by_name=(("exec_command", 2), ("mcp__aileron.Read", 1_200)),
        others=3,
        unread=(("compressed", 2), ("websocket", 1)),
        went_around=tuple(view_models.WentAroundView(*each) for each in went),
    )
    around = replace(CODEX, traffic=TRAFFIC, tool_calls=calls)
    at = clock_seconds(NOW - 61)
    says = f"▲ {at} the model called exec_command, which does not go through the gate"
    drawn = at_work(around, CLAUDE, RELAY)
    assert "▲ 1 went around the gate" in drawn.list_texts
    assert says in drawn.list_texts, "the newest"
    assert "● ▲ went around" in drawn.rows[0]
    drawn.go("sessions", "codex", opened=True)
    seen = (
        "AROUND THE GATE",
        "the agent may have refused it",
        "the model called apply_patch",
        says,
    )
    made = ("exec_command 2 · mcp__aileron.Read 1,200 · 3 by other names", "2 answers: compressed")
    unread = ("1 answer: over a WebSocket", "only the names of called tools are read")
    for text in (*seen, *made, *unread):
        assert text in drawn.words
    terms = SessionTerms(augment=True)
    augmented = at_work(replace(around, terms=terms, tool_calls=None), opened=True)
    assert "requests and answers are read" in augmented.words
    assert "counted" not in augmented.words


def test_a_server_of_the_agents_own_that_stays_on_is_on_the_sessions_page() -> None:
    terms = SessionTerms(own_servers=("fs (.mcp.json): it is\nAileron's fs",))
    drawn = at_work(replace(CODEX, terms=terms), opened=True)
    says = "ITS OWN MCP SERVERS that Aileron has too; what their tools do is not gated"
    assert says in drawn.words
    assert "Starts fs (.mcp.json): it is‹LF›Aileron's fs" in drawn.words
    assert "ITS OWN MCP SERVERS" not in at_work(opened=True).words


def test_two_folders_are_told_apart_by_their_ends() -> None:
    long = "/home/ana/work/with/a/long/way/to/it/"
    views = [replace(each, process=None, cwd=f"{long}{each.agent}") for each in (CODEX, CLAUDE)]
    table = SessionsTable(views, (), NOW)
    rows = [plain_text(table.row(n, 80, NOW, selected=False)) for n in range(2)]
    assert [row.rpartition("/")[2] for row in rows] == ["codex", "claude"]
    assert all("…" in row and len(row) < 80 for row in rows)


def test_a_row_that_comes_in_above_does_not_take_the_cursor() -> None:
    drawn = Drawn(HOME).go("library")
    before = drawn.model.library.key
    new = replace(library_items(NOW)[0], name="a-new-one", digest="ee" * 32)
    held = HOME.not_accepted
    items = (new, *HOME.library)
    drawn.tell(
        events.LibraryUpdated(not_accepted=held, problems=(), actions_ready=3, library=items)
    )
    assert any("a-new-one" in row for row in drawn.rows)
    assert drawn.model.library.key == before


def test_a_row_keeps_its_place_while_its_call_goes_on_and_f_follows_the_newest_again() -> None:
    drawn = Drawn(snapshot_of(short(), records=record_views(NOW))).go("activity")
    table = drawn.model.activity
    assert "f follow" not in drawn.keys
    drawn.tell(recorded_event(101, "run.requested", run_id="run-a"))
    assert "● waiting" in drawn.rows[table.index]
    table.select(1)
    below = table.key
    assert "f follow" in drawn.keys
    drawn.tell(recorded_event(102, "run.requested", run_id="run-b"))
    assert "1 new above; f jumps to the newest." in drawn.status
    drawn.tell(recorded_event(103, "run.completed", run_id="run-a"))
    assert "● waiting" in drawn.rows[0]
    assert "✓ done" in drawn.rows[1]
    assert table.key == below
    table.follow(NOW)
    assert table.index == 0
    assert "Newest first." in drawn.status
    assert "f follow" not in drawn.keys


def test_an_opened_call_tells_its_whole_story_and_stays_while_others_come_in() -> None:
    drawn = Drawn(snapshot_of(short(), records=record_views(NOW)))
    drawn.go("activity", "? unknown", opened=True)
    story = ("HISTORY", "waits for a person", "approved send-draft", "outcome unknown")
    assert all(each in drawn.words for each in story)
    drawn.model.activity.stop_following()
    drawn.tell(recorded_event(101, "run.requested", run_id="run-a"))
    assert "outcome unknown" in drawn.words
    accepted = record(1, "library.accepted", run_id=None, actor="person", agent="", action=None)
    drawn = Drawn(snapshot_of(records=(accepted,)))
    drawn.model.activity.toggle_lifecycle(NOW)
    drawn.go("activity", "library.accepted", opened=True)
    assert "by you" in drawn.words


def test_the_summary_of_the_selected_record_is_read_whole_or_visibly_cut() -> None:
    action = "an-action-with-a-name-that-is-longer-than-its-column"
    summary = "Nothing ran: the action file changed on disk after it was shown for approval."

    def detail(text: str) -> list[str]:
        failed = record(7, "run.failed", run_id=None, action=action, summary=text)
        lines = ActivityTable((failed,), NOW).detail(80, NOW)
        assert all(cell_width(row) < 80 for row in lines)
        return [plain_text(row) for row in lines]

    on_screen = " ".join(" ".join(detail(summary)).split())
    assert summary in on_screen
    assert f"action {action}" in on_screen
    rows = detail("word " * 200)
    assert len(rows) == 3
    assert rows[-1].endswith("…")


def stored(body: str) -> Drawn:
    drawn = Drawn(LONG).go("audit", opened=True)
    drawn.model.audit.show_record()
    return drawn.tell(events.RecordRead(seq=100, body=body, hash="ab" * 32, prev="cd" * 32))


def test_a_record_stands_whole_as_it_is_stored_and_no_name_of_a_field_is_broken() -> None:
    lines = stored('{"action":"send","connectors":["mail"],"Approved by the person":"no"}').document
    at = next(number for number, each in enumerate(lines) if each.startswith(" connectors"))
    assert lines[at - 1].startswith(" action ")
    assert any(each.strip().startswith("Approved") for each in lines[at:])
    drawn = stored('{"event":"run.started","note":"\x1b[2J\u202eevil [b]x[/]","seq":100}')
    for text in ("AS STORED", "abab", "cdcd", "‹ESC›[2J‹RLO›evil [b]x[/]"):
        assert text in drawn.item
    assert "\x1b" not in drawn.item
    assert "u code points" in drawn.keys
    drawn.model.unfold()
    assert "‹U+202E RLO›" in drawn.item


def test_what_a_verification_found_names_each_problem_and_a_gap_stands_where_it_is() -> None:
    gap = replace(LONG, records=tuple(each for each in LONG.records if each.seq != 3))
    drawn = Drawn(gap).go("audit")
    drawn.model.audit.set_viewport(70, 30)
    drawn.read(drawn.model.audit.next_read(NOW))
    assert any("✗ no such record" in row for row in drawn.rows)
    assert "this is record 2" in drawn.rows[-2]
    problems_ = ("Record 7 was changed after it was written.", "Record 9 is missing.")
    drawn.tell(events.AuditVerified(records=100, problems=problems_, at=NOW, seconds=1.25))
    for text in ("✗ 2 problems", *problems_):
        assert text in drawn.list_texts


@pytest.mark.parametrize(
    ("call", "says", "absent"),
    [
        (CallView(approval=denied(2), gated=True),
         ("Not kept: what was shown stays only in the memory", "OUTCOME denied at 13:53:40",
          "not to the board", "draft_id r-88"), ("not live",)),
        (CallView(approval=denied(2), gated=True, screens=(
            replace(SHOWN, at=NOW - 900, approval=short(2, title="Earlier")), SHOWN)),
         ("OUTCOME denied at 13:53:40", "priya.nair@northwind.example"), ("Not kept", "Earlier")),
        (CallView(approval=denied(2), gated=True, screens=(
            DecidedScreenView(at=NOW - 600, approval=None, problem=SEALED),)),
         ("its key is locked", "not to the board"), ("not live", "Not kept")),
        (CallView(approval=denied(2, arguments=(), forgotten=True), gated=True),
         ("CODEX SENT no longer kept",), ()),
        (CallView(approval=denied(2, arguments=(), sealed=CONTAINED), gated=True),
         (CONTAINED, "CODEX SENT sealed"), ("no longer kept",)),
        (CallView(approval=denied(2, state="completed", reason=""), gated=True, edited=True),
         ("▲ Another program changed this call in the database",), ()),
        (CallView(approval=denied(2, state="completed", reason=""), gated=True, result=RESULT),
         ("‹ESC›[2J‹RLO›evil",), ("\x1b",)),
    ],
    ids=["after a restart", "kept sealed", "locked", "forgotten", "sealed", "edited", "hostile"],
)  # fmt: skip
def test_an_opened_call_says_what_is_kept_of_it_and_why_the_rest_is_not(
    call: CallView, says: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    drawn = Drawn(snapshot_of(short(), call.approval))
    drawn.model.decided.enter()
    drawn.model.turn_to_call()
    drawn.model.opened_call.next_read()
    drawn.tell(events.CallRead(run_id=call.approval.run_id, call=call))
    assert all(each in drawn.words for each in says), drawn.words
    assert not any(each in drawn.item for each in absent)
    for line in drawn.document:
        at = line.find("OUTCOME  denied")
        assert at < 3 or "┃" in line[:at]
    if call.screens:
        assert (drawn.model.replayed is not None) == (call.screens[-1] is SHOWN)


def test_each_account_is_listed_with_its_status_and_why() -> None:
    vault = events.VaultStatus(state="unlocked", entries=2)
    drawn = Drawn(snapshot_of(vault=vault, accounts=accounts(ANA, CHANGED, ENDED))).go(
        "accounts", "work"
    )
    states = ("3 accounts, 2 cannot be used", "✓ active", "▲ cannot be used", "▲ login ended")
    facts = ("ana@example.com", "2 h", "never", "○ no account")  # drive has none that it could use
    for each in (*states, *facts):
        assert each in drawn.list_texts, each
    drawn.go("accounts", "work", opened=True)
    for each in ("ACCOUNT", "Remembered for", "send-mail"):
        assert each in drawn.words
    assert "\u202e" not in drawn.item


def test_what_stands_above_every_view() -> None:
    route = "gmail.googleapis.com:443 -> 127.0.0.1:9001"
    damage = "vault.json is damaged."
    vault = events.VaultStatus(state="unlocked", entries=2, problem=damage, unattended=True)
    drawn = Drawn(snapshot_of(short(), vault=vault))
    assert damage in drawn.banner
    assert "not by your key" in drawn.banner
    drawn = Drawn(
        snapshot_of(short(), routes=(route,), accepted_installed=True, inspects_models=True)
    )
    first, second, third = drawn.banner.splitlines()
    assert "(--accept-installed)" in first
    assert "▲ Test route: gmail.googleapis.com:443 is answered by 127.0.0.1:9001." in second
    assert "in models' answers which tools they call (gateway.inspect)" in third
    drawn.tell(events.StorageHealth(writable=False, message="The disk is full."))
    assert "NOTHING CAN RUN: the audit cannot be written. The disk is full." in drawn.banner


@pytest.mark.parametrize(
    ("view", "text", "expected"),
    [
        ("activity", "list-drafts", "2 of 8 match list-drafts"),
        ("library", "state:ready kind:connector", "1 of 5 match"),
        ("sessions", "folder:aileron", "1 of 3 match folder:aileron"),
    ],
)
def test_every_list_has_a_filter_of_its_own(view: View, text: str, expected: str) -> None:
    drawn = Drawn(snapshot_of(short(), library=library_items(NOW), sessions=sessions(NOW))).go(view)
    drawn.model.set_filter(text, NOW)
    assert expected in drawn.status
    drawn.model.set_filter("", NOW)
    assert "match" not in drawn.status
