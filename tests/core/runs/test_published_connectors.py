"""Published connectors of three kinds of credential, and their own suites: previewed, approved, run on the real wire."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.credentials.accounts import find_user
from aileron_core.credentials.oauth_tokens import OAuthClient, Tokens
from aileron_core.home.layout import Home
from aileron_core.vault.secret import Secret
from aileron_tui.cli.adding import add_files
from tests.support.core_harness import DRAFT, PASSPHRASE, Core, Mailbox
from tests.support.published import CORPUS, SUITES, needs_corpus, unpack
from tests.support.published.services import (
    ACCESS_KEY_ID,
    LINEAR_KEY,
    QUERY,
    SECRET_ACCESS_KEY,
    Published,
    published,
)

pytestmark = needs_corpus
WITH_ATTACHMENT = "r-8842188204"
LABEL = {"id": "OCT-1", "labelId": "bug"}
STOP = {"region": "eu-west-1", "query_execution_id": QUERY}


def furnish_published(home: Path, folder: Path, kind: str) -> None:
    """Install the connector that has an account of *kind*, and add those of its actions that name its version."""
    (home / "actions").mkdir(mode=0o700, parents=True, exist_ok=True)
    ConnectorStore(home).install(unpack(SUITES[kind], folder / "connector"))
    files = (CORPUS / SUITES[kind] / "actions").glob("*/action.md")
    add_files(Home(home), (each for each in files if '"0.0.0-dev"' in each.read_text()), kind)


@pytest.fixture
def services(tmp_path: Path, mailbox: Mailbox) -> Iterator[Published]:
    with published(tmp_path, mailbox) as running:
        yield running


@asynccontextmanager
async def account_bound(home: Path, services: Published, **secret: str) -> AsyncGenerator[Core]:
    """A core with the account of *secret* bound to the one connector."""
    async with Core.open(home, make_outgoing=services.service.client) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        (connector,) = core.app.library.accepted_connectors()
        user = find_user([connector], connector.identity.fqn)
        if user.requirement.kind == "oauth2":
            token = Secret(secret["value"])
            services.google.server.access_tokens.add(secret["value"])
            client = OAuthClient(client_id="mine")
            tokens = Tokens(
                access_token=token,
                refresh_token=None,
                expires_at=None,
                client=client,
                token_url="https://oauth2.googleapis.com/token",
                scopes=(),
            )
            await core.app.bindings.authorize(user, "work", "ana", tokens)
        else:
            asked = BindAccount(
                connector_hash=user.identity.hash,
                identity="work",
                account="ana",
                secret=Secret(secret["value"]),
                user=secret.get("user", ""),
            )
            await core.app.bindings.bind(user, asked)
        yield core


async def ask_with_account(core: Core, action: str, **args: str) -> ApprovalView:
    answer = await core.call(action, dict(args))
    assert answer.row.approval_id is not None, answer
    view = await core.looked(answer.row.approval_id)
    assert [each.account for each in view.accounts] == ["ana"]
    return view


async def test_linear_is_asked_with_a_key(home: Path, tmp_path: Path, services: Published) -> None:
    """A read runs at once, a mutation waits for a person; the key is sent as its manifest says, without Bearer."""
    furnish_published(home, tmp_path, "api_key")
    async with account_bound(home, services, value=LINEAR_KEY) as core:
        read = await core.call("organization", {})
        assert read.row.state == "completed"
        view = await ask_with_account(core, "issue-remove-label", **LABEL)
        assert services.labels == {"bug", "urgent"}
        assert (await core.run(view)).state == "completed"
        assert services.labels == {"urgent"}
        assert LINEAR_KEY not in repr((core.events, await core.records()))


async def test_gmail_shows_the_draft_that_is_sent(
    home: Path, tmp_path: Path, services: Published
) -> None:
    """The suite's own preview: recipient, subject, and what Gmail calls the snippet."""
    furnish_published(home, tmp_path, "oauth2")
    token = "canary-access-0b61"
    async with account_bound(home, services, value=token) as core:
        view = await ask_with_account(core, "send-draft", draft_id=DRAFT)
        assert view.preview.status == "ready", view.preview.reason
        shown = {each.label: each.value for each in view.preview.fields}
        assert (shown["To"][:11], shown["Subject"]) == ("Anna Brandt", "Q3 numbers")
        assert shown["Body"].startswith("Hi Anna")
        assert services.google.mailbox.state()["sent"] == []
        assert (await core.run(view)).state == "completed"
        (sent,) = services.google.mailbox.state()["sent"]
        assert sent["subject"] == "Q3 numbers"
        assert token not in repr((core.events, await core.records()))


async def test_a_draft_with_an_attachment_can_be_sent(
    home: Path, tmp_path: Path, services: Published
) -> None:
    """Gmail gives an attachment another id in every answer, and the module returns what Gmail answers.

    Another attachment is another message, whose id is compared.
    """
    furnish_published(home, tmp_path, "oauth2")
    async with account_bound(home, services, value="canary-access-0b61") as core:
        view = await ask_with_account(core, "send-draft", draft_id=WITH_ATTACHMENT)
        services.google.mailbox.control(change={"id": WITH_ATTACHMENT})
        await core.approve(view)
        again = await core.back(view)
        assert again.drift is not None
        assert services.google.mailbox.state()["sent"] == []
        assert (await core.run(again)).state == "completed"


async def test_athena_is_asked_with_a_signature_for_the_region_of_its_host(
    home: Path, tmp_path: Path, services: Published
) -> None:
    """The service works the signature out anew from what it received; a region with a path in it reaches nothing."""
    furnish_published(home, tmp_path, "aws_sigv4")
    keys = {"value": SECRET_ACCESS_KEY, "user": ACCESS_KEY_ID}
    async with account_bound(home, services, **keys) as core:
        read = await core.call("get-query-execution", STOP)
        assert read.row.state == "completed", read
        view = await ask_with_account(core, "stop-query-execution", **STOP)
        assert services.query_state == "RUNNING"
        end = await core.run(view)
        assert (end.state, end.hosts_asked) == (
            "completed",
            ("athena.eu-west-1.amazonaws.com:443",),
        )
        assert services.query_state == "CANCELLED"
        assert all(
            "/eu-west-1/athena/" in each.headers["authorization"] for each in services.service.seen
        )

        reached = len(services.service.seen)
        strange = await core.call("list-work-groups", {"region": "evil.example.com/#"})
        assert strange.row.state == "failed"
        assert len(services.service.seen) == reached
        assert SECRET_ACCESS_KEY not in repr((core.events, await core.records()))


async def test_athena_refuses_a_signature_of_another_key(
    home: Path, tmp_path: Path, services: Published
) -> None:
    """So the service does verify it; what it says is the failure's message."""
    furnish_published(home, tmp_path, "aws_sigv4")
    keys = {"value": SECRET_ACCESS_KEY[::-1], "user": ACCESS_KEY_ID}
    async with account_bound(home, services, **keys) as core:
        refused = await core.call("get-query-execution", STOP)
        assert refused.row.state == "failed"
        assert refused.row.failure.class_ == "external_api_error"
        assert "InvalidSignatureException" in refused.row.failure.message
