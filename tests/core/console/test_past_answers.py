"""What a new grant or rule would have answered is tried on what the person answered before."""

from pathlib import Path
from typing import Any

from aileron_core.console_port.events import ShapeTried
from aileron_core.console_port.intents import Approve, Deny, TryShape
from aileron_core.console_port.standing import TriedShape
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.library.accepted_settings import load_policy
from aileron_core.vault.secret import Secret
from tests.support.core_harness import DRAFT, PASSPHRASE, Core, Mailbox, install_examples, readdress
from tests.support.granting import call_as_launched, terms_of

TO = "Anna Brandt <anna.brandt@nordlicht.example>"


async def readdressed(core: Core, **args: Any) -> ApprovalView:
    await call_as_launched(core)
    return await core.ask_for("readdress", {"id": DRAFT, **args})


async def tried_shape(core: Core, view: ApprovalView, number: int) -> TriedShape:
    terms = await terms_of(core, view, number)
    await core.do(TryShape(approval_id=view.approval_id, tests=terms.tests))
    return next(each.tried for each in reversed(core.events) if isinstance(each, ShapeTried))


async def test_the_answers_that_a_shape_would_have_given_come_with_the_denied_ones_first(
    tmp_path: Path, mailbox: Mailbox
) -> None:
    install_examples(tmp_path, readdress=readdress('reach = ["Subject"]\n'))
    async with Core.open(tmp_path, mailbox) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        await core.until_record("library.authenticated", 3)
        for to in (TO, "a@b.example"):
            view = await readdressed(core, to=to)
            await core.do(Approve(approval_id=view.approval_id, digest=view.digest))
            await core.ended(view)
        view = await readdressed(core, to="x@y.example")
        await core.do(Deny(approval_id=view.approval_id, reason="not to them"))
        now = await readdressed(core, to="b@c.example")
        found = await tried_shape(core, now, 3)
        newest = found.matching[0]
        assert (newest.approved, newest.reason) == (False, "not to them")
        assert (found.looked_at, found.unread, found.misfits) == (len(found.matching), 0, ())
        assert (await tried_shape(core, now, 1)).matching == ()
    rules = tmp_path / "policy.toml"
    rules.write_text('[[rule]]\nactions = ["readdress"]\ndecision = "allow"\nother_args = "any"\n')
    async with Core.open(tmp_path, mailbox, policy=load_policy(rules)) as core:
        core.app.vault.unlock(Secret(PASSPHRASE))

        def seen() -> TriedShape | None:
            items = core.app.library.not_accepted()
            return next((e.tried for e in items if e.tried is not None and e.tried.looked_at), None)

        of_rules = await core.until(seen)
        assert [each.approved for each in of_rules.matching] == [False, True, True]
