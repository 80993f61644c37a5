"""The panel at the foot: asks for a reason, a filter, a passphrase, an account, or to confirm an end."""

from collections.abc import Callable

from aileron_core.clock import Clock
from aileron_core.console_port.account_intents import CancelLogin, ForgetChoice
from aileron_core.console_port.intents import Intent
from aileron_core.text import escape
from aileron_core.vault.secret import Secret
from aileron_tui import words
from aileron_tui.draw import bars
from aileron_tui.draw.document import agent_name, session_name
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.links import parse_link
from aileron_tui.draw.rows import running_question
from aileron_tui.draw.text import Line, Piece, wrap
from aileron_tui.input.commands import PANEL_CONTEXTS, CommandHandlers
from aileron_tui.input.situation import Panel, Situation
from aileron_tui.pages.account_questions import (
    account_question,
    enter_obstacle,
    passphrase_question,
    question_about_account,
)
from aileron_tui.pages.surface import Surface
from aileron_tui.state.account_panel import Question
from aileron_tui.state.deny_panel import REASON_LIMIT
from aileron_tui.state.model import Model
from aileron_tui.state.situation import running_call

FILTER_LIMIT = 200
"""Characters of a filter."""
_ROWS_BESIDE_LINK = 8
"""Rows of the screen that are no part of the question about a link."""
_WITH_FIELD: frozenset[Panel] = frozenset({"deny", "filter", "search"})


SECRET_EDITS = frozenset({"backspace", "ctrl+h", "ctrl+u"})
_SECRET_BYTES = 1024


class SecretText:
    """What is typed unseen: bytes that are overwritten. No text is ever made of them, which Python would keep."""

    def __init__(self) -> None:
        self._typed = bytearray(_SECRET_BYTES)
        self._used = 0
        self.changed: Callable[[], object] = lambda: None
        """Called when there are more or fewer characters."""

    @property
    def is_empty(self) -> bool:
        return not self._used

    @property
    def characters(self) -> int:
        return sum(byte & 0xC0 != 0x80 for byte in self._typed[: self._used])

    def take(self) -> Secret:
        """Return what was typed, and empty the line."""
        typed = self._typed[: self._used]
        secret = Secret(typed)
        typed[:] = bytes(len(typed))
        self.clear()
        return secret

    def clear(self) -> None:
        """Overwrite what was typed."""
        self._typed[:] = bytes(_SECRET_BYTES)
        self._used = 0
        self.changed()

    def press(self, key: str, character: str | None) -> None:
        """Take *key*, which edits, or types *character*."""
        if key == "ctrl+u":
            self.clear()
        elif key in SECRET_EDITS:
            self._delete_last()
        elif character is not None:
            self.append(character)

    def append(self, text: str) -> None:
        """Add *text*, if it fits."""
        added = text.encode("utf-8", "surrogatepass")
        end = self._used + len(added)
        if end <= _SECRET_BYTES:
            self._typed[self._used : end] = added
            self._used = end
        self.changed()

    def _delete_last(self) -> None:
        while self._used:
            self._used -= 1
            byte, self._typed[self._used] = self._typed[self._used], 0
            if byte & 0xC0 != 0x80:
                break
        self.changed()


