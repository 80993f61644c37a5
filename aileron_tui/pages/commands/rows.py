"""The keys of the rows of lists, of the item in view, and of a document that is read."""

from aileron_core.console_port.devices import MakeLink
from aileron_core.console_port.intents import ExportAudit
from aileron_tui import words
from aileron_tui.input.commands import DOCUMENT, MOVE, TABLES, VIEWS, Command
from aileron_tui.pages.command import unless
from aileron_tui.pages.listing import AuditPage, ListPage
from aileron_tui.pages.page import Page
from aileron_tui.pages.waiting import WaitingPage
from aileron_tui.state.situation import Situation

_Key = Command[Situation, Page]
_ListKey = Command[Situation, ListPage]
_AuditKey = Command[Situation, AuditPage]
_WaitingKey = Command[Situation, WaitingPage]
_said = words.status
_OPENED = "a row is already open"
_FIELDS = tuple(each for each in DOCUMENT if each != "rules")
"""Where there are fields to copy: a rule is copied whole."""
_can_move = unless(
    lambda now: now.scrollable if now.moves_document else now.rows > 1, _said.ONLY_ROW
)


def _no_row(now: Situation) -> str:
    return _OPENED if now.opened else _said.NO_ITEM


def _is_drawn(now: Situation) -> bool:
    return now.blocked_by not in ("lost", "small")


def _label_of_unfold(now: Situation) -> str:
    """Return what the key does where code points stand already, or a text is drawn in another form."""
    if now.model.unfolded:
        return "fold again"
    return "source" if now.model.is_converted else ""


def _no_verifying(now: Situation) -> str:
    if now.model.audit.verifying:
        return "the audit is already being verified"
    return _said.LOST if now.blocked_by == "lost" else ""


def _ask_for_link(page: Page) -> None:
    """Have the core make a link: to the page of the selected call, or to the list of what waits."""
    page.model.pairing.ask(page.situation.approval)
    page.panel.ask("pair")
    page.submit(MakeLink())


