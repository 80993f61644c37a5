"""What an item that waits says in its row, its head, its document and the status line, and what the bars say of it."""

from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port import view_models
from aileron_core.console_port.events import ApprovalUpdated, LibraryUpdated, VaultStatus
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.file_views import AcceptedBeforeView, FileContentView
from aileron_core.console_port.intents import Accept
from aileron_core.errors import Problem
from aileron_tui.draw.bars import top_bar
from aileron_tui.draw.blocks import GUTTER, lay_out
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.file_page import file_blocks
from aileron_tui.draw.formats import hidden_characters_of
from aileron_tui.draw.header import approval_head
from aileron_tui.draw.text import plain_text
from aileron_tui.draw.times import clock_seconds
from aileron_tui.items import Item
from aileron_tui.pages.command import availability
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.printed_pages import item_page
from tests.support.screens.calls import approval, drifted, fixtures, later_steps
from tests.support.screens.drawn import Drawn
from tests.support.screens.home import library_items, not_accepted
from tests.support.screens.states import (
    FQN,
    HOME,
    NOW,
    WORK,
    body,
    held_call,
    mail,
    need,
    short,
    snapshot_of,
)

LAYOUTS = pytest.mark.parametrize("compact", [False, True])
LOCKED = VaultStatus(state="locked", entries=2)
SEND_DRAFT = replace(not_accepted(), name="send-draft", change="changed", connector="gmail")
UNBOUND = held_call(need("unbound", problem="it has changed since"))
MANY = tuple(f"athena.{number}.example:443" for number in range(34))
HOST = "xn--pypal-4ve.com:443"
DESCRIPTION = "xn--pypal-4ve.com is pаypal.com, not paypal.com"


@LAYOUTS
@pytest.mark.parametrize(
    ("view", "says"),
    [
        (held_call(need("locked", WORK)), ("U unlocks the vault", "WAITS FOR THE VAULT")),
        (UNBOUND, (f"setup {FQN}", "it has changed since", "WAITS FOR AN ACCOUNT")),
        (held_call(need("choice", WORK, HOME)), ("C picks one",)),
    ],
    ids=["locked", "unbound", "choice"],
)
def test_a_call_that_waits_says_for_what_and_what_to_do(
    view: view_models.ApprovalView, says: tuple[str, ...], compact: bool
) -> None:
    drawn = Drawn(snapshot_of(held_call(need("unbound")), vault=LOCKED), compact=compact)
    drawn.tell(ApprovalUpdated(view=view))
    assert all(each in drawn.words for each in says)
    assert not availability(DEFAULT_REGISTRY.command("approve"), drawn.situation).shown
    assert view.account_need is not None
    for account in view.account_need.candidates:
        assert f"{account.account} ({account.name})" in drawn.words


@pytest.mark.parametrize("state", ["locked", "unlocked", "absent"])
def test_the_top_bar_names_a_locked_vault_and_no_other(state: Any) -> None:
    drawn = Drawn(snapshot_of(short(), vault=VaultStatus(state=state, entries=0)))
    assert ("vault locked" in drawn.top_bar) is (state == "locked")


@pytest.mark.parametrize(("not_accepted", "problems"), [(0, 0), (1, 0), (12, 3)])
def test_a_locked_vaults_sign_keeps_its_word_at_80_columns(
    not_accepted: int, problems: int
) -> None:
    drawn = top_bar(
        view="waiting", waiting=7, not_accepted=not_accepted, problems=problems, sessions=(),
        now=NOW, width=80, vault_locked=True, registry=DEFAULT_REGISTRY,
    )  # fmt: skip
    assert "  ◇ locked  " in plain_text(drawn)
    assert "2 Activity  3 " in plain_text(drawn)


@LAYOUTS
def test_each_call_shows_its_account_where_it_is_decided(compact: bool) -> None:
    head = Drawn(snapshot_of(short(accounts=(WORK,))), compact=compact).head
    assert "ana@example.com (api_key/mail/work)" in " ".join(head.replace("↳", " ").split())
    evil = replace(WORK, account="\u202eana\n┃ To: mallory " + "x" * 300)
    head = Drawn(snapshot_of(short(accounts=(evil,))), compact=compact).head
    assert "as ‹RLO›ana‹" in head
    assert not any(line.lstrip().startswith("┃ To: mallory") for line in head.splitlines())


