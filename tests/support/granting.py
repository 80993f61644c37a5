"""What a person can grant beside a waiting call, and granting it, as the console does."""

from collections.abc import Mapping
from typing import Any

from aileron_core.console_port.events import OffersRead
from aileron_core.console_port.intents import Approve, ReadOffers
from aileron_core.console_port.standing import FieldTest, GrantTerms, OffersView
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.runs.grants import Grant
from tests.support.core_harness import Core, open_session


async def call_as_launched(core: Core, **terms: Any) -> None:
    """Have *core* call as a session that a launcher opened: one that opened itself has no grants."""
    core.session = (await open_session(core.app, **{"opened_by": "launch"} | terms)).session


async def offers_of(core: Core, view: ApprovalView) -> OffersView:
    await core.do(ReadOffers(approval_id=view.approval_id))
    return next(each.offers for each in reversed(core.events) if isinstance(each, OffersRead))


async def terms_of(
    core: Core, view: ApprovalView, number: int, changed: Mapping[str, FieldTest] = {}, **terms: Any
) -> GrantTerms:
    """Return the terms of the shape *number*, with the tests of *changed* in place of its own."""
    offered = await offers_of(core, view)
    assert not offered.why_none, offered.why_none
    shape = next(each for each in offered.offers if each.number == number)
    pairs = zip((each.key for each in offered.fields), shape.tests, strict=True)
    tests = tuple((key, changed.get(key, test)) for key, test in pairs)
    return GrantTerms(number=number, tests=tests, **{"seconds": 3600, "uses": 5} | terms)


async def grant(core: Core, view: ApprovalView, number: int, **more: Any) -> Grant:
    """Approve *view* with the grant of the shape *number*, and return that once the call has ended."""
    terms = await terms_of(core, view, number, **more)
    await core.do(Approve(approval_id=view.approval_id, digest=view.digest, grant=terms))
    await core.ended(view)
    await core.app.approvals.mark_delivered(view.approval_id)
    return max(core.app.standing.grants, key=lambda each: each.view.made_at)
