"""A person authorizes an account at a terminal, in a browser; the console is real, the wire is, the server is."""

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.authorization_server import CANARY, CLIENT_ID, AuthorizationServer
from tests.support.authorization_server import authorization_server as serving
from tests.support.scripted_guest import furnish_guest
from tests.support.server_harness import CLI, ROOT, Console, aileron
from tests.support.terminal import Pty
from tests.support.vaults import KNOWN, PHRASE, make_vault

NAME = "oauth2/scripted/default"
ENTRY = ROOT / "tests" / "process" / "oauth_console.py"


@dataclass
class Place:
    """A home with a connector that needs an account of kind oauth2, its console, and the server."""

    home: Path
    server: AuthorizationServer
    console: Console

    def command(self, *words: str) -> Pty:
        """Run `aileron binding WORDS` at a terminal without a browser of its own."""
        quiet = {"DISPLAY": "", "WAYLAND_DISPLAY": "", **KNOWN}
        argv = [*CLI, "binding", *words, "--home", str(self.home)]
        return Pty(argv, size=(300, 40), environment=quiet)

    def address(self, terminal: Pty) -> str:
        terminal.shows("Waiting for the browser")
        found = re.search(rf"{re.escape(self.server.base)}/authorize\?\S+", terminal.cells.text)
        found = found or re.search(r"https://\S+/authorize\?\S+", terminal.raw.decode())
        assert found is not None
        return found[0]

    def log_in(self, *words: str) -> str:
        terminal = self.command(*words)
        assert self.server.browse(self.address(terminal)) == 200
        terminal.answer("Is this the account you mean?", "y")
        return terminal.text_at_end()


@contextmanager
def oauth_console(folder: Path, token_host: str = "") -> Iterator[Place]:
    """A console whose connector gets its tokens from *token_host*, if there is one."""
    home = folder / "home"
    (folder / "server").mkdir()
    with serving(folder / "server") as server:
        token_url = token_host and f"https://{token_host}:{server.service.port}/token"
        request = {"url": f"{server.base}/x", "credential": "oauth2"}
        more = server.manifest(token_url)
        furnish_guest(home, [request], [server.service.place], more=more)
        make_vault(home, PHRASE)
        words = (str(server.service.port), str(folder / "server" / "both.pem"), "serve")
        with closing(Console(home, command=(sys.executable, "-I", str(ENTRY), *words))) as console:
            console.unlock(PHRASE)
            yield Place(home, server, console)


@pytest.fixture
def oauth_place(folder: Path) -> Iterator[Place]:
    with oauth_console(folder) as made:
        yield made


def test_an_account_is_shown_stored_and_used(oauth_place: Place) -> None:
    terminal = oauth_place.command("setup", "scripted")
    address = oauth_place.address(terminal)
    assert f"client_id={CLIENT_ID}" in address
    assert oauth_place.server.browse(address) == 200
    terminal.shows("account    │ ana@example.com")
    assert "mail.read, mail.send" in terminal.cells.text
    terminal.type(b"y\n")
    assert f"✓ ana@example.com ({NAME}) is bound" in terminal.text_at_end()
    # Nothing but the requests has the tokens (test_canaries.py), nor has this terminal.
    said = terminal.raw + oauth_place.console.ask("ReadAccounts").raw
    for kind in ("access", "refresh", "code"):
        assert f"{CANARY}-{kind}".encode() not in said

    token = oauth_place.console.session()["token"]
    answer = oauth_place.console.run("see", {}, token)
    assert answer.status == 200, answer.raw
    sent = oauth_place.server.service.seen[-1]
    assert sent.headers["authorization"].removeprefix("Bearer ") in oauth_place.server.access_tokens


def test_a_login_that_ended_at_the_service_is_authorized_again(oauth_place: Place) -> None:
    oauth_place.server.lifetime = 30  # due at once
    oauth_place.log_in("setup", "scripted")
    oauth_place.server.refresh_tokens.clear()
    token = oauth_place.console.session()["token"]
    failed = oauth_place.console.run("see", {}, token)
    assert (failed.status, failed.error["class"]) == (412, "binding_failed")
    # Whose account it is, no agent learns.
    assert "`aileron binding reauthorize ACCOUNT`" in failed.error["message"]
    listed = aileron("binding", "list", home=oauth_place.home).stdout
    assert "does not accept the login any more" in listed
    assert f"aileron binding reauthorize {NAME}" in listed

    oauth_place.server.lifetime = 3600
    assert "is logged in again" in oauth_place.log_in("reauthorize", NAME)
    assert oauth_place.console.run("see", {}, token).status == 200
    events = [each["event"] for each in oauth_place.console.records()]
    found = [each for each in events if each.startswith("binding.")]
    assert found == ["binding.created", "binding.stale", "binding.reauthorized"]


def test_the_host_of_a_strangers_token_endpoint_is_typed(folder: Path) -> None:
    """A yes is not enough: the whole host is."""
    with oauth_console(folder, "evil.example") as place:
        evil = f"evil.example:{place.server.service.port}"
        terminal = place.command("setup", "scripted")
        terminal.shows("typed by you:")
        assert evil in terminal.cells.text
        terminal.type(b"yes\n")
        assert "Nothing was stored" in terminal.text_at_end(1)
        assert place.server.service.seen == []
        terminal = place.command("setup", "scripted")
        terminal.answer("typed by you:", evil)
        place.address(terminal)
        terminal.process.send_signal(signal.SIGINT)
        terminal.text_at_end(130)
        assert place.server.service.seen == []


def test_what_needs_a_person_says_so(oauth_place: Place) -> None:
    words, home = ("binding", "setup", "scripted"), oauth_place.home
    assert "without --json" in aileron(*words, "--json", home=home, code=2).stdout
    done = aileron(*words, "--secret-fd", "0", home=home, code=2, stdin="x" * 20)
    assert "--client-id" in done.stderr
    terminal = oauth_place.command("setup", "scripted", "--device")
    assert "Leave out --device" in terminal.text_at_end(2)