@pytest.mark.parametrize(
    ("preview", "says", "absent"),
    [
        ({"limit_seconds": 5, "preparing": True, "updated_at": NOW - 12},
         "preparing the connector … 12 s", "of at most"),
        ({"updated_at": NOW - 1}, "asking api.github.com … 1 s of at most 5 s", "preparing"),
    ],
)  # fmt: skip
def test_while_aileron_still_looks_approve_is_not_offered_and_deny_is(
    preview: dict[str, Any], says: str, absent: str
) -> None:
    """Compiling takes longer than a preview may: the service is not said to be asked before."""
    looking = PreviewView(status="fetching", host="api.github.com", **preview)
    drawn = Drawn(snapshot_of(short(preview=looking, digest="")))
    assert says in drawn.words
    assert absent not in drawn.words
    assert "approve" not in drawn.keys
    assert "deny…" in drawn.keys
    assert "Fetching the preview. You can approve once it arrives" in drawn.status


def test_an_approved_call_that_waits_for_another_run_says_so() -> None:
    ahead = view_models.RunAheadView(action="run-query\u202e", ends_by=NOW + 138)
    drawn = Drawn(snapshot_of(short(1, state="checking", decided_at=NOW - 3, waits_for=ahead)))
    assert "… waits  " in "".join(drawn.rows)
    assert "▲ waits for the end of run-query‹RLO›, which uses the same connector" in drawn.words
    assert clock_seconds(NOW + 138) in drawn.words


CHANGE = view_models.StepView(
    step_id="change",
    connector="drafts",
    op="update_draft",
    hosts=("gmail.googleapis.com:443",),
    status="fixed",
    asks_again=False,
    inputs=(FieldView(label="to", value="new@nordlicht.example"),),
)
OTHER = (FieldView(label="id", value="r-1"),)
SEND = replace(CHANGE, step_id="send", op="send_draft", inputs=OTHER)


@LAYOUTS
def test_every_fixed_step_stands_in_the_item_and_in_the_sentence_of_the_yes(compact: bool) -> None:
    view = short(1, steps=(CHANGE, SEND), connector=CHANGE.connector, op=CHANGE.op)
    drawn = Drawn(snapshot_of(view), compact=compact)
    assert "(2 steps: update_draft, send_draft)." in drawn.status
    text = "\n".join(drawn.document)
    for line in ("update_draft  on gmail", "new@nordlicht.example", "send_draft  on gmail", "r-1"):
        assert line in text


@pytest.mark.parametrize(
    ("status", "op", "says"),
    [
        ("asked", "comment", "(2 steps: comment, set_label)."),
        ("running", "create_issue", "(1 step: create_issue)."),
    ],
)
def test_a_yes_names_what_runs_after_it_and_no_step_before_which_the_run_asks_again(
    status: str, op: str, says: str
) -> None:
    view = short(1, steps=later_steps(status), connector="tracker", op=op)
    assert says in Drawn(snapshot_of(view)).status


@LAYOUTS
def test_an_action_file_that_waits_to_be_accepted_shows_every_step(compact: bool) -> None:
    held = replace(not_accepted(), steps=("gmail.update_draft", "gmail.send_draft"))
    document = "\n".join(Drawn(snapshot_of(held=(held,)), compact=compact).document)
    assert "┃ 1  gmail.update_draft" in document
    assert "┃ 2  gmail.send_draft" in document


def test_several_findings_and_unread_lines_are_counted_with_the_worst() -> None:
    view = body("Invoice\u202e 881 for p\u0430ypal.com", drift=drifted(NOW))
    drawn = Drawn(snapshot_of(view), compact=True, seen=False)
    drawn.document  # noqa: B018 - laid out, and unread
    drawn.model.note_first_press("approve")
    assert drawn.status == "▲ Changed after you looked: To, Body (and 2 more). Press a again."
    assert "lines unread" in drawn.keys


def test_warnings_that_a_small_head_has_no_room_for_stand_in_the_record() -> None:
    several = tuple(FieldView(label=each, value="a", count=2) for each in ("To", "Cc", "Bcc"))
    view = short(self_opened=True, requester_gone=True)
    view = replace(view, preview=replace(view.preview, fields=several))
    drawn = Drawn(snapshot_of(view), compact=True)
    assert "+1 more in the record" in drawn.head
    assert "session has ended" not in drawn.head
    record = "\n".join(drawn.document).partition(" Warnings ")[2].partition(" Action ")[0]
    assert "Bcc: 2 values" in record, "it shares its line with what was cut"
    assert "The agent's session has ended" in record
    assert " Warnings " not in "\n".join(Drawn(snapshot_of(view)).document)


