"""Previews of services that are read by POST: refused, offered, accepted, told, ended."""

import json
from pathlib import Path

from aileron_core.connectors.posted_reads import AWS_PREFIX
from aileron_core.console_port import Accept, ApprovalView, NotAcceptedView, WithdrawAcceptance
from tests.support.core_harness import Core
from tests.support.scripted_guest import FQN, ScriptedService, furnish_guest, scripted_service

HOSTS = ("api.example:443",)
GRAPHQL = "GraphQL queries at api.example/graphql"
REF = f"{FQN}@1.0.0"
ATHENA = "AmazonAthena.GetQueryExecution"
TOKEN = "AmazonAthena.GetSessionToken"


def graphql(query: str) -> dict[str, object]:
    body = json.dumps({"query": query})
    headers = {"Content-Type": "application/json"}
    return {
        "method": "POST",
        "url": "https://api.example/graphql",
        "headers": headers,
        "body": body,
    }


def athena(operation: str) -> dict[str, object]:
    headers = {"X-Amz-Target": f"AmazonAthena.{operation}", "Content-Type": "application/x-amz-json-1.1"}  # fmt: skip
    return {"method": "POST", "url": "https://api.example/", "headers": headers, "body": "{}"}


QUERY = graphql("query { viewer { id } }")


async def asked(core: Core) -> ApprovalView:
    answer = await core.call("act", {})
    return await core.looked(answer.row.approval_id or "")


def offers(core: Core) -> list[NotAcceptedView]:
    return [each for each in core.app.library.not_accepted() if each.kind == "preview"]


async def accept(core: Core, offer: NotAcceptedView) -> None:
    await core.app.console.carry_out(Accept(kind="preview", name=offer.name, digest=offer.digest))


async def accept_files(core: Core) -> None:
    """Take in, as a person does, all that lies there."""
    for each in core.app.library.not_accepted():
        await core.app.console.carry_out(Accept(kind=each.kind, name=each.name, digest=each.digest))


def posts(service: ScriptedService) -> int:
    return sum(each.method == "POST" for each in service.seen)


async def test_a_refused_query_is_offered_and_shown_once_a_person_accepted(home: Path) -> None:
    """The first preview sends nothing and leaves a row; `t` on it, and the item shows its preview."""
    digest = furnish_guest(home, [QUERY], HOSTS)

    with scripted_service() as service:
        async with Core.open(home, routes=service.route(*HOSTS), accept=False) as core:
            await accept_files(core)
            first = await asked(core)
            assert first.preview.status == "unavailable"
            assert "GraphQL queries" in first.preview.reason
            assert service.seen == []
            (offer,) = offers(core)
            assert (offer.name, offer.digest) == (f"{REF} {GRAPHQL}", digest)
            await accept(core, offer)
            view = await core.looked(first.approval_id, after=first.version)
            assert view.preview.status == "ready"
            assert view.preview.accepted_reads == ((GRAPHQL, "person"),)
            assert view.digest != first.digest
            assert (posts(service), offers(core)) == (1, [])
            record = (await core.records("library.accepted"))[-1]
            assert (record["kind"], record["name"], record["digest"], record["by"]) == (
                "preview", offer.name, digest, "person",
            )  # fmt: skip
            (item,) = [each for each in core.app.library.items() if each.kind == "preview"]
            assert (item.name, item.state, item.accepted_by) == (offer.name, "ready", "person")
        # What was accepted counts in the next life too.
        async with Core.open(home, routes=service.route(*HOSTS), accept=False) as core:
            assert (await asked(core)).preview.accepted_reads == ((GRAPHQL, "person"),)


async def test_a_mutation_is_never_offered(home: Path) -> None:
    """Nothing of what a preview may not do can be accepted, and nothing of it reaches the service."""
    furnish_guest(home, [graphql("mutation { close }")], HOSTS)

    with scripted_service() as service:
        async with Core.open(home, routes=service.route(*HOSTS)) as core:
            view = await asked(core)
            assert "is not a read: its document is a mutation" in view.preview.reason
            assert (offers(core), service.seen) == ([], [])


