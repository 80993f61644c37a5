"""Rules for actions in a file of the home: what its item says, and what becomes of one that names no field."""

from pathlib import Path

from aileron_core.console_port.events import StandingUpdated
from aileron_core.console_port.intents import Accept
from aileron_core.policy.policy_file import parse_policy
from aileron_tui.draw.file_page import with_content
from aileron_tui.draw.text import plain_text
from tests.core.runs.test_standing import end
from tests.support.core_harness import DRAFT, Core, Mailbox, install_examples
from tests.support.granting import launched

DENY = '[[rule]]\nactions = ["{}"]\ndecision = "deny"\nwhere = {{ "{}" = {{ is = "x" }} }}\n'


async def test_it_asks_in_place_of_denying_nothing(tmp_path: Path, mailbox: Mailbox) -> None:
    """Else a typing error would lift the prohibition, in an action that is not gated unseen."""
    rules = DENY.format("get-*", "fetched.Sender") + DENY.format("*", "args.draft_id")
    install_examples(tmp_path)
    async with Core.open(tmp_path, mailbox, policy=parse_policy(rules)) as core:
        await launched(core)
        row = await end(core, await core.call("get-draft", {"id": DRAFT}))
        assert row.state == "pending"
        (view,) = core.views(row.approval_id or "")
        assert view.rule == "it names a field that no accepted action has (policy.toml:1)"
        (problem,) = core.app.library.problems_and_alarms()
        assert (problem.file, problem.key) == ("policy.toml", 'rule[0].where."fetched.Sender"')
        assert problem.message.endswith("the console is restarted, the rule asks.")
        listed = await core.call("list-drafts", {})
        assert listed.row.state == "completed"


async def test_the_item_of_a_new_file_begins_with_what_it_allows(tmp_path: Path) -> None:
    """What lets any other argument through first, in amber; what it denies allows nothing."""
    rules = (
        '[[rule]]\nactions = ["list-*"]\ndecision = "allow"\n'
        '[[rule]]\nactions = ["get-draft"]\ndecision = "allow"\nother_args = "any"\n'
    )
    async with Core.open(tmp_path, policy=parse_policy(rules + DENY.format("x", "args.y"))) as core:
        (item,) = [each for each in core.app.library.not_accepted() if each.kind == "policy"]
        blocks = with_content((), item.content, unfold=False)
        assert [(plain_text(each.pieces), each.pieces[0].role) for each in blocks[1:3]] == [
            ("+ allows, with any other arguments: get-draft", "attn"),
            ("+ allows list-*", "attn"),
        ]
        await core.do(Accept(kind="policy", name=item.name, digest=item.digest))
        told = [each for each in core.events if isinstance(each, StandingUpdated)]
        assert [rule.counts for rule in told[-1].rules] == [True, True, True]