CONNECTOR = "github://ALRubinger/aileron-connector-linear@1.0.0"
OFFER = view_models.NotAcceptedView(
    kind="preview",
    name=f"{CONNECTOR} GraphQL queries at api.linear.app/graphql",
    file="store/connectors/sha256/" + "ab" * 32,
    digest="sha256:" + "ab" * 32,
    change="new",
    gated=None,
    connector=CONNECTOR.partition("@")[0],
    hosts=("api.linear.app:443",),
)
ATHENA = replace(OFFER, name=f"{CONNECTOR} AWS AmazonAthena.GetQueryExecution")
UNCHECKED = replace(OFFER, name=f"{CONNECTOR} unchecked requests of get_note to notes.example/read")


NO_CHECK = "get_note reads by POST to notes.example/read; Aileron cannot check that it only reads"


@pytest.mark.parametrize(
    ("offer", "means"),
    [
        (OFFER, "each request is a single query"),
        (ATHENA, "cannot check that it only reads"),
        (UNCHECKED, NO_CHECK),
    ],
)
def test_an_offer_to_read_by_post_says_what_it_means(
    offer: view_models.NotAcceptedView, means: str
) -> None:
    drawn = Drawn(snapshot_of(held=(offer,)))
    read = offer.name.partition(" ")[2]
    assert "Let this connector send POST requests in previews?" in drawn.head
    assert f"by POST: {read[:12]}" in "".join(drawn.rows)
    facts = "\n".join(plain_text(block.pieces) for block in file_blocks(offer))
    for fact in (means, read, CONNECTOR, "api.linear.app:443", offer.digest):
        assert fact in facts, fact
    accept = Accept(kind="preview", name=offer.name, digest=offer.digest)
    assert [*DEFAULT_REGISTRY.command("accept").intents(drawn.situation)] == [accept]


def reading_by(name: str, by: str) -> view_models.ApprovalView:
    ready = replace(short().preview, accepted_reads=((name, by),), updated_at=NOW)
    return short(preview=ready)


def test_an_item_says_what_its_preview_may_read_by_post_and_who_accepted_that() -> None:
    words = Drawn(snapshot_of(reading_by("GraphQL queries", "--accept-installed"))).words
    warning = "its preview sends POST requests, accepted without review (--accept-installed)"
    assert warning in words
    assert "may read by POST: GraphQL queries, accepted by --accept-installed" in words


@pytest.mark.parametrize("by", ["person", "--accept-installed"])
def test_an_item_whose_preview_sends_what_nobody_can_check_is_marked(by: str) -> None:
    read = UNCHECKED.name.partition(" ")[2]
    marked = reading_by(read, by)
    warning = "its preview sends POST requests; Aileron cannot check that they only read"
    drawn = Drawn(snapshot_of(marked))
    assert warning in " ".join(drawn.head.replace("↳", " ").split())
    assert f"may read by POST: {read}, accepted by" in drawn.words
    for each, is_marked in ((marked, True), (short(), False)):
        cache, item = DocumentCache(DEFAULT_REGISTRY), Item(key="k", approval=each)
        said = " ".join(map(plain_text, item_page(cache, item, NOW, 140, file_changed=False)))
        assert (warning in said, read in said) == (is_marked, is_marked)


def test_a_call_whose_action_file_changed_is_warned_of_before_the_yes() -> None:
    warning = "▲ Its action no longer counts as it was; approving would run nothing"
    other = replace(not_accepted(), kind="connector", name="send-draft")
    call = short(1, action_sha256="accepted")
    drawn = Drawn(snapshot_of(call))
    (send,) = [each for each in library_items(NOW) if each.name == "send-draft"]
    counts = replace(send, digest="accepted")
    update = replace(send, state="held_back", digest="later", is_update=True)
    for files, library, warned in (
        ((other, not_accepted()), (counts,), False),
        ((SEND_DRAFT,), (update, counts), False),
        ((SEND_DRAFT,), (replace(update, is_update=False),), True),
        ((), (replace(counts, digest="later"),), True),
        ((), (counts,), False),
    ):
        was = drawn.model.queue.file_changed(drawn.model.queue.current)
        before = drawn.model.screen_version
        told = LibraryUpdated(not_accepted=files, problems=(), actions_ready=1, library=library)
        drawn.tell(told)
        assert (drawn.model.screen_version == before) is (was is warned), "it rests anew"
        assert (warning in drawn.words) is warned
        says = "Its action no longer counts: a would run nothing."
        assert (says in drawn.status) is warned
        assert ("Press a to send" in drawn.status) is not warned


