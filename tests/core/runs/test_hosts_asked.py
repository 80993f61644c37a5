"""Which hosts an item names: those that were asked, before that those that can be, never a guess."""

from functools import partial
from pathlib import Path

import pytest

from aileron_core.console_port.view_models import ApprovalView
from tests.support.core_harness import Core, Start
from tests.support.scripted_guest import ScriptedService, furnish_guest

TWO = ("a.example:443", "z.example:443")
REGIONS = tuple(f"athena.{region}.amazonaws.com:443" for region in ("af-south-1", "eu-west-1", "us-east-1"))  # fmt: skip
SIGNED = '[capabilities.credential]\nkind = "aws_sigv4"\nservice = "athena"\n'


async def first_and_ready(
    core: Core, args: dict[str, str] | None = None
) -> tuple[ApprovalView, ApprovalView]:
    """Call `act`; return the item while its preview was fetched, and once it had answered."""
    ready = await core.ask_for("act", dict(args or {}))
    first = next(v for v in core.views(ready.approval_id) if v.preview.status == "fetching")
    return first, ready


@pytest.fixture
def start(home: Path, service: ScriptedService) -> Start:
    return partial(Core.open, home, routes=service.route(*TWO, *REGIONS))


async def test_the_host_that_was_asked_is_named_and_not_the_first_of_the_manifest(
    start: Start, service: ScriptedService, home: Path
) -> None:
    """In the preview's line, in the item after the run, and in the audit."""
    furnish_guest(home, [{"url": "https://z.example/x"}], TWO)
    async with start() as core:
        first, ready = await first_and_ready(core)
        assert first.preview.host == "one of 2 hosts"
        assert ready.preview.host == "z.example"
        end = await core.run(ready)
        assert (end.state, end.hosts_asked) == ("completed", ("z.example:443",))
        for event in ("preview.fetched", "run.completed"):
            record = (await core.records(event))[0]
            assert record["hosts_asked"] == ["z.example:443"]
            assert "z.example" in record["summary"]
            assert "a.example" not in record["summary"]
        assert {each.headers["Host"] for each in service.seen} == {"z.example"}


async def test_a_refusal_is_blamed_on_the_host_that_refused(
    start: Start, service: ScriptedService, home: Path
) -> None:
    """The first of the manifest answers 200; the other one, which was asked last, answers 429."""
    says = '{"error":{"class":"external_api_error","message":"too many"}}'
    both = [{"url": "https://a.example/x"}, {"url": "https://z.example/y"}]
    furnish_guest(home, both, TWO, says=says)
    service.statuses["z.example"] = 429
    async with start() as core:
        _, ready = await first_and_ready(core)
        assert ready.preview.status == "unavailable"
        assert ready.preview.reason == "z.example answered 429 (Too Many Requests)"
        (record,) = await core.records("preview.unavailable")
        assert record["hosts_asked"] == ["a.example:443", "z.example:443"]


async def test_no_host_is_named_where_none_was_asked(home: Path) -> None:
    """A connector that answers out of itself was not asked by anybody on a host's behalf."""
    furnish_guest(home, [], TWO)
    async with Core.open(home) as core:
        _, ready = await first_and_ready(core)
        assert (ready.preview.status, ready.preview.host) == ("ready", "")


async def test_a_call_of_one_region_reaches_that_region_alone(
    start: Start, service: ScriptedService, home: Path
) -> None:
    """What the item says before anything was asked is what the sandbox holds the call to."""
    furnish_guest(home, [{"url": "https://athena.us-east-1.amazonaws.com/"}], REGIONS, more=SIGNED)
    async with start() as core:
        first, here = await first_and_ready(core, {"region": "us-east-1"})
        assert first.preview.host == here.preview.host == "athena.us-east-1.amazonaws.com"
        assert here.hosts == here.op_hosts == ("athena.us-east-1.amazonaws.com:443",)
        reached = len(service.seen)
        assert reached == 1
        _, there = await first_and_ready(core, {"region": "eu-west-1"})
        assert there.hosts == ("athena.eu-west-1.amazonaws.com:443",)
        assert there.preview.status == "unavailable"
        assert "argument `region` allows only athena.eu-west-1" in there.preview.reason
        _, anywhere = await first_and_ready(core, {"region": "of no host"})
        assert anywhere.hosts == REGIONS
        assert len(service.seen) == reached + 1


async def test_what_a_run_returned_leads_the_reading_to_no_host_that_was_not_named(
    start: Start, service: ScriptedService, home: Path
) -> None:
    """The call named one region's host; the connector then says that what it made is in another."""
    says = '{"output":{"done":true,"region":"us-east-1"}}'
    url = f"https://{REGIONS[1].removesuffix(':443')}/x"
    furnish_guest(home, [{"url": url}], REGIONS, more=SIGNED, says=says)
    act = home / "actions" / "act.md"
    lines = 'changes = { "Done" = "${args.region}" }\nread_back = { region = "${step.region}" }\n'
    text = act.read_text(encoding="utf-8").replace("render = {", f"{lines}render = {{")
    act.write_text(text, encoding="utf-8")
    async with start() as core:
        _, ready = await first_and_ready(core, {"region": "eu-west-1"})
        assert ready.hosts == (REGIONS[1],)
        await core.approve(ready)
        read = await core.read_back(ready)
        assert read.status == "unavailable"
        assert "athena.us-east-1.amazonaws.com, which was not shown" in read.reason
        assert len(service.seen) == 3  # the preview, the check before the effect, the effect
