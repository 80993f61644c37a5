"""A rule that names a field which no accepted action has is a problem in the console, and asks."""

from pathlib import Path

from aileron_core.policy.policy_file import parse_policy
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
        listed = await core.call("list-drafts", {})
        assert listed.row.state == "completed"