class Asking:
    """The question at the foot, and the keys that answer it.

    Which question is open stands in the model. What an answer does is not decided here.
    """

    def __init__(
        self,
        model: Model,
        clock: Clock,
        submit: Callable[[Intent], None],
        surface: Surface,
        *,
        on_filter: Callable[[str], None],
        on_search: Callable[[str], None],
    ) -> None:
        """*on_filter* and *on_search* are called with what the field reads, at each change."""
        self.match_counts: tuple[int, int] = (0, 0)
        """The number of the match in view, and how many there are, for the question of a search."""
        self.secret = SecretText()
        self._links: tuple[str, ...] = ()
        """The addresses that can be opened, the one that is asked about first."""
        self._asked_before: Question | None = None
        self._shows_link = False
        """Every character of that one is on screen."""
        self._model = model
        self._clock = clock
        self._submit = submit
        self._surface = surface
        self._on_filter, self._on_search = on_filter, on_search

    @property
    def commands(self) -> CommandHandlers:
        """What opens a question, and what answers one without deciding anything."""
        reasons, choice = self._model.deny_panel.reasons, self._model.account_choice
        return {
            **{f"{each}_leave": self.close for each in PANEL_CONTEXTS},
            "deny": self._ask_deny,
            "filter": self._ask_filter,
            "stop_everything": lambda: self._ask("stop"),
            "stop_run": self._ask_stop_run,
            "end_session": self._ask_end,
            "search": self._ask_search,
            "search_enter": self._go_to_match,
            "search_leave": self._end_search,
            "link_next": self._ask_next_link,
            "link_enter": self._open_link,
            "filter_enter": self.close,
            "filter_leave": self._show_all,
            "reason_earlier": lambda: self._bring(reasons.earlier),
            "reason_later": lambda: self._bring(reasons.later),
            "unlock_vault": self._ask_passphrase,
            "passphrase_enter": self._send_passphrase,
            "choose_account": self._ask_account,
            "account_next": lambda: choice.move(1),
            "account_previous": lambda: choice.move(-1),
            "account_number": lambda: choice.select(int(self._model.key_name) - 1),
            "bind_account": lambda: self._ask_to_bind(again=False),
            "log_in_again": lambda: self._ask_to_bind(again=True),
            "rebind_account": lambda: self._ask_about_account("rebind"),
            "revoke_account": lambda: self._ask_about_account("revoke"),
            "forget_choice": self._forget_choice,
            "bind_enter": self._answer,
            "bind_leave": self._end_login,
            "login_open": self._open_login,
            "login_leave": self._end_login,
        }

    @property
    def is_open(self) -> bool:
        return self._model.panel not in ("none", "palette")

    @property
    def has_field(self) -> bool:
        asked = self._model.account_panel.question if self._model.panel == "bind" else None
        return self._model.panel in _WITH_FIELD or asked is not None or self.has_passphrase

    @property
    def has_passphrase(self) -> bool:
        """A passphrase or another secret is asked for; its field shows a dot for each character."""
        asked = self._model.account_panel.question if self._model.panel == "bind" else None
        return self._model.panel == "passphrase" or (asked is not None and asked.is_secret)

    @property
    def text(self) -> str:
        return self._surface.field.value

    def edits_by(self, key: str, *, printable: bool) -> bool:
        """Return whether *key* types or edits in the line that is open."""
        if self.has_passphrase:
            return printable or key in SECRET_EDITS
        return self.has_field and self._surface.field.edits_by(key, printable=printable)

    def draw(self, now: Situation, width: int) -> None:
        asked = self._model.account_panel.question if now.panel in ("bind", "login") else None
        if asked != self._asked_before:  # the core's answer may ask for something else
            self._asked_before = asked
            self._surface.field.put("")
            self.secret.clear()
            self._focus_field()
        message = self._model.status_message
        refused = message is not None and message.refusal
        rows = wrap(message.pieces, width - 2) if message is not None and refused else ()
        refusal = ((Piece(" "), *each.pieces) for each in rows)
        self._surface.show("question", *self._asked(now, width), *refusal)
        self._surface.show("panelkeys", bars.footer_line(now.context, now, width))

    def _asked(self, now: Situation, width: int) -> tuple[Line, ...]:
        model = self._model
        match model.panel:
            case "stop":
                running = sum(each.running for each in model.sessions)
                question = words.panels.stop_question(
                    model.queue.undecided, len(model.sessions), running
                )
                return bars.panel_question(question, words.panels.STOP_REMARK, width)
            case "stop_run" if now.running is not None:
                question = running_question(now.running, self._clock.now())
                return bars.panel_question(question, words.panels.STOP_RUN_REMARK, width)
            case "end":
                agent = session_name(now.session) if now.session is not None else ""
                remark = words.panels.end_remark(
                    now.session.waiting if now.session is not None else 0
                )
                return bars.panel_question(words.panels.end_question(agent), remark, width)
            case "filter":
                return self._filter_question(width)
            case "search":
                remark = words.panels.matches(*self.match_counts) if self.text else ""
                return bars.panel_question(words.panels.SEARCH_QUESTION, remark, width)
            case "link":
                return self._link_question(width)
            case "passphrase":
                return passphrase_question(model, width)
            case "account":
                return account_question(model, width)
            case "bind" | "login" | "rebind" | "revoke":
                return question_about_account(model, width, model.size[1])
            case _:
                view = now.approval
                asked = (
                    words.panels.deny_question(escape(view.title), agent_name(view)) if view else ""
                )
                gone = view is not None and view.requester_gone
                together = words.panels.equal_calls(now.equal_count, gone=gone)
                return bars.panel_question(asked, together, width)

    def _filter_question(self, width: int) -> tuple[Line, ...]:
        model = self._model
        if model.parsed_filter.problems:
            return bars.panel_question(
                words.filters.QUESTION, model.parsed_filter.problems[0], width, "attn"
            )
        remark = words.filters.counted(*model.row_counts) if model.filtered else ""
        return bars.panel_question(words.filters.QUESTION, remark, width)

    def _link_question(self, width: int) -> tuple[Line, ...]:
        """Return the question before a link is opened: its host, then the whole address."""
        target = parse_link(self._links[0]) if self._links else None
        if target is None:
            return ()
        rows = list(bars.panel_question(words.panels.link_question(target.host), "", width))
        warned = (
            Piece(each, "attn")
            for each in words.panels.link_warnings(target.has_user, target.is_renamed)
        )
        for pieces in (*((each,) for each in warned), foreign_text(target.url, "strong")):
            rows += [(Piece("  "), *each.pieces) for each in wrap(pieces, width - 4)]
        self._shows_link = len(rows) <= self._model.size[1] - _ROWS_BESIDE_LINK
        if self._shows_link:
            return tuple(rows)
        remark = words.panels.long_link(target.host, len(target.url))
        return bars.panel_question(words.panels.LINK_TOO_LONG, remark, width, "attn")

    # Opening and closing

    def ask_links(self, links: tuple[str, ...]) -> None:
        """Show where the first of *links* leads, and ask whether to open it."""
        if links:
            self._links = links
            self._ask("link", links[0])

    def _ask_next_link(self) -> None:
        self._links = (*self._links[1:], *self._links[:1])
        self._model.arming.reset()

    def _open_link(self) -> None:
        target = parse_link(self._links[0]) if self._links else None
        self.close()
        if target is not None and self._shows_link:
            self._surface.open_link(target.url)

    def _ask_search(self) -> None:
        """Ask what to search for in the document; it follows every key."""
        self._ask(
            "search", text=self._model.search_text, placeholder=words.panels.SEARCH_PLACEHOLDER
        )

    def _go_to_match(self) -> None:
        self.close()
        if self._model.search_text:
            self._model.say(words.panels.matches(*self.match_counts), self._clock.monotonic())

    def _end_search(self) -> None:
        self._on_search("")
        self.close()

    def _ask(self, panel: Panel, key: str = "", *, text: str = "", placeholder: str = "") -> None:
        """Open *panel* about *key*, with *text* in the field."""
        self._model.open_panel(panel, key)
        limit = FILTER_LIMIT if panel in ("filter", "search") else REASON_LIMIT
        self._surface.field.ask(text, placeholder, limit)
        self._focus_field()

    def _focus_field(self) -> None:
        if self.has_passphrase:
            self._surface.focus_on("secret")
        else:
            self._surface.focus_on("field" if self.has_field else "nothing")

    def _ask_deny(self) -> None:
        item = self._model.queue.current
        if item is not None and item.approval is not None:
            self._model.deny_panel.open(item.approval)
            self._ask("deny", item.key, placeholder=words.panels.REASON_PLACEHOLDER)

    def _ask_filter(self) -> None:
        """Ask which rows to show; the list follows every key."""
        self._ask(
            "filter", text=self._model.parsed_filter.text, placeholder=words.filters.PLACEHOLDER
        )

    def _ask_stop_run(self) -> None:
        running = running_call(self._model)
        if running is not None:
            if self._model.view == "activity":  # else the next call would take the cursor
                self._model.activity.stop_following()
            self._ask("stop_run", running.run_id)

    def _ask_end(self) -> None:
        session = self._model.sessions_table.current
        if session is not None:
            self._ask("end", session.session_id)

    def close(self) -> None:
        """Take the question away; nothing is decided."""
        self._model.close_panel()
        self._model.vault_panel.close()
        if not self._model.account_panel.is_sent:
            self._model.account_panel.close()
        self.secret.clear()
        self._surface.field.put("")
        self._surface.focus_on("document")

    def close_if_over(self, now: Situation) -> bool:
        """Close a question about what is gone; return whether it was closed."""
        panel = now.panel
        denied = now.deny_blocked_by in ("over", "empty", "lost", "storage", "undrawable")
        ended = now.session is None or now.session.session_id != self._model.panel_key
        over = (
            (panel == "deny" and denied)
            or (panel == "end" and (ended or not now.can_change))
            or (panel == "stop" and not now.can_change)
            or (panel == "stop_run" and not self._still_runs(now))
            or (panel == "passphrase" and self._is_answered(now))
            or (panel in ("bind", "login") and (now.vault != "unlocked" or not now.can_change))
            or (
                panel in ("rebind", "revoke")
                and now.bound_account != self._model.account_panel.bound
            )
            or (panel == "account" and self._model.account_choice.need != now.account_need)
        )
        if over:
            self.close()
        return over

    def _still_runs(self, now: Situation) -> bool:
        running = now.running
        return now.can_change and running is not None and running.run_id == self._model.panel_key

    def _is_answered(self, now: Situation) -> bool:
        """Return whether no passphrase is wanted any more."""
        wanted = "absent" if self._model.vault_panel.creates else "locked"
        return now.vault != wanted or not now.can_change

    # The vault

    def _ask_passphrase(self) -> None:
        model = self._model
        model.vault_panel.open(self._clock.monotonic(), creates=model.vault.state == "absent")
        self.secret.clear()
        self._ask("passphrase")

    def _send_passphrase(self) -> None:
        """Hand what was typed to the core, which overwrites it; the line is empty afterwards."""
        model, field = self._model, self.secret
        if why := enter_obstacle(model, self._clock, is_empty=field.is_empty):
            model.refuse(why, self._clock.monotonic())
        elif (intent := model.vault_panel.enter(field.take())) is not None:
            self._submit(intent)

    def _ask_account(self) -> None:
        item = self._model.queue.current
        need = item.approval.account_need if item is not None and item.approval else None
        if item is not None and need is not None:
            self._model.account_choice.open(need)
            self._ask("account", item.key)

    # Accounts

    def _ask_to_bind(self, *, again: bool) -> None:
        """Ask for an account of the selected row's connector, or for a new login to the one that there is."""
        model, row = self._model, self._model.accounts.current
        if row is None or row.user is None:
            return
        model.account_panel.open(row.user, row.bound if again else None, model.accounts.names)
        self._ask("bind")
        if (intent := model.account_panel.begin()) is not None:
            self._submit(intent)

    def _ask_about_account(self, panel: Panel) -> None:
        row = self._model.accounts.current
        if row is not None and row.bound is not None:
            self._ask(panel, row.bound.name)
            self._model.account_panel.open(row.user, row.bound)

    def _forget_choice(self) -> None:
        row = self._model.accounts.current
        for action in row.bound.remembered_for if row is not None and row.bound else ():
            self._submit(ForgetChoice(name=row.bound.name, action=action))  # pyright: ignore[reportOptionalMemberAccess]

    def _answer(self) -> None:
        """Take what was typed; hand it to the core once nothing more is asked."""
        model, panel = self._model, self._model.account_panel
        asked = panel.question
        if asked is None:
            return
        if asked.is_secret:
            if why := enter_obstacle(model, self._clock, is_empty=False):
                model.refuse(why, self._clock.monotonic())
                return
            intent = panel.enter_secret(self.secret.take())
        else:
            intent = panel.enter_text(self._surface.field.value)
        if intent is not None:
            self._submit(intent)
        elif panel.question is None and panel.login is not None:
            self._ask("login")

    def _open_login(self) -> None:
        login = self._model.account_panel.login
        if login is not None:
            self._surface.open_link(login.url)

    def _end_login(self) -> None:
        """Leave the question; a login that goes on is forgotten."""
        login = self._model.account_panel.login
        if login is not None:
            self._submit(CancelLogin(login_id=login.login_id))
        self._model.account_panel.is_sent = False
        self.close()

    # Typing

    def typed(self, text: str) -> None:
        """The field reads *text* now."""
        if self._model.panel == "filter":
            self._on_filter(text)
        elif self._model.panel == "search":
            self._on_search(text)

    def _show_all(self) -> None:
        """Forget the filter."""
        self._model.set_filter("", self._clock.now())
        self.close()

    def _bring(self, other: Callable[[str], str]) -> None:
        """Put another reason into the field; it has to be read before a key sends it."""
        if self._model.key_in_burst:
            return  # no hand pressed it
        self._surface.field.put(other(self.text))
        self._model.arming.reset()
