"""The keys of grants and rules."""

from collections.abc import Iterable

from aileron_core.actions.model import is_builtin
from aileron_core.console_port.intents import EndGrant
from aileron_core.errors import FileProblems
from aileron_core.policy.policy_file import parse_policy
from aileron_core.policy.rule_text import to_toml
from aileron_tui import words
from aileron_tui.input.commands import Command
from aileron_tui.pages.command import unless
from aileron_tui.pages.commands.everywhere import view_key
from aileron_tui.pages.listing import ListPage
from aileron_tui.state.situation import Situation

_Key = Command[Situation, ListPage]
_has_grant = unless(lambda now: now.model.rules.grant, words.rules.NO_GRANT)


def _ended(now: Situation) -> Iterable[EndGrant]:
    if (grant := now.model.rules.grant) is not None:
        yield EndGrant(grant_id=grant.grant_id)


def _copy(page: ListPage) -> None:
    """Copy the selected grant as a rule, unless no rule can hold it."""
    if (grant := page.model.rules.grant) is None:
        return
    if is_builtin(grant.action):
        page.model.say(words.rules.OF_A_TOOL, page.clock.monotonic())
        return
    text = to_toml(grant.action, grant.decision, grant.tests)
    try:
        parse_policy(text)
    except FileProblems:
        said = words.rules.CANNOT_BE_RULE
    else:
        page.surface.copy(text)
        said = words.rules.copied(text.count("\n"))
    page.model.say(said, page.clock.monotonic())


RULES = (
    view_key("rules", "7", "grants and rules: what answers calls in your place", rank=85),
    _Key(
        "end_grant", ("x",), "end", ("rules",), "end the grant, at once", decides=True, footer_rank=6,
        needs="core", phrase="end it", why_not=_has_grant, intents=_ended,
    ),
    _Key(
        "show_call", ("enter",), "its calls", ("rules",), "show the calls that the grant answered, newest first",
        fixed=True, footer_rank=5, never_with="open",
        why_not=unless(lambda now: now.opened and now.model.rules.calls, words.rules.NO_CALLS),
        do=lambda page: page.model.rules.show_next_call(),
    ),
    _Key(
        "copy_rule", ("y",), "copy as a rule", ("rules",), "copy the grant as lines of policy.toml", footer_rank=7,
        why_not=_has_grant, do=_copy,
    ),
)  # fmt: skip
