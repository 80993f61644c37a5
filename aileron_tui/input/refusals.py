"""Why a key does nothing at this moment: one sentence for each press that has no effect."""

from collections.abc import Callable, Mapping
from typing import Literal

from aileron_tui import words
from aileron_tui.input.arming import Obstacle
from aileron_tui.input.situation import BlockedBy, Situation, availability

Change = Literal["cursor", "item", "list", "screen"]
"""What moved last under the person's eye."""

_said = words.refusals
_BLOCKS: Mapping[BlockedBy, str] = {
    "lost": _said.LOST,
    "storage": _said.STORAGE,
    "small": _said.TOO_SMALL,
    "empty": _said.NO_ITEM,
    "sending": _said.SENDING,
    "checking": _said.CHECKING,
    "fetching": _said.FETCHING,
    "deadline": _said.DEADLINE,
    "drawing": _said.DRAWING,
    "undrawable": _said.UNDRAWABLE,
}


def too_soon(key: str, obstacle: Obstacle, moved: Change) -> str:
    """Return why a press of *key*, its label, did not count; *moved*: what was drawn last."""
    if obstacle == "unfocused":
        return _said.press_again(_said.NOT_IN_FOCUS, key)
    return _said.again(_said.TOO_SOON[moved if obstacle == "drawn" else obstacle], key)


def refusal(commands: tuple[str, ...], key: str, now: Situation) -> str:
    """Return why *key*, its label, does nothing in the situation *now*; *commands* are those that it has here."""
    if now.panel not in ("none", "palette") and not commands:
        return _said.did_nothing(key, _said.QUESTION)
    if not commands and now.reader:
        leave = now.registry.key_label("reader_leave")
        return _said.did_nothing(key, _said.in_reader(leave))
    if not commands:
        return _said.unknown_key(key, now.registry.key_label("help"))
    command = commands[0]
    if (
        command in ("approve", "approve_session")
        and now.paused_at is not None
        and now.blocked_by == "none"
    ):
        return _said.on_hold(key, now.registry.key_label("go_on"))
    return _said.did_nothing(key, _why(command, now))


def no_move(command: str, key: str, *, in_document: bool = False) -> str:
    """Return why *command*, which moves or reads on, moved nothing; *in_document*: it moves no rows."""
    why = _ENDS.get(command, _said.ONLY_ROW)
    if in_document:
        why = {_said.LAST_ROW: _said.AT_END, _said.FIRST_ROW: _said.AT_START}.get(why, why)
    return _said.did_nothing(key, why)


def is_refused(commands: tuple[str, ...], now: Situation) -> bool:
    """Return whether none of *commands* does anything in the situation *now*."""
    own = f"view_{now.view}"
    return all(each == own or not availability(each, now).shown for each in commands)


_ENDS: Mapping[str, str] = {
    "read_on": _said.AT_END,
    "line_down": _said.AT_END,
    "read_back": _said.AT_START,
    "line_up": _said.AT_START,
    "document_end": _said.AT_END,
    "document_start": _said.AT_START,
    "next_match": _said.ONLY_MATCH,
    "previous_match": _said.ONLY_MATCH,
    "next": _said.LAST_ROW,
    "last": _said.LAST_ROW,
    "page_down": _said.LAST_ROW,
    "previous": _said.FIRST_ROW,
    "first": _said.FIRST_ROW,
    "page_up": _said.FIRST_ROW,
}


def _blocked(blocked_by: BlockedBy, now: Situation, otherwise: str) -> str:
    if blocked_by == "vault":
        need = now.account_need
        return words.vault.REFUSED[need.reason if need is not None else "locked"]
    if blocked_by == "over" and now.approval is not None and now.approval.awaits_acknowledgement:
        return _said.UNKNOWN
    if blocked_by == "over":
        ended = now.approval is None or now.approval.ended_at is not None
        return _said.ENDED if ended else _said.DECIDED
    return _BLOCKS.get(blocked_by, otherwise)


def _of_call(now: Situation, blocked_by: BlockedBy) -> str:
    if now.view == "waiting" and now.approval is None and now.blocked_by in ("none", "drawing"):
        return _said.NO_CALL
    return _blocked(blocked_by, now, _said.NO_CALL)


def _acceptance(now: Situation) -> str:
    if now.acceptable is None and now.suite is None and now.blocked_by not in ("lost", "storage"):
        return _said.NO_FILE if now.rows else _said.NO_ITEM
    return _blocked(now.blocked_by, now, _said.NO_FILE)


def _of_document(otherwise: str) -> Callable[[Situation], str]:
    return lambda now: otherwise if now.shows_document else _said.NO_DOCUMENT


def _of_core(otherwise: str) -> Callable[[Situation], str]:
    """Return what keeps something from being asked of the core."""
    return lambda now: _BLOCKS[now.blocked_by] if not now.can_change else otherwise


def _refetch(now: Situation) -> str:
    if now.approval is not None and now.approval.preview.status == "none":
        return _said.NO_PREVIEW
    return _of_call(now, now.blocked_by)


