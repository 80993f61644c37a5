"""The questions about calls, sessions, lists and documents."""

from aileron_core.actions.model import shown_name
from aileron_core.console_port.intents import (
    Approve,
    Deny,
    EndSession,
    Intent,
    StopEverything,
    StopRun,
)
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.document import agent_name, session_name
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.styled_text import parse_link
from aileron_tui.draw.text import Line, Piece, truncate, wrap
from aileron_tui.draw.times import time_left
from aileron_tui.pages.account_questions import ACCOUNT, BIND, LOGIN, PASSPHRASE, REBIND, REVOKE
from aileron_tui.pages.asking import Answer, Asking, Question
from aileron_tui.pages.command import call_blocked, unless
from aileron_tui.pages.device_questions import DEVICE, PAIR
from aileron_tui.pages.edit_questions import EDIT, EDIT_LINE, EDIT_TEXT
from aileron_tui.pages.grant_questions import GRANT, GRANT_VALUE, field_bar, read_offers
from aileron_tui.state.model import Model
from aileron_tui.state.situation import Situation
from aileron_tui.words.bars import counted

FILTER_LIMIT = 200
"""Characters of a filter."""
_ROWS_BESIDE_LINK = 8
"""Rows of the screen that are no part of the question about a link."""

# A reason


def _deny_text(now: Situation) -> tuple[str, str]:
    calls, others = now.item.calls if now.item is not None else (), len(now.others_denied)
    if not calls:
        return "", ""
    of = f"{len(now.calls)} of {len(calls)} calls: " if now.batch is not None else ""
    asked = f'Deny {of}"{escape(calls[0].title)}". Reason ({agent_name(calls[0])} will read it):'
    verb = "waits" if others == 1 else "wait"
    remark = f"{counted(others, 'other call')} of ended sessions {verb} too."
    return asked, remark if others else ""


def _deny_rows(_: Asking, now: Situation, width: int) -> tuple[Line, ...]:
    rows, panel = bars.panel_question(*_deny_text(now), width), now.model.deny_panel
    if not panel.stands or now.approval is None:
        return rows
    if (terms := panel.terms) is None:
        return (*rows, (Piece(f" {words.rules.TRYING} …", "muted"),))
    lead = f" Also denied in this session, for {words.rules.time(terms.seconds)}: "
    which = " with" if panel.stays else ", whatever it is given"
    name = foreign_text(shown_name(now.approval.action), "strong")
    said: Line = (Piece(lead, "attn"), *name, Piece(which))
    values = (
        (Piece("   "), field_bar(e), *foreign_text(f"{e.field.label}: "), *brief(e.field.value))
        for e in panel.stays
    )
    return (*rows, said, *(truncate(each, width - 1) for each in values))


def _stand(asking: Asking) -> None:
    panel = asking.model.deny_panel
    panel.stands = not panel.stands
    if panel.stands:
        read_offers(asking)


def _not_denied(now: Situation) -> str:
    panel = now.model.deny_panel
    waits = panel.stands and panel.terms is None
    return words.rules.TRYING if waits else call_blocked(now, now.deny_blocked_by)


def _denied(now: Situation) -> tuple[Deny, ...]:
    if now.item is None or now.model.panel_key != now.item.key:
        return ()
    shown = now.batch is None or not now.unseen
    ids, panel = [each.call_id for each in now.calls], now.model.deny_panel
    terms = panel.terms if panel.stands else None
    return tuple(
        Deny(approval_id=each, reason=now.reason, on_screen=shown, grant=terms) for each in ids
    )


def _all_denied(now: Situation) -> tuple[Deny, ...]:
    """Return for each of the other calls its own denial, after that of the one on screen."""
    ids = (each.call_id for each in now.others_denied)
    others = (Deny(approval_id=e, reason=now.reason, on_screen=False) for e in ids)
    return (*first, *others) if (first := _denied(now)) else ()


def _bring(asking: Asking, *, earlier: bool) -> None:
    """Put another reason into the field; it has to be read before a key sends it."""
    if not asking.model.key_in_burst:  # else no hand pressed it
        reasons = asking.model.deny_panel.reasons
        asking.surface.field.put((reasons.earlier if earlier else reasons.later)(asking.text))
        asking.model.arming.reset()


