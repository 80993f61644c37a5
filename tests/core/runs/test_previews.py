"""Previews: services that are read by POST, and which hosts an item names."""

from functools import partial
from pathlib import Path

import pytest

from aileron_core.connectors.read_names import AWS_PREFIX
from aileron_core.console_port.intents import Accept, RefreshPreview, WithdrawAcceptance
from aileron_core.console_port.view_models import ApprovalView, LibraryItemView, NotAcceptedView
from aileron_core.errors import Conflict
from tests.support.core_harness import Core, Start
from tests.support.scripted_guest import FQN, ScriptedService, furnish_guest
from tests.support.tls_service import TlsService, tls_service

HOSTS = ("api.example:443",)
GRAPHQL = "GraphQL queries at api.example/graphql"
REF = f"{FQN}@1.0.0"
ATHENA = "AmazonAthena.GetQueryExecution"
TOKEN = "AmazonAthena.GetSessionToken"


def athena(operation: str) -> dict[str, object]:
    headers = {"X-Amz-Target": f"AmazonAthena.{operation}", "Content-Type": "application/x-amz-json-1.1"}  # fmt: skip
    return {"method": "POST", "url": "https://api.example/", "headers": headers, "body": "{}"}


READ: dict[str, object] = {
    "method": "POST", "url": "https://api.example/read",
    "headers": {"Content-Type": "application/json"}, "body": '{"id": 5}',
}  # fmt: skip
QUERY = READ | {
    "url": "https://api.example/graphql",
    "body": '{"query": "query { viewer { id } }"}',
}
UNCHECKED = "unchecked requests of see to api.example/read"


def offered_reads(core: Core) -> list[NotAcceptedView]:
    return [each for each in core.app.library.not_accepted() if each.kind == "preview"]


def preview_item(core: Core) -> LibraryItemView:
    (item,) = [each for each in core.app.library.items() if each.kind == "preview"]
    return item


async def accept_offer(core: Core, offer: NotAcceptedView) -> None:
    await core.do(Accept(kind="preview", name=offer.name, digest=offer.digest))


async def accept_files(core: Core) -> None:
    for each in core.app.library.not_accepted():
        await core.do(Accept(kind=each.kind, name=each.name, digest=each.digest))


async def accept_read(core: Core) -> ApprovalView:
    """Accept all files and then the unchecked read; return the call whose preview it is."""
    await accept_files(core)
    first = await core.ask_for("act", {})
    (offer,) = offered_reads(core)
    assert offer.name == f"{REF} {UNCHECKED}"
    await accept_offer(core, offer)
    view = await core.looked(first.approval_id, after=first.version)
    assert view.preview.status == "ready"
    return view


async def looked_again(core: Core, view: ApprovalView) -> ApprovalView:
    await core.do(RefreshPreview(approval_id=view.approval_id))
    return await core.looked(view.approval_id, after=view.version + 1)


def posts(service: ScriptedService | TlsService) -> int:
    return sum(each.method == "POST" for each in service.seen)


@pytest.fixture
def start(home: Path, service: ScriptedService) -> Start:
    return partial(Core.open, home, routes=service.route(*HOSTS, *TWO, *REGIONS))


async def test_a_refused_query_is_shown(start: Start, service: ScriptedService, home: Path) -> None:
    digest = furnish_guest(home, [QUERY], HOSTS)
    async with start(accept=False) as core:
        await accept_files(core)
        first = await core.ask_for("act", {})
        assert (first.preview.status, service.seen) == ("unavailable", [])
        assert "GraphQL queries" in first.preview.reason
        (offer,) = offered_reads(core)
        assert (offer.name, offer.digest) == (f"{REF} {GRAPHQL}", digest)
        await accept_offer(core, offer)
        view = await core.looked(first.approval_id, after=first.version)
        assert view.preview.status == "ready"
        assert view.preview.accepted_reads == ((GRAPHQL, "person"),)
        assert view.digest != first.digest
        assert (posts(service), offered_reads(core)) == (1, [])
        record = (await core.records("library.accepted"))[-1]
        found = (record["kind"], record["name"], record["digest"], record["by"])
        assert found == ("preview", offer.name, digest, "person")
        item = preview_item(core)
        assert (item.name, item.state, item.accepted_by) == (offer.name, "ready", "person")
    # What was accepted counts in the next life too.
    async with start(accept=False) as core:
        assert (await core.ask_for("act", {})).preview.accepted_reads == ((GRAPHQL, "person"),)