async def test_each_operation_of_aws_is_a_row_of_its_own(home: Path) -> None:
    """Accepting one says nothing of the next; the acceptance of both is in what a yes covers."""
    furnish_guest(home, [athena("GetQueryExecution"), athena("GetSessionToken")], HOSTS)

    with scripted_service() as service:
        async with Core.open(home, routes=service.route(*HOSTS), accept=False) as core:
            await accept_files(core)
            first = await asked(core)
            names = [f"{REF} {AWS_PREFIX}{each}" for each in (ATHENA, TOKEN)]
            assert [each.name for each in offers(core)] == names
            assert service.seen == []
            await accept(core, offers(core)[0])
            second = await core.looked(first.approval_id, after=first.version)
            assert [each.headers["X-Amz-Target"] for each in service.seen] == [ATHENA]
            assert second.preview.status == "unavailable"
            assert TOKEN in second.preview.reason
            assert [each.name for each in offers(core)] == names[1:]
            await accept(core, offers(core)[0])
            third = await core.looked(first.approval_id, after=second.version)
            assert third.preview.accepted_reads == (
                (AWS_PREFIX + ATHENA, "person"),
                (AWS_PREFIX + TOKEN, "person"),
            )


async def test_accept_installed_accepts_reads_too_and_marks_them(home: Path) -> None:
    """Nobody looked at it: the item says so."""
    furnish_guest(home, [athena("GetQueryExecution")], HOSTS)

    with scripted_service() as service:
        async with Core.open(home, routes=service.route(*HOSTS)) as core:
            view = await asked(core)
            assert view.preview.status == "ready"
            assert view.preview.accepted_reads == ((AWS_PREFIX + ATHENA, "--accept-installed"),)
            record = (await core.records("library.accepted"))[-1]
            assert record["summary"].endswith("(--accept-installed)")


async def test_withdrawn_it_reads_no_more_and_a_yes_that_covered_it_runs_nothing(
    home: Path,
) -> None:
    """The digest covers it: a recheck under other terms is something else than what was seen."""
    digest = furnish_guest(home, [QUERY], HOSTS)

    with scripted_service() as service:
        async with Core.open(home, routes=service.route(*HOSTS)) as core:
            view = await asked(core)
            before = posts(service)
            name = f"{REF} {GRAPHQL}"
            await core.app.console.carry_out(
                WithdrawAcceptance(kind="preview", name=name, digest=digest)
            )
            assert [each.name for each in offers(core)] == [name]
            (item,) = [each for each in core.app.library.items() if each.kind == "preview"]
            assert (item.state, item.reason) == ("held_back", "You withdrew its acceptance.")
            await core.approve(view)
            back = await core.back(view)
            assert back.drift is not None
            assert back.preview.status == "unavailable"
            assert posts(service) == before


async def test_other_bytes_of_the_connector_end_what_was_accepted(home: Path) -> None:
    """Also where the first ones come back later."""
    first = furnish_guest(home, [QUERY], HOSTS)
    name = f"{REF} {GRAPHQL}"

    with scripted_service() as service:
        routes = service.route(*HOSTS)
        async with Core.open(home, routes=routes, accept=False) as core:
            await accept_files(core)
            waiting = await asked(core)
            await accept(core, offers(core)[0])
            await core.looked(waiting.approval_id, after=waiting.version)
            other = furnish_guest(home, [QUERY, QUERY], HOSTS)
            assert other != first
            await core.app.library.poll()
            await accept_files(core)
            kinds = [each.kind for each in core.app.library.items()]
            assert "connector" in kinds
            assert "preview" not in kinds
            furnish_guest(home, [QUERY], HOSTS)
            await core.app.library.poll()
            await accept_files(core)
            reached = len(service.seen)
            again = await core.call("act", {"region": "a new call"})
            view = await core.looked(again.row.approval_id or "")
            assert view.preview.status == "unavailable"
            assert [each.name for each in offers(core)] == [name]
            assert len(service.seen) == reached


async def test_what_an_agent_could_choose_is_offered_sixteen_times_at_most(home: Path) -> None:
    """An argument may name the operation: rows of the list are not the agent's to fill."""
    furnish_guest(home, [QUERY], HOSTS)

    async with Core.open(home, accept=False) as core:
        await accept_files(core)
        (connector,) = core.app.library._files.connectors.values()
        for number in range(40):
            await core.app.library.offer_read(connector.identity, f"{AWS_PREFIX}A.Op{number}")
        assert len(offers(core)) == 16
