"""The status line, which says what matters most: a fault, what the next key would do, or why not yet."""

from dataclasses import replace

from aileron_core.actions.model import shown_name
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.changes import changed_fields
from aileron_tui.draw.document import session_name
from aileron_tui.draw.formats import count_recipients
from aileron_tui.draw.steps import steps_to_run
from aileron_tui.draw.text import Line, Piece, Role, cell_width, justify, line
from aileron_tui.input.commands import VIEWS, AnyCommand, KeyContext
from aileron_tui.items import SuiteFiles
from aileron_tui.pages.command import Availability, availability
from aileron_tui.state.model import StatusMessage
from aileron_tui.state.situation import Situation

ENDS_SOON_SECONDS = 60
TITLE_CHARACTERS = 48
"""Characters of a title in a sentence; the head has the whole."""
MIN_BESIDE_CELLS = 24
"""The least cells in which a second sentence beside a report is of use."""


def status_line(
    now: Situation,
    message: StatusMessage | None,
    list_status: Line = (),
    *,
    width: int,
) -> Line:
    """Return the sentence for the situation *now*; the worst news has precedence.

    *of_list*: the message about the rows, or about their filter. *width*: in cells.
    """
    if message is not None and message.refusal:
        return message.pieces
    if now.blocked_by == "lost":
        return (
            Piece(
                words.status.lost(
                    now.registry.key_label("quit"), attached=bool(now.model.snapshot.attached)
                ),
                "danger",
            ),
        )
    if now.blocked_by == "storage":
        return (Piece(words.status.STORAGE_STOPS, "danger"),)
    if not now.model.arming.focused and now.blocked_by == "none":
        return (Piece(words.status.NOT_FOCUSED, "attn"),)
    if now.pressed_once and availability(now.registry.command(now.pressed_once), now).shown:
        return confirmed(now, width)
    if now.view != "waiting" and not now.opened:
        return message.pieces if message is not None else list_status
    present = list_status if now.view == "waiting" and list_status else _present(now)
    present = _ends_soon(now) + present
    if message is None:
        return present
    needs_attention = bool(now.unseen) or now.blocked_by != "none" or present[0].role == "attn"
    if not needs_attention or now.blocked_by in ("empty", "over"):
        return message.pieces
    if width - cell_width(message.pieces) < MIN_BESIDE_CELLS:
        return message.pieces
    # What just happened, and beside it the first sentence on the present item.
    return line(*message.pieces, "   ", *present[:1])


def _ends_soon(now: Situation) -> Line:
    view = now.approval
    if view is None or view.expires_at is None or now.blocked_by not in ("none", "fetching"):
        return ()
    rest = view.expires_at - now.now
    if rest > ENDS_SOON_SECONDS:
        return ()
    return (Piece(words.status.ends_soon(int(rest)), "danger"), Piece(" "))


def confirmed(now: Situation, width: int) -> Line:
    """Return what the second press of the key that was pressed once would do."""
    key, view = now.registry.key_label(now.pressed_once), now.approval
    command = now.registry.command(now.pressed_once)
    if now.batch is not None:
        does = words.status.approves_calls(len(now.calls), len(now.batch.calls))
    elif now.pressed_once in ("approve", "grant_enter") and view is not None:
        does = what_a_yes_does(view)
        if now.pressed_once == "grant_enter":
            does += ", and such calls without asking"
    else:
        does = command.phrase or command.label
    if now.findings:
        first, *more = now.findings
        texts = words.status.found_pressed(first, len(more), now.unseen, key, does)
        text = next((each for each in texts if cell_width((Piece(each),)) < width - 1), texts[-1])
    elif now.unseen:
        text = words.status.unseen_pressed(now.unseen, now.total, key, does)
    elif view is not None and view.preview.status == "unavailable":
        text = words.status.no_preview(key, does, again=True)
    else:
        text = words.status.ready(key, does)
    return (Piece(text, "attn"),)


def _present(now: Situation) -> Line:
    view = now.approval
    match now.blocked_by:
        case "empty" | "small" | "drawing":
            return (Piece(""),)
        case "sending":
            return (Piece(words.status.SENDING, "muted"),)
        case "undrawable":
            return (Piece(words.status.UNDRAWABLE, "danger"),)
        case "checking":
            return (Piece(words.status.RECHECKING, "muted"),)
        case "vault":
            return (Piece(_waits_for_account(now), "attn"),)
        case "fetching":
            return (Piece(words.status.LOOKING),)
        case "deadline":
            return (Piece(words.status.DEADLINE_OVER, "attn"),)
        case "over":
            return _over(now, view)
        case _:
            return _decidable(now)


