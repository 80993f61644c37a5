"""The suites of example and published connectors: bound, previewed, approved, run and read back on the real wire."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.account_intents import BeginLogin, BindAccount
from aileron_core.console_port.field_views import ReadBack
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.credentials.accounts import find_user
from aileron_core.credentials.binding import CredentialUser
from aileron_core.home.layout import Home
from aileron_core.vault.secret import Secret
from aileron_tui.cli.adding import add_files
from tests.core.runs.test_hostile_accounts import tokens
from tests.support.authorization_server import CANARY, CLIENT_ID, CLIENT_SECRET
from tests.support.core_harness import DRAFT, PASSPHRASE, ROOT, Core, Mailbox, Start
from tests.support.github_service import HEAD, REPO, TOKEN, GitHub, github_service
from tests.support.google_service import Google, google_service
from tests.support.published import CORPUS, SUITES, needs_corpus, unpack
from tests.support.published.services import (
    ACCESS_KEY_ID,
    LINEAR_KEY,
    QUERY,
    SECRET_ACCESS_KEY,
    Published,
    published,
)

CONNECTORS = ROOT / "examples" / "connectors"
ISSUE = {"repo": REPO, "number": 1}


def furnish_example(home: Path, connector: str) -> None:
    (home / "actions").mkdir(mode=0o700, parents=True, exist_ok=True)
    ConnectorStore(home).install(CONNECTORS / connector)
    add_files(Home(home), (CONNECTORS / connector / "actions").glob("*.md"), connector)


async def bind_example(core: Core, user: CredentialUser, secret: str, name: str = "") -> None:
    asked = BindAccount(
        connector_hash=user.identity.hash, identity="work", account="ana", secret=Secret(secret),
        user=name,
    )  # fmt: skip
    await core.app.bindings.bind(user, asked)


@pytest.fixture
def hub(home: Path, tmp_path: Path) -> Iterator[GitHub]:
    furnish_example(home, "github")
    with github_service(tmp_path) as running:
        yield running


@pytest.fixture
def start(home: Path, hub: GitHub) -> Start:
    return partial(Core.open, home, make_outgoing=hub.service.client)


@pytest.fixture
async def core(start: Start) -> AsyncIterator[Core]:
    """A core whose vault holds the token, bound to the connector."""
    async with start() as running:
        running.app.vault.create(Secret(PASSPHRASE))
        user = find_user(running.app.library.accepted_connectors(), "github")
        await bind_example(running, user, TOKEN)
        yield running


def shown_fields(view: ApprovalView) -> dict[str, str]:
    assert view.preview.status == "ready", view.preview.reason
    return {each.label: each.value for each in view.preview.fields}


async def ran(core: Core, view: ApprovalView) -> ReadBack:
    end = await core.run(view)
    assert end.state == "completed", end
    return await core.read_back(view)


async def test_a_comment_shows_what_it_lands_on_and_is_read_back(core: Core, hub: GitHub) -> None:
    view = await core.ask_for("github-comment", ISSUE | {"body": "Fixed."})
    fields = shown_fields(view)
    assert view.preview.gist == "It counts wrong in octo/app (private)"
    assert (fields["State"], fields["Kind"]) == ("open", "issue")
    assert fields["Last comments"].startswith("2 earlier comments are not shown.\nben, ")
    assert ([each.account for each in view.accounts], hub.writes) == (["ana"], [])
    hub.comment(1, "It is not fixed at all")  # between the look and the yes: it is asked again
    await core.approve(view)
    view = await core.back(view)
    assert "It is not fixed at all" in shown_fields(view)["Last comments"]
    assert hub.writes == []
    read = await ran(core, view)
    assert (read.status, read.labels) == ("held", ())
    assert (hub.writes, hub.comments[-1]["body"]) == (["POST /issues/1/comments"], "Fixed.")
    assert TOKEN not in repr(core.events)


async def test_an_edit_shows_before_and_after(core: Core, hub: GitHub) -> None:
    edit = {"state": "closed", "title": "Counts right"}
    view = await core.ask_for("github-edit-issue", ISSUE | edit)
    assert (shown_fields(view)["Title"], shown_fields(view)["State"]) == ("It counts wrong", "open")
    wanted = {each.label: each.value for each in view.new_values}
    assert wanted == {"Title": "Counts right", "State": "closed"}
    read = await ran(core, view)
    assert (read.status, hub.issues[1]["state"]) == ("held", "closed")
    comment = hub.comments[0]
    asks = {"repo": REPO, "comment_id": comment["id"], "body": "Other"}
    view = await core.ask_for("github-edit-comment", asks)
    assert shown_fields(view)["Comment"].startswith("Thought 0")
    assert shown_fields(view)["Issue"] == "Counts right"
    assert (await ran(core, view)).status == "held"
    assert comment["body"] == "Other"


async def test_a_merge_shows_what_it_contains(core: Core, hub: GitHub) -> None:
    view = await core.ask_for("github-merge-pull", {"repo": REPO, "number": 7, "sha": HEAD})
    fields = shown_fields(view)
    assert view.preview.gist == "Count what is left into main of octo/app (private)"
    assert fields["Checks"].splitlines()[0] == "failure: tests (GitHub Actions)"
    assert fields["Contains"] == "2 commits, 2 files, +3 -1"
    assert "Since nobody knew." in fields["Commits"]
    assert "+left = 0" in fields["Difference"]
    read = await ran(core, view)
    assert (read.status, hub.pull["merged"]) == ("held", True)


async def test_an_issue_and_a_release_show_what_was_before(core: Core, hub: GitHub) -> None:
    view = await core.ask_for("github-open-issue", {"repo": REPO, "title": "New", "body": "Text"})
    assert shown_fields(view)["Newest issues"] == "#1 It counts wrong"
    assert (await ran(core, view)).status == "held"
    assert hub.issues[3]["title"] == "New"
    asks = {"repo": REPO, "tag": "v2.0", "name": "Two", "body": "Notes"}
    view = await core.ask_for("github-release", asks)
    fields = shown_fields(view)
    assert fields["Made from"].endswith("Count what is left")
    assert (fields["Release before"], fields["Name"]) == ("v1.0", "")
    assert "Since nobody knew." in fields["Commits"]
    assert (await ran(core, view)).status == "held"
    assert hub.releases[-1]["tag_name"] == "v2.0"


@pytest.fixture
def google(home: Path, tmp_path: Path, mailbox: Mailbox) -> Iterator[Google]:
    furnish_example(home, "gmail")
    with google_service(tmp_path, mailbox) as running:
        yield running


async def test_gmail_is_bound_by_login_sends_and_edits_drafts(home: Path, google: Google) -> None:
    """With the person's own client at Google's own addresses; no token is in an answer or a record."""
    async with Core.open(home, make_outgoing=google.server.service.client) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        user = find_user(core.app.library.accepted_connectors(), "gmail")
        asked = BeginLogin(
            connector_hash=user.identity.hash, identity="me", client_id=CLIENT_ID,
            client_secret=Secret(CLIENT_SECRET),
        )  # fmt: skip
        begun = await core.app.authorizations.begin(user, asked)
        assert begun.url.startswith("https://accounts.google.com/o/oauth2/v2/auth?")
        assert await asyncio.to_thread(google.server.browse, begun.url) == 200
        ready = await core.app.authorizations.wait(begun.login_id, 30)
        assert (ready.account, ready.missing) == ("ana@example.com", ())
        await core.app.authorizations.finish(begun.login_id, "")

        args = {"draft_id": DRAFT, "to": "new@example.com", "subject": "Q4"}
        view = await core.ask_for("gmail-edit-draft", args)
        expected = ("Q3 numbers", "Tom Weber")
        assert (shown_fields(view)["Subject"], shown_fields(view)["Cc"][:9]) == expected
        expected = {"To": "new@example.com", "Subject": "Q4"}
        assert {each.label: each.value for each in view.new_values} == expected
        assert [each.account for each in view.accounts] == ["ana@example.com"]
        read = await ran(core, view)
        assert (read.status, read.labels) == ("held", ())

        view = await core.ask_for("gmail-send-draft", {"draft_id": DRAFT})
        assert view.preview.gist == "Q4 to new@example.com"
        assert shown_fields(view)["From"] == "Jana Keller <jana.keller@nordlicht.example>"
        assert (await core.run(view)).state == "completed"
        (sent,) = google.mailbox.state()["sent"]
        assert (sent["to"], sent["subject"]) == ("new@example.com", "Q4")
        assert CANARY not in repr(core.events)
        assert CANARY not in repr(await core.records())


WITH_ATTACHMENT = "r-8842188204"
STOP = {"region": "eu-west-1", "query_execution_id": QUERY}


@pytest.fixture
def services(tmp_path: Path, mailbox: Mailbox) -> Iterator[Published]:
    for each in needs_corpus:
        if each.args[0]:
            pytest.skip(each.kwargs["reason"])
    with published(tmp_path, mailbox) as running:
        yield running


@asynccontextmanager
async def account_bound(
    home: Path, folder: Path, services: Published, kind: str, value: str, name: str = ""
) -> AsyncGenerator[Core]:
    """A core with an account of *kind* bound to its connector, and those actions that name its version."""
    (home / "actions").mkdir(mode=0o700, parents=True, exist_ok=True)
    ConnectorStore(home).install(unpack(SUITES[kind], folder / "connector"))
    files = (CORPUS / SUITES[kind] / "actions").glob("*/action.md")
    add_files(Home(home), (each for each in files if '"0.0.0-dev"' in each.read_text()), kind)
    async with Core.open(home, make_outgoing=services.service.client) as core:
        core.app.vault.create(Secret(PASSPHRASE))
        (connector,) = core.app.library.accepted_connectors()
        user = find_user([connector], connector.identity.fqn)
        if user.requirement.kind == "oauth2":
            services.google.server.access_tokens.add(value)
            login = tokens(value, token_url="https://oauth2.googleapis.com/token")
            await core.app.bindings.authorize(user, "work", "ana", login)
        else:
            await bind_example(core, user, value, name)
        yield core


async def ask_with_account(core: Core, action: str, **args: str) -> ApprovalView:
    view = await core.ask_for(action, dict(args))
    assert [each.account for each in view.accounts] == ["ana"]
    return view


async def test_linear_is_asked_with_a_key(home: Path, tmp_path: Path, services: Published) -> None:
    """A read runs at once, a mutation waits for a person; the key is sent as its manifest says, without Bearer."""
    async with account_bound(home, tmp_path, services, "api_key", LINEAR_KEY) as core:
        assert (await core.call("organization", {})).row.state == "completed"
        view = await ask_with_account(core, "issue-remove-label", id="OCT-1", labelId="bug")
        assert services.labels == {"bug", "urgent"}
        assert (await core.run(view)).state == "completed"
        assert services.labels == {"urgent"}
        assert LINEAR_KEY not in repr((core.events, await core.records()))


async def test_gmail_shows_what_is_sent(home: Path, tmp_path: Path, services: Published) -> None:
    """The suite's own preview: recipient, subject, and what Gmail calls the snippet.

    Gmail gives an attachment another id in every answer, and the module returns what Gmail answers. Another
    attachment is another message, whose id is compared.
    """
    token = "canary-access-0b61"
    async with account_bound(home, tmp_path, services, "oauth2", token) as core:
        view = await ask_with_account(core, "send-draft", draft_id=DRAFT)
        shown = shown_fields(view)
        assert (shown["To"][:11], shown["Subject"]) == ("Anna Brandt", "Q3 numbers")
        assert shown["Body"].startswith("Hi Anna")
        mailbox = services.google.mailbox
        assert mailbox.state()["sent"] == []
        assert (await core.run(view)).state == "completed"
        (sent,) = mailbox.state()["sent"]
        assert sent["subject"] == "Q3 numbers"
        view = await ask_with_account(core, "send-draft", draft_id=WITH_ATTACHMENT)
        mailbox.control(change={"id": WITH_ATTACHMENT})
        await core.approve(view)
        again = await core.back(view)
        assert (again.drift is None, len(mailbox.state()["sent"])) == (False, 1)
        assert (await core.run(again)).state == "completed"
        assert token not in repr((core.events, await core.records()))


async def test_athena_verifies_a_signature(home: Path, tmp_path: Path, services: Published) -> None:
    """The service works the signature out anew from what it received; a region with a path in it reaches nothing."""
    keys = ("aws_sigv4", SECRET_ACCESS_KEY, ACCESS_KEY_ID)
    async with account_bound(home, tmp_path, services, *keys) as core:
        assert (await core.call("get-query-execution", STOP)).row.state == "completed"
        view = await ask_with_account(core, "stop-query-execution", **STOP)
        assert services.query_state == "RUNNING"
        end = await core.run(view)
        expected = ("completed", ("athena.eu-west-1.amazonaws.com:443",))
        assert (end.state, end.hosts_asked) == expected
        assert services.query_state == "CANCELLED"
        signed = [each.headers["authorization"] for each in services.service.seen]
        assert all("/eu-west-1/athena/" in each for each in signed)
        reached = len(services.service.seen)
        strange = await core.call("list-work-groups", {"region": "evil.example.com/#"})
        assert (strange.row.state, len(services.service.seen)) == ("failed", reached)
        assert SECRET_ACCESS_KEY not in repr((core.events, await core.records()))


async def test_athena_refuses_another_key(home: Path, tmp_path: Path, services: Published) -> None:
    """So the service does verify it; what it says is the failure's message."""
    keys = ("aws_sigv4", SECRET_ACCESS_KEY[::-1], ACCESS_KEY_ID)
    async with account_bound(home, tmp_path, services, *keys) as core:
        refused = await core.call("get-query-execution", STOP)
        assert (refused.row.state, refused.row.failure.class_) == ("failed", "external_api_error")
        assert "InvalidSignatureException" in refused.row.failure.message