def _look_again(now: Situation) -> str:
    return _of_core(_said.KNOWN_OUTCOME if now.rows else _said.NO_ITEM)(now)


def _open(now: Situation) -> str:
    return _said.OPENED if now.opened else _said.NO_ITEM


def _of_account(now: Situation, otherwise: str) -> str:
    if now.vault != "unlocked":
        otherwise = (
            words.accounts.NO_VAULT if now.vault == "absent" else words.accounts.VAULT_LOCKED
        )
    return _of_core(otherwise)(now)


_REASONS: Mapping[str, Callable[[Situation], str]] = {
    "approve": lambda now: _of_call(now, now.blocked_by),
    "approve_session": lambda now: (
        _said.NOT_FOR_SESSION
        if now.approval is not None and not now.can_be_remembered
        else _of_call(now, now.blocked_by)
    ),
    "deny": lambda now: _of_call(now, now.deny_blocked_by),
    "deny_enter": lambda now: _of_call(now, now.deny_blocked_by),
    "deny_equal": lambda now: (
        _said.NO_EQUAL if not now.equal_count else _of_call(now, now.deny_blocked_by)
    ),
    "accept": _acceptance,
    "accept_rest": lambda now: _said.NO_SUITE if now.suite is not None else _acceptance(now),
    "withdraw_acceptance": _of_core(_said.NOT_ACCEPTED),
    "acknowledge": _look_again,
    "look_again": _look_again,
    "refresh": _refetch,
    "whole": _of_document(_said.NO_CHANGE),
    "read_on": _of_document(_said.ALL_IN_VIEW),
    "read_back": _of_document(_said.ALL_IN_VIEW),
    "line_down": _of_document(_said.ALL_IN_VIEW),
    "line_up": _of_document(_said.ALL_IN_VIEW),
    "unfold": _of_document(_said.NO_MARKS),
    "wrap_marks": _of_document(_said.NO_WRAPS),
    "read_whole": _of_document(_said.ALL_IN_VIEW),
    "switch_pane": _of_document(_said.NO_DOCUMENT),
    "search": _of_document(_said.NO_SEARCH),
    "next_match": _of_document(_said.NO_MATCH),
    "previous_match": _of_document(_said.NO_MATCH),
    "document_start": _of_document(_said.ALL_IN_VIEW),
    "document_end": _of_document(_said.ALL_IN_VIEW),
    "links": _of_document(_said.NO_LINKS),
    "copy": _of_document(_said.NO_DOCUMENT),
    "pager": _of_document(_said.NO_DOCUMENT),
    "open_review": lambda now: _of_call(now, now.blocked_by),
    "open": _open,
    "filter": _open,
    "back": lambda now: _said.NOTHING_TO_LEAVE,
    "follow": lambda now: _said.OPENED if now.opened else _said.FOLLOWING,
    "verify": lambda now: _BLOCKS.get(now.blocked_by, "") if not now.verifying else _said.VERIFYING,
    "replay": lambda now: _said.NOT_KEPT,
    "allow_host": _of_core(_said.NO_HOST_TO_ALLOW),
    "end_session": _of_core(_said.NO_SESSION),
    "end_enter": _of_core(_said.NO_SESSION),
    "pause": _of_core(_said.PAUSED_ALREADY),
    "go_on": _of_core(_said.NOT_PAUSED),
    "undo_run": _of_core(_said.NOTHING_TO_UNDO),
    "stop_run": _of_core(_said.NOT_RUNNING),
    "stop_run_enter": _of_core(_said.NOT_RUNNING),
    "stop_everything": _of_core(_said.LOST),
    "stop_enter": _of_core(_said.LOST),
    "unlock_vault": lambda now: _of_core(
        words.vault.NO_VAULT if now.vault == "absent" else words.vault.NOT_LOCKED
    )(now),
    "lock_vault": _of_core(words.vault.NOT_UNLOCKED),
    "choose_account": _of_core(words.vault.NO_CHOICE),
    "account_enter": _of_core(words.vault.NO_CHOICE),
    "account_remember": _of_core(words.vault.NO_CHOICE),
    "passphrase_enter": lambda now: (
        _said.BEING_CHECKED if now.passphrase_sent else _of_core(_said.LOST)(now)
    ),
    "bind_account": lambda now: _of_account(now, words.accounts.NO_CONNECTOR),
    "rebind_account": lambda now: _of_account(
        now, words.accounts.COUNTS_ALREADY if now.credential_user else words.accounts.NO_CONNECTOR
    ),
    "log_in_again": lambda now: _of_account(now, words.accounts.NO_LOGIN),
    "revoke_account": lambda now: _of_account(now, words.accounts.NO_ACCOUNT),
    "forget_choice": lambda now: _of_account(now, words.accounts.NOTHING_REMEMBERED),
    "reason_earlier": lambda now: _said.NO_EARLIER,
    "reason_later": lambda now: _said.NO_LATER,
}


def _why(command: str, now: Situation) -> str:
    if command in _REASONS:
        return _REASONS[command](now)
    return _said.SAME_VIEW if command.startswith("view_") else _said.ONLY_ROW