DENY = Question(
    "deny", rows=_deny_rows, field=lambda _: "field", leave="leave it waiting",
    is_over=lambda now: (
        now.deny_blocked_by in ("over", "empty", "lost", "storage", "undrawable")
    ),
    answers=(
        Answer(
            "deny_enter", ("enter",), "deny", help="deny with this reason", decides=True, ends=True,
            footer_rank=0, why_not=_not_denied, intents=_denied,
        ),
        Answer(
            "deny_others", ("ctrl+s",), "all of ended sessions", decides=True, ends=True, footer_rank=1,
            help="deny with this reason, and all other calls of ended sessions",
            why_not=lambda now: (
                _not_denied(now) if now.others_denied
                else "no other call is waiting that could be denied with this one"
            ),
            intents=_all_denied,
        ),
        Answer(
            "deny_standing", ("ctrl+d",), "later calls too", footer_rank=2, do=_stand,
            help="deny later calls like it too, for an hour, without asking; again: this call alone",
            label_now=lambda now: "this call alone" if now.model.deny_panel.stands else "",
            why_not=lambda now: (
                words.status.BATCH_GRANTED if now.batch is not None else call_blocked(now, now.deny_blocked_by)
            ),
        ),
        Answer(
            "reason_earlier", ("up",), "earlier", help="use an earlier reason", moves=True, footer_rank=2,
            why_not=unless(
                lambda now: now.model.deny_panel.reasons.has_earlier, "there is no earlier reason"
            ),
            do=lambda asking: _bring(asking, earlier=True),
        ),
        Answer(
            "reason_later", ("down",), "later", help="a later reason, and last what you had typed",
            moves=True, do=lambda asking: _bring(asking, earlier=False),
            why_not=unless(
                lambda now: now.model.deny_panel.reasons.has_later, "there is no later reason"
            ),
        ),
    ),
)  # fmt: skip

# The number of calls of a batch


def approved(now: Situation) -> tuple[Approve, ...]:
    """Return a yes to each call that is put in, under its own digest."""
    unseen = now.model.reading.unseen
    return tuple(
        Approve(approval_id=e.call_id, digest=e.digest, unseen_lines=unseen) for e in now.calls
    )


def _count_text(now: Situation) -> tuple[str, str]:
    found = f"▲ {now.findings[0]}." if now.findings else ""
    return f"Approve {len(now.calls)} calls. Type their number:", found


COUNT = Question(
    "count", text=_count_text, field=lambda _: "field", limit=5, leave="leave them waiting",
    is_over=lambda now: now.model.queue.selected != now.model.panel_key or not now.calls,
    answers=(
        Answer(
            "count_enter", ("enter",), "approve", help="approve so many calls of the batch", decides=True,
            footer_rank=0, intents=approved,
            why_not=unless(
                lambda now: now.reason == str(len(now.calls)) and not now.unseen, words.status.TYPE_COUNT
            ),
        ),
    ),
)  # fmt: skip

# What ends something


def stop_text(model: Model) -> tuple[str, str]:
    """Return the question before everything is stopped, with what that would stop, and the remark."""
    calls = counted(model.queue.undecided, "call")
    running = counted(sum(each.running for each in model.sessions), "run")
    return (
        f"Stop everything? This denies {calls}, ends {counted(len(model.sessions), 'session')} and stops {running}.",
        "A stopped run may already have done its work, so its outcome is unknown.",
    )


STOP = Question(
    "stop", text=lambda now: stop_text(now.model), leave="cancel", is_over=lambda now: not now.can_change,
    answers=(
        Answer(
            "stop_enter", ("enter",), "stop everything", decides=True, ends=True, footer_rank=0,
            needs="owner", intents=lambda _: (StopEverything(),),
        ),
    ),
)  # fmt: skip


def _still_runs(now: Situation) -> bool:
    return now.running is not None and now.running.run_id == now.model.panel_key


def _stop_run_text(now: Situation) -> tuple[str, str]:
    if now.running is None:
        return "", ""
    time = time_left(now.now - now.running.started_at)
    return (
        f'Stop "{escape(now.running.name)}"? It has been running for {time}.',
        "If it has sent a request that may change something, its outcome is unknown afterwards.",
    )


def _stopped(now: Situation) -> tuple[Intent, ...]:
    return (StopRun(run_id=now.running.run_id),) if now.running and _still_runs(now) else ()


STOP_RUN = Question(
    "stop_run", text=_stop_run_text, leave="let it run",
    is_over=lambda now: not now.can_change or not _still_runs(now),
    answers=(
        Answer(
            "stop_run_enter", ("enter",), "stop the run", decides=True, ends=True, footer_rank=0,
            needs="core", why_not=unless(lambda now: now.running, words.status.NOT_RUNNING),
            intents=_stopped,
        ),
    ),
)  # fmt: skip


def _is_of_session(now: Situation) -> bool:
    return now.session is not None and now.session.session_id == now.model.panel_key


def _end_text(now: Situation) -> tuple[str, str]:
    if now.session is None:
        return "", ""
    waiting = now.session.waiting
    kept = f" Its {counted(waiting, 'call')} {'keeps' if waiting == 1 else 'keep'} waiting."
    asked = f"End the session of {session_name(now.session)}?"
    return asked, "Its token stops working." + (kept if waiting else "")