async def test_each_operation_is_a_row(start: Start, service: ScriptedService, home: Path) -> None:
    furnish_guest(home, [athena("GetQueryExecution"), athena("GetSessionToken")], HOSTS)
    async with start(accept=False) as core:
        await accept_files(core)
        first = await core.ask_for("act", {})
        names = [f"{REF} {AWS_PREFIX}{each}" for each in (ATHENA, TOKEN)]
        assert ([each.name for each in offered_reads(core)], service.seen) == (names, [])
        await accept_offer(core, offered_reads(core)[0])
        second = await core.looked(first.approval_id, after=first.version)
        assert [each.headers["X-Amz-Target"] for each in service.seen] == [ATHENA]
        assert (second.preview.status, TOKEN in second.preview.reason) == ("unavailable", True)
        assert [each.name for each in offered_reads(core)] == names[1:]
        await accept_offer(core, offered_reads(core)[0])
        third = await core.looked(first.approval_id, after=second.version)
        expected = ((AWS_PREFIX + ATHENA, "person"), (AWS_PREFIX + TOKEN, "person"))
        assert third.preview.accepted_reads == expected


@pytest.mark.parametrize(
    ("request_", "read"),
    [(athena("GetQueryExecution"), AWS_PREFIX + ATHENA), (READ, UNCHECKED)],
    ids=["a read", "unchecked"],
)
async def test_accept_installed_accepts_reads_too_and_marks_them(
    start: Start, home: Path, request_: dict[str, object], read: str
) -> None:
    furnish_guest(home, [request_], HOSTS)
    async with start() as core:
        view = await core.ask_for("act", {})
        assert view.preview.status == "ready"
        assert view.preview.accepted_reads == ((read, "--accept-installed"),)
        record = (await core.records("library.accepted"))[-1]
        assert record["summary"].endswith(f"{read} (--accept-installed)")


async def test_withdrawn_reads_are_void(start: Start, service: ScriptedService, home: Path) -> None:
    """The digest covers it: a recheck under other terms is something else than what was seen."""
    digest = furnish_guest(home, [QUERY], HOSTS)
    async with start() as core:
        view = await core.ask_for("act", {})
        before = posts(service)
        name = f"{REF} {GRAPHQL}"
        await core.do(WithdrawAcceptance(kind="preview", name=name, digest=digest))
        assert [each.name for each in offered_reads(core)] == [name]
        item = preview_item(core)
        assert (item.state, item.reason) == ("held_back", "You withdrew its acceptance.")
        await core.approve(view)
        back = await core.back(view)
        assert (back.drift is None, back.preview.status) == (False, "unavailable")
        assert posts(service) == before


@pytest.mark.parametrize(("request_", "read"), [(QUERY, GRAPHQL), (READ, UNCHECKED)])
async def test_other_bytes_of_the_connector_end_what_was_accepted(
    start: Start, service: ScriptedService, home: Path, request_: dict[str, object], read: str
) -> None:
    first = furnish_guest(home, [request_], HOSTS)
    name = f"{REF} {read}"
    async with start(accept=False) as core:
        await accept_files(core)
        waiting = await core.ask_for("act", {})
        await accept_offer(core, offered_reads(core)[0])
        await core.looked(waiting.approval_id, after=waiting.version)
        other = furnish_guest(home, [request_, request_], HOSTS)
        assert other != first
        await core.app.library.poll()
        await accept_files(core)
        assert {each.kind for each in core.app.library.items()} == {"action", "connector"}
        furnish_guest(home, [request_], HOSTS)
        await core.app.library.poll()
        await accept_files(core)
        reached = len(service.seen)
        view = await core.ask_for("act", {"region": "a new call"})
        assert (view.preview.status, len(service.seen)) == ("unavailable", reached)
        assert [each.name for each in offered_reads(core)] == [name]


async def test_what_an_agent_could_choose_is_offered_sixteen_times_at_most(home: Path) -> None:
    """An argument may name the operation: rows of the list are not the agent's to fill."""
    furnish_guest(home, [QUERY], HOSTS)
    async with Core.open(home, accept=False) as core:
        await accept_files(core)
        (connector,) = core.app.library._files.connectors.values()
        for number in range(40):
            await core.app.library.offer_read(connector.identity, f"{AWS_PREFIX}A.Op{number}")
        assert len(offered_reads(core)) == 16


