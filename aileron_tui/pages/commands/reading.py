"""The keys that read a document."""

from aileron_tui import words
from aileron_tui.input.commands import DOCUMENT, MOVE, VIEWS, Command
from aileron_tui.pages.command import unless
from aileron_tui.pages.page import Page
from aileron_tui.state.situation import Situation

_Key = Command[Situation, Page]
_said = words.refusals
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