ROWS = (
    _ListKey(
        "open", ("enter",), "open", TABLES, "open the row and show everything about it", fixed=True,
        footer_rank=5, why_not=lambda now: "" if now.rows and not now.opened else _no_row(now),
        do=ListPage.open,
    ),
    _AuditKey(
        "show_record", ("s",), "the record", ("audit",), "switch between the stored record and its call",
        footer_rank=7, label_now=lambda now: "the call" if now.model.audit.record_shown else "",
        why_not=unless(lambda now: now.model.audit.is_of_call and _is_drawn(now), _said.ONLY_ROW),
        do=AuditPage.show_record,
    ),
    _WaitingKey(
        "decided", ("h",), "decided", ("waiting",), "decided calls with results; again: what waits",
        footer_rank=56, label_now=lambda now: "waiting" if now.opened else "",
        why_not=unless(lambda now: len(now.model.decided) and _is_drawn(now), _said.ONLY_ROW),
        do=WaitingPage.change_list,
    ),
    _ListKey(
        "lifecycle", ("e",), "all events", ("activity",), "show also what is no call: sessions, files; again: hide it",
        footer_rank=57, label_now=lambda now: "calls alone" if now.model.activity.lifecycle else "",
        why_not=unless(lambda now: not now.opened and _is_drawn(now), _OPENED),
        do=lambda page: page.model.activity.toggle_lifecycle(page.clock.now()),
    ),
    _AuditKey(
        "verify", ("V",), "verify", ("audit",), "verify the whole hash chain, in the background",
        footer_rank=23, why_not=_no_verifying, do=AuditPage.verify,
    ),
    _Key(
        "export", ("x",), "export", ("audit",), "write every record to a new file in the home",
        footer_rank=25, intents=lambda _: (ExportAudit(),),
    ),
    _ListKey(
        "follow", ("f",), "follow", ("activity", "audit"), "follow the newest row again", footer_rank=24,
        why_not=lambda now: (
            _no_row(now) if now.opened or not now.rows
            else "the list already follows the newest row" if now.model.table and now.model.table.following
            else ""
        ),
        do=lambda page: page.table.follow(page.clock.now()),
    ),
    _Key(
        "unfold", ("u",), "code points", DOCUMENT, "show the source, unfolded, with code points",
        footer_rank=35, label_now=_label_of_unfold, needs="document",
        why_not=unless(
            lambda now: now.document_shown
            and (now.model.has_marks or now.model.is_converted or now.model.unfolded),
            "nothing here is shown as a mark",
        ),
        do=lambda page: page.model.unfold(),
    ),
    _Key(
        "wrap_marks", ("w",), "wrap marks", DOCUMENT, "show ↩ where a long line continues", needs="document",
        why_not=unless(lambda now: now.document_shown and now.model.has_wraps, "no line here is wrapped"),
        do=lambda page: page.reader.mark_wraps(),
    ),
    _Key(
        "next", ("j", "down"), "move", MOVE, "next, previous row (also the arrows)", moves=True,
        paired_with="previous", footer_rank=50, why_not=_can_move, at_end=_said.LAST_ROW,
        do=lambda page: page.move(1),
    ),
    _Key(
        "previous", ("k", "up"), "previous", MOVE, moves=True, why_not=_can_move, at_end=_said.FIRST_ROW,
        do=lambda page: page.move(-1),
    ),
    _Key(
        "first", ("home",), "first", MOVE, "first, last row", moves=True, paired_with="last",
        why_not=_can_move, at_end=_said.FIRST_ROW, do=lambda page: page.move_to_end(last=False),
    ),
    _Key(
        "last", ("end",), "last", MOVE, moves=True, why_not=_can_move, at_end=_said.LAST_ROW,
        do=lambda page: page.move_to_end(last=True),
    ),
    _Key(
        "page_up", ("pageup",), "page up", MOVE, "one page of rows up, down", moves=True,
        paired_with="page_down", why_not=_can_move, at_end=_said.FIRST_ROW,
        do=lambda page: page.move_pages(-1),
    ),
    _Key(
        "page_down", ("pagedown",), "page down", MOVE, moves=True, why_not=_can_move, at_end=_said.LAST_ROW,
        do=lambda page: page.move_pages(1),
    ),
    _Key(
        "order", ("o",), "order", ("waiting",), "sort the list by deadline; again: by arrival",
        why_not=unless(lambda now: now.rows > 1 and not now.opened, _said.ONLY_ROW),
        do=lambda page: page.model.queue.change_order(page.clock.now()),
    ),
    _Key(
        "filter", ("slash",), "filter", VIEWS, "filter by words, or by agent: action: state: age:",
        footer_rank=60,
        why_not=lambda now: (
            "" if (now.rows or now.model.filtered) and not now.in_document else _no_row(now)
        ),
        do=lambda page: page.panel.ask(
            "filter", text=page.model.parsed_filter.text,
            placeholder="words, agent:codex action:send state:pending age:5m",
        ),
    ),
    _Key(
        "back", ("escape",), "back", VIEWS, "go back; decides nothing", fixed=True, footer_rank=58,
        why_not=unless(
            lambda now: now.opened or now.model.queue.in_table or now.model.filtered or now.pressed_once,
            "nothing is open and there is no filter",
        ),
        do=lambda page: page.go_back(),
    ),
)  # fmt: skip

ITEM = (
    _Key(
        "copy", ("y",), "copy", _FIELDS, "copy a field as shown; again: the next one", footer_rank=62,
        needs="document", do=lambda page: page.handoff.copy(),
    ),
    _Key(
        "pager", ("p",), "page", DOCUMENT, "open the longest field in view in $PAGER", footer_rank=63,
        needs="document", do=lambda page: page.handoff.read_in_pager(),
    ),
    _Key(
        "open_review", ("O",), "decide in a browser", ("waiting", "sessions"),
        "make a link that pairs a browser, which can then decide too; asks before it can", asks=True,
        needs="core", do=_ask_for_link,
    ),
)  # fmt: skip