async def test_an_unchecked_post_is_offered_accepted_and_sent(home: Path, tmp_path: Path) -> None:
    """Over TLS, as it is: nothing before, the very body after, and what a yes covers says so."""
    digest = furnish_guest(home, [READ], HOSTS)
    with tls_service(tmp_path) as service:
        async with Core.open(home, make_outgoing=service.client, accept=False) as core:
            await accept_files(core)
            first = await core.ask_for("act", {})
            assert "unless an accepted action gates see" in first.preview.reason
            assert service.seen == []
            (offer,) = offered_reads(core)
            await accept_offer(core, offer)
            view = await core.looked(first.approval_id, after=first.version)
            assert view.preview.accepted_reads == ((UNCHECKED, "person"),)
            assert view.digest != first.digest
            assert [(each.path, each.body) for each in service.seen] == [("/read", b'{"id": 5}')]
            record = (await core.records("library.accepted"))[-1]
            assert record["summary"].endswith(f"{REF} {UNCHECKED}")
            assert (record["digest"], record["by"]) == (digest, "person")
            assert (await core.run(view)).state == "completed"
            assert posts(service) == 3  # the preview, the same again for the yes, and the action
        async with Core.open(home, make_outgoing=service.client, accept=False) as core:
            again = await core.ask_for("act", {})
            assert again.preview.accepted_reads == ((UNCHECKED, "person"),)


async def test_a_gated_action_ends_it(start: Start, service: ScriptedService, home: Path) -> None:
    """Also for a call that waits, and also once the action is gone again."""
    digest = furnish_guest(home, [READ], HOSTS)
    see, later = home / "actions" / "see.md", home / "actions" / "later.md"
    async with start(accept=False) as core:
        view = await accept_read(core)
        text = see.read_text(encoding="utf-8").replace('"see"\nversion', '"later"\nversion')
        gate = '[approval]\nrequired = true\neffect = "change"\n+++\n\n# Act'
        later.write_text(text.replace("+++\n\n# Act", gate), encoding="utf-8")
        await core.app.library.poll()
        await accept_files(core)
        ended = (await core.records("library.withdrawn"))[-1]
        assert (ended["name"], ended["digest"]) == (f"{REF} {UNCHECKED}", digest)
        sent = posts(service)
        view = await looked_again(core, view)
        assert (view.preview.status, view.preview.accepted_reads) == ("unavailable", ())
        assert (posts(service), offered_reads(core)) == (sent, [])
        later.unlink()
        await core.app.library.poll()
        view = await looked_again(core, view)
        assert (view.preview.status, posts(service)) == ("unavailable", sent)
        assert [each.name for each in offered_reads(core)] == [f"{REF} {UNCHECKED}"]


async def test_an_op_must_be_idempotent(start: Start, service: ScriptedService, home: Path) -> None:
    """Nor is an offer accepted then: the key may have been pressed for a row that is gone."""
    furnish_guest(home, [READ], HOSTS)
    async with start(accept=False) as core:
        await accept_files(core)
        await core.ask_for("act", {})
        (offer,) = offered_reads(core)
        (see,) = [each for each in core.app.library.items() if each.name == "see"]
        await core.do(WithdrawAcceptance(kind="action", name="see", digest=see.digest))
        assert offered_reads(core) == []
        with pytest.raises(Conflict, match="no longer waiting"):
            await accept_offer(core, offer)
        assert service.seen == []
        view = await accept_read(core)
        await core.do(WithdrawAcceptance(kind="action", name="see", digest=see.digest))
        sent = posts(service)
        view = await looked_again(core, view)
        assert view.preview.status == "unavailable"
        item = preview_item(core)
        why = "It does not count: no accepted action declares see idempotent."
        assert (item.state, item.reason) == ("cannot_run", why)
        assert (posts(service), offered_reads(core)) == (sent, [])
        await accept_files(core)
        view = await looked_again(core, view)
        assert (view.preview.status, posts(service)) == ("ready", sent + 1)


async def test_other_bytes_get_no_offer(start: Start, service: ScriptedService, home: Path) -> None:
    """The next version's op of that name may write."""
    furnish_guest(home, [READ], HOSTS)
    see = home / "actions" / "see.md"
    of_first = see.read_text(encoding="utf-8")
    furnish_guest(home, [READ], HOSTS, version="2.0.0")
    see.write_text(of_first, encoding="utf-8")
    async with start() as core:
        assert (await core.ask_for("act", {})).preview.status == "unavailable"
        assert (service.seen, offered_reads(core)) == ([], [])