END = Question(
    "end", text=_end_text, leave="cancel",
    is_over=lambda now: not now.can_change or not _is_of_session(now),
    answers=(
        Answer(
            "end_enter", ("enter",), "end the session", decides=True, ends=True, footer_rank=0,
            needs="owner", why_not=unless(lambda now: now.session, words.status.NO_SESSION),
            intents=lambda now: (
                (EndSession(session_id=now.session.session_id),)
                if now.session and _is_of_session(now) else ()
            ),
        ),
    ),
)  # fmt: skip

# What is typed to look for something


def _filter_rows(_: Asking, now: Situation, width: int) -> tuple[Line, ...]:
    model, asked = now.model, "Show rows that match:"
    if problems := model.parsed_filter.problems:
        return bars.panel_question(asked, problems[0], width, "attn")
    remark = words.views.matching(*model.row_counts) if model.filtered else ""
    return bars.panel_question(asked, remark, width)


def _show_all(asking: Asking) -> None:
    """Forget the filter."""
    asking.model.set_filter("", asking.clock.now())
    asking.close()


FILTER = Question(
    "filter", rows=_filter_rows, field=lambda _: "field", limit=FILTER_LIMIT,
    typed=lambda asking, text: asking.on_filter(text),
    leave="show all", on_leave=_show_all,
    answers=(
        Answer("filter_enter", ("enter",), "keep the filter", footer_rank=0, do=Asking.close),
    ),
)  # fmt: skip


def _search_rows(asking: Asking, _: Situation, width: int) -> tuple[Line, ...]:
    remark = words.bars.matches(*asking.match_counts) if asking.text else ""
    return bars.panel_question("Search in the document:", remark, width)


def _go_to_match(asking: Asking) -> None:
    asking.close()
    if asking.model.search_text:
        asking.model.say(words.bars.matches(*asking.match_counts), asking.clock.monotonic())


def _end_search(asking: Asking) -> None:
    asking.on_search("")
    asking.close()


SEARCH = Question(
    "search", rows=_search_rows, field=lambda _: "field", limit=FILTER_LIMIT,
    typed=lambda asking, text: asking.on_search(text),
    leave="end the search", on_leave=_end_search,
    answers=(Answer("search_enter", ("enter",), "go to match", footer_rank=0, do=_go_to_match),),
)  # fmt: skip

# A link


def ask_links(asking: Asking, links: tuple[str, ...]) -> None:
    """Show where the first of *links* leads, and ask whether to open it."""
    if links:
        asking.links, asking.shown_link = links, ""
        asking.ask("link", links[0])


def _link_rows(asking: Asking, _: Situation, width: int) -> tuple[Line, ...]:
    """Return the question before a link is opened: its host, then the whole address."""
    target = parse_link(asking.links[0]) if asking.links else None
    asking.shown_link = ""
    if target is None:
        return ()
    asked = f"Open this address in your browser? It leads to {target.host}."
    warnings = (
        (target.has_user, "The part before the @ is a user name, not a host."),
        (target.is_renamed, "The host name has letters outside ASCII."),
    )
    warned = ((Piece(each, "attn"),) for holds, each in warnings if holds)
    rows = list(bars.panel_question(asked, "", width))
    for pieces in (*warned, foreign_text(target.url, "strong")):
        rows += [(Piece("  "), *each.pieces) for each in wrap(pieces, width - 4)]
    if len(rows) <= asking.model.size[1] - _ROWS_BESIDE_LINK:
        asking.shown_link = target.url
        return tuple(rows)
    asked = "This address is too long for this window, so it cannot be opened."
    size = f"It leads to {target.host} and has {len(target.url):,} characters."
    return bars.panel_question(asked, f"{size} Enlarge the window to see all of it.", width, "attn")


def _open_link(asking: Asking) -> None:
    asking.close()
    if asking.shown_link:
        asking.surface.open_link(asking.shown_link)


def _next_link(asking: Asking) -> None:
    asking.links, asking.shown_link = (*asking.links[1:], *asking.links[:1]), ""
    asking.model.arming.reset()


LINK = Question(
    "link", rows=_link_rows, leave="cancel",
    answers=(
        Answer(
            "link_enter", ("enter",), "open in the browser", help="open this address in the browser",
            footer_rank=0, do=_open_link,
        ),
        Answer(
            "link_next", ("L", "down"), "next link", help="the next link in the document", footer_rank=1,
            why_not=unless(lambda now: now.document_shown and now.model.links > 1, words.status.ONLY_ROW), do=_next_link,
        ),
    ),
)  # fmt: skip

ALL = (
    DENY, COUNT, STOP, STOP_RUN, END, FILTER, SEARCH, LINK, PASSPHRASE, ACCOUNT, BIND, LOGIN, REBIND, REVOKE,
    PAIR, DEVICE, EDIT, EDIT_LINE, EDIT_TEXT, GRANT, GRANT_VALUE,
)  # fmt: skip
QUESTIONS = {each.name: each for each in ALL}