_scrolls = unless(lambda now: now.scrollable, _said.ALL_IN_VIEW)
_has_matches = unless(lambda now: now.model.search_text and now.model.matches, _said.NO_MATCH)
READ_RANK = 45
"""The rank of the key that reads on once everything was read: before moving."""


def _rank_of_reading(now: Situation) -> int:
    return READ_RANK if not now.unseen or now.pressed_once else 0


READING = (
    _Key(
        "read_on", ("space",), "read on", MOVE, "read on by a page, keeping two lines", moves=True,
        footer_rank=0, rank_now=_rank_of_reading, needs="document", why_not=_scrolls, at_end=_said.AT_END,
        do=lambda page: page.reader.document.scroll_panes(1),
    ),
    _Key(
        "read_back", ("b", "shift+space"), "page back", MOVE, "back by a page, keeping two lines", moves=True,
        needs="document", why_not=_scrolls, at_end=_said.AT_START,
        do=lambda page: page.reader.document.scroll_panes(-1),
    ),
    _Key(
        "line_down", ("J",), "scroll", DOCUMENT, "scroll the document down, up by one line", moves=True,
        paired_with="line_up", needs="document", why_not=_scrolls, at_end=_said.AT_END,
        do=lambda page: page.reader.document.scroll_rows(1),
    ),
    _Key(
        "line_up", ("K",), "scroll up", DOCUMENT, moves=True, needs="document", why_not=_scrolls,
        at_end=_said.AT_START, do=lambda page: page.reader.document.scroll_rows(-1),
    ),
    _Key(
        "read_whole", ("v",), "full screen", VIEWS, "read the document full screen; again: back",
        needs="document", why_not=unless(lambda now: not now.model.reader, _said.ALL_IN_VIEW),
        do=lambda page: page.model.read_whole(whole=True),
    ),
    _Key(
        "reader_leave", ("escape", "v"), "back", ("reader",), "back to the item, where you can decide",
        footer_rank=1, fixed=True, do=lambda page: page.model.read_whole(whole=False),
    ),
    _Key(
        "switch_pane", ("tab",), "document", ("waiting",), "switch the movement keys to the document or back",
        needs="document", do=Page.switch_pane,
    ),
    _Key(
        "search", ("slash",), "search", DOCUMENT, "search the document (after tab)", footer_rank=60,
        never_with="filter",
        needs="document",
        why_not=unless(lambda now: now.in_document, "it searches the document; press tab first"),
        do=lambda page: page.panel.ask(
            "search", text=page.model.search_text, placeholder="text; case is ignored"
        ),
    ),
    _Key(
        "next_match", ("n",), "next match", DOCUMENT, "next, previous match", moves=True,
        paired_with="previous_match", footer_rank=4, needs="document", why_not=_has_matches,
        at_end=_said.ONLY_MATCH, do=lambda page: page.reader.next_match(),
    ),
    _Key(
        "previous_match", ("N",), "previous match", DOCUMENT, moves=True, needs="document",
        why_not=_has_matches, at_end=_said.ONLY_MATCH, do=lambda page: page.reader.next_match(-1),
    ),
    _Key(
        "document_start", ("g",), "first line", DOCUMENT, "first, last line of the document", moves=True,
        paired_with="document_end", needs="document", why_not=_scrolls, at_end=_said.AT_START,
        do=lambda page: page.reader.scroll_to_end(last=False),
    ),
    _Key(
        "document_end", ("G",), "last line", DOCUMENT, moves=True, needs="document", why_not=_scrolls,
        at_end=_said.AT_END, do=lambda page: page.reader.scroll_to_end(last=True),
    ),
    _Key(
        "links", ("L",), "links", DOCUMENT, "show the next link's address; enter opens it", asks=True,
        footer_rank=64, needs="document",
        why_not=unless(lambda now: now.document_shown and now.model.links, "there are no links here"),
        do=Page.ask_links,
    ),
)  # fmt: skip
