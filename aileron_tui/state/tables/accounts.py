"""The accounts: those that are bound, and the connectors that need one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from aileron_core.console_port.account_views import (
    AccountsUpdated,
    BoundAccountView,
    CredentialUserView,
)
from aileron_tui import words
from aileron_tui.draw.blocks import Block, heading, value
from aileron_tui.draw.columns import Column, Row
from aileron_tui.draw.foreign_text import foreign_text, host_names
from aileron_tui.draw.header import draw_warnings
from aileron_tui.draw.text import Line, Piece, line, truncate
from aileron_tui.draw.times import age, clock_seconds, day
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.state.filter import FilterFields
from aileron_tui.state.tables.table import KeyedTable


@dataclass(frozen=True, slots=True)
class AccountRow:
    """A bound account, or (without one) a connector that needs one."""

    bound: BoundAccountView | None
    user: CredentialUserView | None
    """The accepted connector of its name and kind; None where there is none."""

    @property
    def connector(self) -> str:
        if self.bound is not None:
            return self.bound.connector
        return self.user.connector if self.user is not None else ""

    @property
    def hosts(self) -> tuple[str, ...]:
        owner = self.bound or self.user
        return owner.hosts if owner is not None else ()


class AccountsTable(KeyedTable[AccountRow]):
    """One row for each account by name, then one for each connector that has none it can use."""

    fields: ClassVar[tuple[str, ...]] = ("account", "state", "host", "kind")
    decides: ClassVar[bool] = True

    def __init__(self, accounts: AccountsUpdated, now: float) -> None:
        super().__init__(
            Column("status", lambda e, _: _status(e), 18),
            Column("account", _account, 22, 12),
            Column("used", _used, 8),
            Column("name", _name, 28, 14),
            Column("connector", lambda e, _: foreign_text(e.connector, "muted"), 26, 14, 120),
            Column("host", lambda e, _: host_names(e.hosts), 0, 20, 120),
        )
        self.update(accounts, now)

    def update(self, accounts: AccountsUpdated, now: float) -> None:
        """Replace the rows by what is bound now."""
        self.names = frozenset(each.name for each in accounts.accounts)
        rows = [AccountRow(each, _user_of(each, accounts)) for each in accounts.accounts]
        usable = {each.connector for each in accounts.accounts if not each.problem}
        rows += [AccountRow(None, each) for each in accounts.users if each.connector not in usable]
        self.set_items(rows, now)

    def select_connector(self, connector: str) -> None:
        """Select the row of *connector*: its account that cannot be used, else the one that has it bound."""
        rows = [self.item(row) for row in range(len(self))]
        found = [row for row, each in enumerate(rows) if each and each.connector == connector]
        if found:
            self.select(found[0])

    def key_of(self, item: AccountRow) -> str:
        if item.bound is not None:
            return f"account:{item.bound.name}"
        return f"connector:{item.user.hash if item.user is not None else ''}"

    def fields_of(self, item: AccountRow) -> FilterFields:
        bound, user = item.bound, item.user
        hosts = " ".join(item.hosts)
        account = f"{bound.account} {bound.name}" if bound is not None else ""
        kind = bound.kind if bound is not None else user.kind if user is not None else ""
        named = {"account": account, "state": _status_text(item), "host": hosts, "kind": kind}
        text = f"{account} {item.connector} {hosts} {_status_text(item)}"
        return FilterFields(
            text=text, fields=named, at=(bound.created_at or None) if bound else None
        )

    @property
    def version(self) -> tuple[object, ...]:
        """What a person must look at anew when it differs: everything but when it was last used."""
        item = self.current
        if item is None:
            return ()
        bound = item.bound
        shown = (bound.connector_hash, bound.hosts, bound.account, bound.problem) if bound else ()
        return (self.key, shown, item.user)

    # Drawing

    def summary(self, now: float, width: int) -> Line:
        bound = [each.bound for each in self._items if each.bound is not None]
        unusable = sum(bool(each.problem) for each in bound)
        text = words.vault.count(len(bound), unusable)
        return (Piece(f" {text}", "attn" if unusable else "muted"),)

    def detail_of(self, item: AccountRow, now: float) -> Line:
        """Return why it cannot be used, or what its connector may do with it."""
        if item.bound is None:
            more: Line = (Piece(words.vault.NEEDS_REMARK, "muted"),)
        elif item.bound.problem:
            more = foreign_text(item.bound.problem, "attn")
        else:
            more = foreign_text(", ".join(item.bound.hosts), "muted")
        return line(*foreign_text(item.connector, "muted"), Piece(" · ", "muted"), *more)

    def head_of(self, item: AccountRow, width: int, now: float) -> tuple[Line, ...]:
        bound = item.bound
        title = bound.name if bound is not None else item.connector
        first = line(" ", *_status(item), "  ", *foreign_text(title, "strong"))
        rows = [truncate(first, width - 1)]
        if bound is not None and bound.problem:
            rows += draw_warnings((foreign_text(bound.problem, "attn"),), width, compact=False)
        return tuple(rows)

    def blocks_of(self, item: AccountRow, *, unfold: bool) -> Iterable[Block]:
        made = [*_bound_blocks(item.bound)] if item.bound is not None else []
        if item.user is not None:
            made += _user_blocks(item.user, is_bound=bool(made))
        return made

    def status(self, registry: CommandRegistry) -> Line:
        text = words.vault.STATUS if self._items else words.vault.NONE
        return (Piece(text, "muted"),)


def _user_of(bound: BoundAccountView, accounts: AccountsUpdated) -> CredentialUserView | None:
    found = [
        each
        for each in accounts.users
        if each.connector == bound.connector and each.kind == bound.kind
    ]
    same = [each for each in found if each.hash == bound.connector_hash]
    return (same or found or [None])[-1]


def _status_text(item: AccountRow) -> str:
    said = words.vault
    if item.bound is None:
        return said.NOT_BOUND
    if not item.bound.problem:
        return said.ACTIVE
    return said.STALE if item.bound.remedy == "reauthorize" else said.NOT_COUNTING


def _status(item: AccountRow) -> Line:
    text = _status_text(item)
    if item.bound is None:
        return (Piece(f"○ {text}", "attn"),)
    return (Piece(f"▲ {text}", "attn"),) if item.bound.problem else (Piece(f"✓ {text}", "ok"),)


def _account(item: AccountRow, row: Row) -> Line:
    return foreign_text(item.bound.account, row.role) if item.bound is not None else ()


def _used(item: AccountRow, row: Row) -> Line:
    if item.bound is None:
        return ()
    used = item.bound.last_used_at
    return (Piece(words.vault.NEVER if used is None else age(row.now - used), "muted"),)


def _name(item: AccountRow, row: Row) -> Line:
    if item.bound is not None:
        return foreign_text(item.bound.name)
    return foreign_text(item.user.default_name if item.user is not None else "", "muted")


def _time(at: float | None) -> str:
    return words.vault.NEVER if at is None else f"{day(at)} {clock_seconds(at)}"


def _bound_blocks(bound: BoundAccountView) -> list[Block]:
    made = [
        heading(words.vault.SECTION, (Piece(words.vault.SECTION_REMARK, "muted"),)),
        value("Account", foreign_text(bound.account, "strong")),
        value("Name", foreign_text(bound.name)),
        value("Kind", line(bound.kind)),
        value("Connector", foreign_text(bound.connector)),
        value("Digest", foreign_text(bound.connector_hash)),
    ]
    if bound.names:
        made.append(value("Values", foreign_text(", ".join(bound.names))))
    made += _hosts(words.vault.hosts_label(bound.kind), bound.hosts)
    made.append(value("Bound", line(_time(bound.created_at or None))))
    made.append(value("Last used", line(_time(bound.last_used_at))))
    if bound.scopes:
        made.append(value("Granted", foreign_text(", ".join(bound.scopes))))
    if bound.missing_scopes:
        made.append(value("Not granted", foreign_text(", ".join(bound.missing_scopes), "attn")))
    made += [
        value("Remembered for" if number == 0 else "", foreign_text(action))
        for number, action in enumerate(bound.remembered_for)
    ]
    if bound.problem:
        made.append(value("Problem", foreign_text(bound.problem, "attn")))
        command = f"aileron binding {bound.remedy} {bound.name}"
        made.append(value("In a shell", foreign_text(command, "strong")))
    return made


def _hosts(label: str, hosts: Iterable[str]) -> list[Block]:
    return [
        value("" if number else label, foreign_text(host, "strong"))
        for number, host in enumerate(hosts)
    ]


def _user_blocks(user: CredentialUserView, *, is_bound: bool) -> list[Block]:
    said = words.vault
    made = [
        heading(said.CONNECTOR_SECTION, (Piece(said.CONNECTOR_REMARK, "muted"),))
        if is_bound
        else heading(said.NEEDS_SECTION, (Piece(said.NEEDS_REMARK, "muted"),)),
        value("Connector", foreign_text(user.ref, "strong")),
        value("Digest", foreign_text(user.hash)),
    ]
    if user.names:
        made.append(value("Needs", foreign_text(", ".join(user.names))))
        made.append(value("Held by", line(said.HELD_BY)))
    else:
        made.append(value("Sends", foreign_text(said.sent_as(user.kind, user.header))))
    made += _hosts("Reaches" if user.names else "To", user.hosts)
    if user.scope:
        made.append(value(said.AUTHOR, foreign_text(user.scope, "claim"), "claim"))
    return made