def test_the_yes_to_an_update_says_how_many_waiting_calls_have_to_be_made_again() -> None:
    before = AcceptedBeforeView(name="x.md", digest="old", accepted_at=NOW, text="+")
    content = FileContentView(text="+", before=before)
    update = replace(SEND_DRAFT, name="renamed", content=content, is_update=True)
    calls = [short(number, action_sha256="old" if number else "new") for number in range(3)]
    drawn = Drawn(replace(snapshot_of(*calls), not_accepted=(update,)))
    drawn.model.queue.selected = "held:action:renamed"
    assert "2 waiting calls then must be made again" in drawn.status
    assert "What you accepted before counts until you accept this" in drawn.words


def test_a_problem_that_is_mended_leaves_the_list_at_the_next_key() -> None:
    problems = tuple(Problem(file=f"actions/{name}.md", message="Wrong.") for name in "ab")
    drawn = Drawn(snapshot_of(problems=problems))
    drawn.tell(LibraryUpdated(not_accepted=(), problems=problems[1:], actions_ready=1))
    assert len(drawn.model.queue.items) == 2
    assert "no longer a problem" in "".join(drawn.rows)
    drawn.model.queue.move(1)
    drawn.model.queue.sweep(NOW + 1)
    assert [item.problem for item in drawn.model.queue.items] == [problems[1]]


@pytest.mark.parametrize("compact", [True, False])
def test_a_name_in_a_row_is_cut_where_a_tag_needs_its_room_alone(compact: bool) -> None:
    rows = Drawn(snapshot_of(short(agent="office-assistant")), compact=compact).rows
    assert "office-assistant" in "".join(rows)
    gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW)
    _, row = Drawn(snapshot_of(mail(agent="office-assistant", preview=gone))).rows
    assert "  ▲ no preview" in row
    assert row.startswith("▌         office-… · ")


@pytest.mark.parametrize("width", [80, 120, 160, 200, 320])
def test_no_value_goes_on_beyond_a_hundred_cells(width: int) -> None:
    """However wide the pane is: longer lines are hard to read."""
    layout = lay_out(approval_blocks(body("word " * 400), NOW), width, GUTTER)
    for text in map(plain_text, layout.lines):
        bar = min((text.find(bar) for bar in "┃┊│" if bar in text), default=None)
        assert bar is None or len(text[bar + 2 :].rstrip()) <= 100


def head(view: view_models.ApprovalView) -> str:
    return "\n".join(plain_text(line) for line in approval_head(view, (), 0.0, 100, compact=False))


@pytest.mark.parametrize(
    ("op_hosts", "hosts", "expected"),
    [
        (MANY[1:2], MANY[1:2], "on athena.1.example"),
        (MANY, MANY, "on one of 34 hosts, see the record"),
        (MANY[1:2], MANY[:3], "on athena.1.example, later 2 more, see the record"),
    ],
)
def test_before_anything_was_asked_no_host_is_guessed(
    op_hosts: tuple[str, ...], hosts: tuple[str, ...], expected: str
) -> None:
    """The first of a list is no answer; what later steps reach is not left out."""
    view = replace(fixtures(0.0)[0], hosts=hosts, op_hosts=op_hosts)
    assert expected in head(view)


def test_a_call_that_is_over_names_the_hosts_that_were_asked() -> None:
    ended = {"hosts_asked": (MANY[7], MANY[3]), "state": "completed", "ended_at": 1.0}
    view = replace(fixtures(0.0)[0], hosts=MANY, op_hosts=MANY, **ended)
    assert "on athena.7.example and athena.3.example" in head(view)


def test_a_call_to_a_punycode_host_says_what_it_stands_for() -> None:
    view = approval(1, NOW, hosts=(HOST, "api.github.com:443"))
    lines = [plain_text(block.pieces) for block in approval_blocks(view, NOW)]
    assert HOST in lines
    assert DESCRIPTION in lines
    assert hidden_characters_of(view).warnings() == ["1 look-alike name"]
    assert hidden_characters_of(approval(1, NOW)).warnings() == []


def test_a_connector_that_asks_for_such_a_host_says_so_before_it_is_accepted() -> None:
    held = replace(not_accepted(), kind="connector", hosts=(HOST,))
    assert DESCRIPTION in [plain_text(block.pieces) for block in file_blocks(held)]