def _waits_for_account(now: Situation) -> str:
    need, registry = now.account_need, now.registry
    attached = bool(now.model.snapshot.attached)
    return words.vault.status(
        need.reason if need is not None else "locked",
        words.vault.there(now.vault) if attached else registry.key_label("unlock_vault"),
        registry.key_label("choose_account"),
        registry.key_label("view_accounts"),
        has_vault=now.vault != "absent",
    )


def _over(now: Situation, view: ApprovalView | None) -> Line:
    if view is None:
        return (Piece(""),)
    if view.is_settled:
        text = words.status.settled(words.item.wanted(view.approval_id))
        return (Piece(text, "ok"),)
    if view.state == "unknown":
        key = now.registry.key_label("look_again") if now.unknown_outcome_id else ""
        done = now.registry.key_label("acknowledge") if view.awaits_acknowledgement else ""
        return (Piece(words.status.unknown_outcome(key, done), "attn"),)
    if view.state == "failed":
        return (Piece(words.status.failed(escape(view.title), escape(view.outcome)), "danger"),)
    return (Piece(words.item.ROW_STATES.get(view.state, "") + ".", "muted"),)


def _decidable(now: Situation) -> Line:
    if now.model.reader and now.view == "waiting" and not now.unseen:
        leave = now.registry.key_label("reader_leave")
        return (Piece(words.status.read_whole(leave), "ok"),)
    if now.model.replayed is not None:
        return (Piece(words.views.AS_SEEN, "muted"),)
    is_problem = now.item is not None and now.item.problem is not None
    if is_problem or (now.library_item is not None and now.library_item.state == "error"):
        return (Piece(words.status.PROBLEM_READ, "muted"),)
    if now.unseen:
        count = Piece(words.status.unseen(now.unseen, now.total), "attn")
        key = now.registry.key_label("read_on")
        return line(count, " ", words.status.reads_on(key) if now.scrollable else "")
    if now.suite is not None:
        return _about_a_suite(now, now.suite)
    if (file := now.acceptable or now.withdrawable) is not None:
        return _about_a_file(now, *file)
    host = now.session.host_to_allow if now.session is not None else None
    if host is not None and now.opened:
        text = words.status.allows_host(now.registry.key_label("allow_host"), escape(host))
        return line(Piece(words.status.ALL_SEEN, "ok"), " ", Piece(text, "strong"))
    if now.session is not None:
        key, agent = now.registry.key_label("end_session"), session_name(now.session)
        return (Piece(words.status.ends_session(key, agent), "muted"),)
    calls = now.item.calls if now.item is not None else ()
    return _about_a_call(now, calls[0]) if calls else (Piece(""),)


def _about_a_suite(now: Situation, suite: SuiteFiles) -> Line:
    left_out = len(suite.ungated_effects) if suite.other_files else 0
    every, rest = now.registry.key_label("accept"), now.registry.key_label("accept_rest")
    connectors = len(suite.new_connectors)
    text = words.files.accept_suite(every, rest, len(suite.files), left_out, connectors)
    calls = now.model.queue.calls_under(each.before for each in suite.files)
    text += words.files.asked_again(calls)
    return line(Piece(words.status.ALL_SEEN, "ok"), " ", Piece(text, "strong"))


def _about_a_file(now: Situation, kind: str, name: str) -> Line:
    if now.acceptable is not None and now.findings:
        command, key = now.registry.command("accept"), now.registry.key_label("accept")
        text = words.status.found(now.findings[0], key, command.phrase)
        return (Piece(text, "attn"),)
    if now.acceptable is not None:
        item = now.item.file if now.item is not None else None
        before = item.before if item is not None else None
        if now.library_item is not None and now.library_item.content is not None:
            before = now.library_item.content.before
        calls = now.model.queue.calls_under((before,))
        text = words.files.accept(now.registry.key_label("accept"), kind, escape(name))
        text += words.files.asked_again(calls)
    else:
        text = words.files.withdraws_acceptance(
            now.registry.key_label("withdraw_acceptance"), kind, escape(name)
        )
    return line(Piece(words.status.ALL_SEEN, "ok"), " ", Piece(text, "strong"))