TWO = ("a.example:443", "z.example:443")
REGIONS = tuple(f"athena.{region}.amazonaws.com:443" for region in ("af-south-1", "eu-west-1", "us-east-1"))  # fmt: skip
SIGNED = '[capabilities.credential]\nkind = "aws_sigv4"\nservice = "athena"\n'


async def first_and_ready(core: Core, **args: str) -> tuple[ApprovalView, ApprovalView]:
    """Call `act`; return the item while its preview was fetched, and once it had answered."""
    ready = await core.ask_for("act", dict(args))
    first = next(v for v in core.views(ready.approval_id) if v.preview.status == "fetching")
    return first, ready


async def test_the_asked_host_is_named(start: Start, service: ScriptedService, home: Path) -> None:
    """In the preview's line, in the item after the run, and in the audit."""
    furnish_guest(home, [{"url": "https://z.example/x"}], TWO)
    async with start() as core:
        first, ready = await first_and_ready(core)
        assert (first.preview.host, ready.preview.host) == ("one of 2 hosts", "z.example")
        end = await core.run(ready)
        assert (end.state, end.hosts_asked) == ("completed", ("z.example:443",))
        for event in ("preview.fetched", "run.completed"):
            record = (await core.records(event))[0]
            assert record["hosts_asked"] == ["z.example:443"]
            assert "z.example" in record["summary"]
            assert "a.example" not in record["summary"]
        assert {each.headers["Host"] for each in service.seen} == {"z.example"}
    furnish_guest(home, [], TWO)  # one that answers out of itself
    async with start() as core:
        _, ready = await first_and_ready(core, region="another call")
        assert (ready.preview.status, ready.preview.host) == ("ready", "")


async def test_a_refusing_host_is_named(start: Start, service: ScriptedService, home: Path) -> None:
    """The first of the manifest answers 200; the other one, which was asked last, answers 429."""
    says = '{"error":{"class":"external_api_error","message":"too many"}}'
    both = [{"url": "https://a.example/x"}, {"url": "https://z.example/y"}]
    furnish_guest(home, both, TWO, says=says)
    service.statuses["z.example"] = 429
    async with start() as core:
        _, ready = await first_and_ready(core)
        said = "z.example answered 429 (Too Many Requests)"
        assert (ready.preview.status, ready.preview.reason) == ("unavailable", said)
        (record,) = await core.records("preview.unavailable")
        assert record["hosts_asked"] == ["a.example:443", "z.example:443"]


async def test_calls_reach_their_region(start: Start, service: ScriptedService, home: Path) -> None:
    """What the item says before anything was asked is what the sandbox holds the call to."""
    furnish_guest(home, [{"url": "https://athena.us-east-1.amazonaws.com/"}], REGIONS, more=SIGNED)
    async with start() as core:
        first, here = await first_and_ready(core, region="us-east-1")
        assert first.preview.host == here.preview.host == "athena.us-east-1.amazonaws.com"
        assert here.hosts == here.op_hosts == ("athena.us-east-1.amazonaws.com:443",)
        assert len(service.seen) == 1
        _, there = await first_and_ready(core, region="eu-west-1")
        assert (there.hosts, there.preview.status) == (REGIONS[1:2], "unavailable")
        assert "argument `region` allows only athena.eu-west-1" in there.preview.reason
        _, anywhere = await first_and_ready(core, region="of no host")
        assert (anywhere.hosts, len(service.seen)) == (REGIONS, 2)


async def test_no_unshown_host_is_read(start: Start, service: ScriptedService, home: Path) -> None:
    """The call named one region's host; the connector then says that what it made is in another."""
    says = '{"output":{"done":true,"region":"us-east-1"}}'
    url = f"https://{REGIONS[1].removesuffix(':443')}/x"
    furnish_guest(home, [{"url": url}], REGIONS, more=SIGNED, says=says)
    act = home / "actions" / "act.md"
    lines = 'changes = { "Done" = "${args.region}" }\nread_back = { region = "${step.region}" }\n'
    text = act.read_text(encoding="utf-8").replace("render = {", f"{lines}render = {{")
    act.write_text(text, encoding="utf-8")
    async with start() as core:
        _, ready = await first_and_ready(core, region="eu-west-1")
        assert ready.hosts == (REGIONS[1],)
        await core.approve(ready)
        read = await core.read_back(ready)
        assert read.status == "unavailable"
        assert "athena.us-east-1.amazonaws.com, which was not shown" in read.reason
        assert len(service.seen) == 3  # the preview, the check before the effect, the effect
