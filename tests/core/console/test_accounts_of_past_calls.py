"""Which account a call used is shown long after it, from its records."""

from aileron_core.console_port import CallRead
from tests.core.runs.test_accounts import Place, bind, place, waiting
from tests.support.core_harness import Core

__all__ = ["place"]


async def opened(core: Core, run_id: str) -> CallRead:
    """Open the call of *run_id* as a person does."""
    return await core.app.console.calls.read(run_id)


async def test_an_opened_call_of_an_earlier_console_names_its_account(place: Place) -> None:
    """A gated one, and one that ran unasked once it had its account."""
    async with place.open() as core:
        gated, free = await waiting(core), await waiting(core, "see")
        name = (await bind(core)).name
        shown = await core.looked(gated.approval_id)
        assert shown.gated
        await core.approve(shown)
        assert (await core.ended(shown)).state == "completed"
        ended = await core.ended(free)
        assert (ended.state, ended.gated) == ("completed", False)
    async with place.open() as core:
        for view in (gated, free):
            call = (await opened(core, view.run_id)).call
            assert call is not None
            assert [each.name for each in call.approval.accounts] == [name]