def _about_a_call(now: Situation, view: ApprovalView) -> Line:
    key = now.registry.key_label("approve")
    if now.model.paused_at is not None:
        return (Piece(words.bars.paused_first(now.registry.key_label("go_on"), key), "attn"),)
    if now.model.queue.file_changed(now.item):
        return (Piece(words.status.runs_nothing(key), "attn"),)
    does = what_a_yes_does(view)
    if now.batch is not None:
        does = words.status.approves_calls(len(now.calls), len(now.batch.calls))
    if view.preview.status == "unavailable":
        return (Piece(words.status.no_preview(key, does), "attn"),)
    if view.drift is not None:
        return (Piece(words.status.changed(key, does), "attn"),)
    if now.findings:
        return (Piece(words.status.found(now.findings[0], key, does), "attn"),)
    return line(
        Piece(words.status.ALL_SEEN, "ok"), " ", Piece(words.status.ready(key, does), "strong")
    )


def what_a_yes_does(view: ApprovalView) -> str:
    """Return what a yes to *view* does, as it stands after `to`: its title, and how much of it."""
    title = " ".join(view.title.split())
    if not title or title == view.action:
        does = words.status.runs_action(escape(shown_name(view.action)))
    else:
        cut = title if len(title) <= TITLE_CHARACTERS else f"{title[: TITLE_CHARACTERS - 1]}…"
        does = escape(words.status.effect(cut))
    if view.steps:
        return words.status.in_steps(does, [escape(step.op) for step in steps_to_run(view)])
    if view.is_compared:
        return words.status.changes_fields(does, len(changed_fields(view)))
    if view.effect == "SEND" and (count := count_recipients(view)):
        return words.status.to_recipients(does, count)
    return does


GAP = 3
"""Blank cells between two keys."""


def footer_line(context: KeyContext, now: Situation, width: int) -> Line:
    """Return the keys that do something now, the recommended one first; `? help` never drops."""
    tail: Line = ()
    if context in VIEWS:
        help_key = Piece(now.registry.key_label("help"), "strong", action="help")
        tail = line(help_key, Piece(" help", "muted", action="help"), " ")
    room = width - cell_width(tail) - (2 if tail else 1)
    parts: Line = (Piece(" "),)
    keys = [
        (each.id, tuple(replace(piece, action=each.id) for piece in _key(each, state, now)))
        for each, state in _ordered(context, now)
    ]
    deny = sum(GAP + cell_width(drawn) for id_, drawn in keys if id_ == "deny")
    for number, (id_, drawn) in enumerate(keys):
        shown = line(" " * GAP if number else "", *drawn)
        deny = 0 if id_ == "deny" else deny
        if cell_width(parts) + cell_width(shown) + (deny if number else 0) > room:
            if deny:  # it never makes room for another key
                continue
            break
        parts = (*parts, *shown)
    return justify(parts, tail, width)


def _ordered(context: KeyContext, now: Situation) -> list[tuple[AnyCommand, Availability]]:
    entries = [(each, availability(each, now)) for each in now.registry.footer_order(context)]
    shown = [(each, state) for each, state in entries if state.shown and each.id != "help"]
    return sorted(shown, key=lambda entry: _rank(entry[0], now))


def _rank(each: AnyCommand, now: Situation) -> int:
    return each.rank_now(now) if each.rank_now is not None else each.footer_rank or 0


def _key(each: AnyCommand, state: Availability, now: Situation) -> Line:
    label, key_text = each.label_now(now) or each.label, now.registry.key_labels(each)
    if each.id == now.pressed_once and now.unseen:
        label = f"{label}, {words.status.unread(now.unseen)}"
    if state.decides_now:
        role: Role = "key-danger" if each.ends else "key"
        return (Piece(f" {key_text} ", role), Piece(f" {label}", "strong"))
    if each.decides and not state.asks:
        return (Piece(f" {key_text}  {label}", "muted"),)
    dots = "…" if each.asks or each.decides else ""
    return (Piece(key_text, "strong"), Piece(f" {label}{dots}", "muted"))
