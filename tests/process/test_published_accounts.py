"""Accounts of published connectors, bound with the command at a terminal; their suites come in whole."""

import re
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.support.authorization_server import CLIENT_ID, CLIENT_SECRET
from tests.support.published import CORPUS, SUITES, needs_corpus, unpack
from tests.support.published.services import (
    ACCESS_KEY_ID,
    QUERY,
    SECRET_ACCESS_KEY,
    Published,
    published,
)
from tests.support.server_harness import CLI, ROOT, Console, aileron, aileron_json
from tests.support.terminal import Pty
from tests.support.vaults import KNOWN, PHRASE, make_vault

pytestmark = needs_corpus
ENTRY = ROOT / "tests" / "process" / "oauth_console.py"
STOP = {"region": "eu-west-1", "query_execution_id": QUERY}


@dataclass
class PublishedPlace:
    """A console with one published connector and its suite, accepted."""

    home: Path
    services: Published
    console: Console

    def setup(self, *words: str) -> Pty:
        argv = [*CLI, "binding", "setup", *words, "--home", str(self.home)]
        environment = {**KNOWN, "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        return Pty(argv, size=(300, 40), environment=environment)

    def run(self, action: str, **args: str) -> Any:
        token = self.console.session()["token"]
        return self.console.run(action, args, token)


@pytest.fixture
def at(request: pytest.FixtureRequest, folder: Path, mailbox: Mailbox) -> Iterator[PublishedPlace]:
    (folder / "service").mkdir()
    home, suite = folder / "home", SUITES[request.param]
    with published(folder / "service", mailbox) as services:
        aileron("connector", "install", str(unpack(suite, folder / "connector")), home=home)
        # Of Google's, one file is of a later version: it is named, and the others are added.
        added = aileron_json("action", "add", str(CORPUS / suite), home=home, code=None)
        assert len(added["problems"]) == (1 if request.param == "oauth2" else 0)
        make_vault(home, PHRASE)
        words = (str(services.service.port), str(folder / "service" / "both.pem"), "serve")
        command = (sys.executable, "-I", str(ENTRY), *words)
        with closing(Console(home, command=command)) as console:
            console.unlock(PHRASE)
            yield PublishedPlace(home, services, console)


@pytest.mark.parametrize("at", ["oauth2"], indirect=True)
def test_a_login_at_google(at: PublishedPlace) -> None:
    """With a client of one's own. Without it nobody is sent to log in, since the manifest's client has no secret."""
    refused = at.setup("aileron-connector-google").text_at_end(2)
    assert "bound-at-release is in place of its client's secret" in refused
    assert "--client-id" in refused
    terminal = at.setup("aileron-connector-google", "--client-id", CLIENT_ID)
    terminal.answer("Client secret", CLIENT_SECRET)
    terminal.shows("Waiting for the browser")
    found = re.search(r"https://accounts\.google\.com/\S+", terminal.raw.decode())
    assert found is not None
    assert "auth%2Fgmail.compose" in found[0]
    assert at.services.google.server.browse(found[0]) == 200
    terminal.answer("account    │ ana@example.com", "y")
    assert "ana@example.com (oauth2/aileron-connector-google/default)" in terminal.text_at_end()
    answer = at.run("get-draft", id="r-8842190447")
    assert answer.status == 200, answer.raw
    assert b"Q3 numbers" in answer.raw


@pytest.mark.parametrize("at", ["aws_sigv4"], indirect=True)
def test_an_access_key_of_aws(at: PublishedPlace) -> None:
    """A region of its own narrows the hosts that it is sent to, and signs nowhere else."""
    words = ("--access-key-id", ACCESS_KEY_ID, "--account", "ana")
    terminal = at.setup("aileron-connector-athena", *words, "--region", "eu-west-1")
    terminal.shows("sent to  athena.eu-west-1.amazonaws.com:443, over TLS, and to no other host")
    terminal.answer("Secret access key (not shown)", SECRET_ACCESS_KEY)
    terminal.answer("Session token", "")
    assert "is bound" in terminal.text_at_end()
    (bound,) = aileron_json("binding", "list", home=at.home)["items"]
    assert (bound["region"], bound["hosts"]) == (
        "eu-west-1",
        ["athena.eu-west-1.amazonaws.com:443"],
    )
    assert bound["problem"] == ""
    assert at.run("get-query-execution", **STOP).status == 200
    reached = len(at.services.service.seen)
    elsewhere = at.run("get-query-execution", **{**STOP, "region": "us-east-1"})
    assert elsewhere.status == 412, elsewhere.raw
    assert elsewhere.error["class"] == "binding_required"
    assert len(at.services.service.seen) == reached
    key = ("--secret-fd", "0", "--identity", "all", "--region", "Ireland")
    nowhere = ("binding", "setup", "aileron-connector-athena", *words, *key)
    said = aileron(*nowhere, home=at.home, stdin=SECRET_ACCESS_KEY, code=2, env=KNOWN)
    assert "is no AWS region" in said.stderr
