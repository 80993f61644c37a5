"""Accounts of a real console: bound by the command line, over the socket alone, and their secret nowhere."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.store import ConnectorStore
from tests.process.test_cli_completion import bash_words
from tests.support.forked import run_forked
from tests.support.mcp_servers import install as install_server
from tests.support.mcp_servers import table
from tests.support.scripted_guest import FQN, furnish_guest
from tests.support.server_harness import CLI, Console, Serve, aileron, aileron_json
from tests.support.terminal import Pty
from tests.support.vaults import KNOWN, PHRASE

KEY = "canary-key-51ab90"
HOST = "api.example:443"
NEEDS_KEY = (
    '[capabilities.credential]\nkind = "api_key"\nscope = "all of \\u202eit"\nheader = "X-Key"\n'
    'format = "{key}"\n'
)
NAME = "api_key/scripted/default"


@pytest.fixture
def home(folder: Path) -> Path:
    """A home with a connector that needs a key, and the actions `act` and `see` over it."""
    install(folder / "home")
    return folder / "home"


def install(home: Path, *hosts: str, version: str = "1.0.0") -> str:
    request = {"url": f"https://{HOST}/x", "credential": "api_key"}
    return furnish_guest(home, [request], [HOST, *hosts], more=NEEDS_KEY, version=version)


def setup(
    home: Path, *more: str, key: str = KEY, code: int = 0
) -> "subprocess.CompletedProcess[str]":
    words = ("binding", "setup", "scripted", "--secret-fd", "0", *more)
    return aileron(*words, home=home, stdin=key, code=code, env=KNOWN)


def test_an_account_is_bound_listed_and_revoked(home: Path, unlocked: Console) -> None:
    said = setup(home, "--account", "ana@example.com").stdout
    assert f"{FQN}@1.0.0 asks for an account, {NAME}:" in said
    assert "a key, in the header X-Key" in said
    assert f"sent to  {HOST}, over TLS" in said
    assert "its author says │ all of ‹RLO›it" in said
    assert f"✓ ana@example.com ({NAME}) is bound" in said

    (listed,) = aileron_json("binding", "list", home=home)["items"]
    assert (listed["name"], listed["account"], listed["problem"]) == (NAME, "ana@example.com", "")
    assert listed["hosts"] == [HOST]
    assert "sent to    api.example:443" in aileron("binding", "inspect", NAME, home=home).stdout
    again = setup(home, code=1)
    assert "is bound already" in again.stderr

    refused = aileron("binding", "revoke", NAME, "--json", home=home, code=2)
    assert "Give --yes" in refused.stdout
    assert len(aileron_json("binding", "list", home=home)["items"]) == 1
    aileron("binding", "revoke", NAME, "--yes", home=home)
    assert "No account is bound" in aileron("binding", "list", home=home).stdout
    assert [
        each["event"] for each in unlocked.records() if each["event"].startswith("binding.")
    ] == ["binding.created", "binding.revoked"]


def test_accounts_are_listed_without_a_console(home: Path, unlocked: Console) -> None:
    """From the vault's file, locked; the rest says that it needs a console."""
    setup(home, "--account", "ana@example.com")
    asked = aileron_json("binding", "list", home=home)
    unlocked.end()
    assert aileron_json("binding", "list", home=home) == asked
    for words in (("setup", "scripted"), ("rebind", NAME), ("revoke", NAME)):
        done = aileron("binding", *words, home=home, code=69)
        assert "aileron console" in done.stderr
        assert "binding" in done.stderr


def test_another_program_of_the_account_can_ask_and_never_widen(
    home: Path, unlocked: Console
) -> None:
    """On the socket, with the vault unlocked: each widening request needs the passphrase, each time."""
    setup(home, "--account", "ana@example.com")
    before = aileron_json("binding", "list", home=home)
    new = {"connector_hash": FQN, "identity": "mine", "account": "", "secret": "a-key-of-mine"}
    widening: list[tuple[str, dict[str, Any]]] = [
        ("BindAccount", new),
        ("RebindAccount", {"name": NAME, "connector_hash": FQN}),
        ("BeginLogin", {"replaces": NAME, "connector_hash": FQN}),
    ]
    for kind, fields in widening:
        assert unlocked.ask(kind, **fields).status == 400, kind
    guessed = [
        unlocked.ask(kind, **fields, passphrase="not the passphrase") for kind, fields in widening
    ]
    assert [each.error["class"] for each in guessed] == ["forbidden"] * 3
    assert [each.error["details"]["attempts"] for each in guessed] == [1, 2, 3]
    # As if the last one were a moment ago, however slow this machine is.
    attempts = json.loads((home / "vault-attempts.json").read_text())
    attempts["last"] = time.time() + 3600
    (home / "vault-attempts.json").write_text(json.dumps(attempts))
    early = unlocked.ask("BindAccount", **new, passphrase=PHRASE)
    assert early.error["class"] == "rate_limited"
    assert aileron_json("binding", "list", home=home) == before
    failed = [each for each in unlocked.records() if each["event"] == "vault.unlock_failed"]
    assert len(failed) == 3
    assert "3 wrong passphrases were given" in aileron("vault", "status", home=home).stdout


def test_what_takes_away_needs_no_passphrase(home: Path, unlocked: Console) -> None:
    setup(home)
    assert unlocked.ask("RevokeAccount", name=NAME).status == 200
    assert aileron_json("binding", "list", home=home)["items"] == []


def test_a_remembered_choice_is_shown_and_forgotten(home: Path, unlocked: Console) -> None:
    """Forgetting needs no passphrase: it only has a person asked again."""
    setup(home)
    done = aileron("binding", "forget", NAME, "act", home=home, code=1)
    assert "is not remembered for an action 'act'" in done.stderr
    (listed,) = aileron_json("binding", "list", home=home)["items"]
    assert (listed["remembered_for"], listed["last_used_at"]) == ([], None)
    assert "last used  never" in aileron("binding", "inspect", NAME, home=home).stdout
    aileron("binding", "forget", "api_key/scripted/none", "act", home=home, code=1)


def test_what_cannot_be_bound_says_why_before_it_asks(home: Path, unlocked: Console) -> None:
    assert (
        "Did you mean scripted?" in aileron("binding", "setup", "scriptd", home=home, code=1).stderr
    )
    plain = furnish_plain(home)
    done = aileron("binding", "setup", plain, home=home, code=1)
    assert "is not accepted" in done.stderr
    asked = {"connector_hash": plain, "identity": "x", "account": "", "secret": KEY}
    absent = unlocked.ask("BindAccount", **asked, passphrase=PHRASE)
    assert (absent.status, absent.error["class"]) == (404, "not_found")
    assert "An identity has" in setup(home, "--identity", "A/b", code=2).stderr
    assert "7 bytes" in setup(home, key="1234567", code=2).stderr
    assert "line break" in setup(home, key="12345678\n90", code=2).stderr
    twice = setup(home, "--secret-file", "/dev/null", code=2)
    assert "given twice" in twice.stderr
    assert aileron_json("binding", "list", home=home)["items"] == []


def furnish_plain(home: Path) -> str:
    module, manifest = ConnectorStore(home).read(ConnectorStore(home).list()[0].identity.hash)
    other = manifest.replace(b"tests/scripted", b"tests/other")
    return ConnectorStore(home).install_bytes(module, other).identity.hash


def test_a_connector_that_changed_is_bound_again_after_a_yes(
    home: Path, unlocked: Console, serve: Serve
) -> None:
    """Its new host is said; until then nothing of it uses the account."""
    setup(home)
    unlocked.end()
    shutil.rmtree(home / "store")
    install(home, "more.example:443")
    unlocked.start()
    unlocked.unlock(PHRASE)
    said = aileron("binding", "list", home=home).stdout
    assert "cannot be used: the connector can now reach more.example:443" in said
    assert f"`aileron binding rebind {NAME}`" in said
    assert "no account" in aileron("action", "list", home=home).stdout
    assert unlocked.run("see", {}, unlocked.session()["token"]).status == 202
    assert f"`aileron binding rebind {NAME}`." in status_text(home)
    done = aileron("binding", "rebind", NAME, "--yes", home=home, env=KNOWN).stdout
    assert "newly sent to more.example:443" in done
    (listed,) = aileron_json("binding", "list", home=home)["items"]
    assert listed["problem"] == ""
    assert "no account" not in aileron("action", "list", home=home).stdout


def status_text(home: Path) -> str:
    return aileron("status", home=home).stdout


def test_no_secret_is_anywhere_but_in_the_request(home: Path, unlocked: Console) -> None:
    """Answers, errors, log, audit, database and files; the vault's file has it encrypted."""
    body = {
        "passphrase": PHRASE, "connector_hash": FQN, "identity": "work", "account": "ana", "secret": KEY,
    }  # fmt: skip
    answers = [
        unlocked.ask("BindAccount", **each)
        for each in (
            {**body, "x": 1},
            {**body, "connector_hash": "nowhere"},
            {**body, "identity": "A B"},
            {**body, "secret": KEY + "\n"},
            {**body, "secret": [KEY]},
            {**body, "secret": KEY + "\ud800"},
            {**body, "secret": KEY * 1000},
            {**body, "session_token": KEY, "user": KEY},
            {**body, "identity": "other"},
            {**body, "identity": "other"},
        )
    ]
    answers.append(unlocked.request("POST", "/v1/intents", raw=KEY.encode(), local=True))
    statuses = [each.status for each in answers]
    assert statuses == [400, 404, 400, 400, 400, 400, 400, 200, 200, 409, 400]
    said = [each.raw for each in answers]
    said += [unlocked.ask("ReadAccounts").raw]
    again = {"passphrase": PHRASE, "name": "api_key/scripted/work", "connector_hash": FQN}
    assert unlocked.ask("RebindAccount", **again).status == 200
    said += [json.dumps(unlocked.records()).encode()]
    unlocked.end()
    said += [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    said += [unlocked.stderr.read_bytes()]
    assert all(KEY.encode() not in each and PHRASE.encode() not in each for each in said)


@pytest.mark.real
def test_the_secret_is_typed_unseen_into_a_vault_that_is_made_for_it(
    home: Path, serve: Serve
) -> None:
    """Who has no vault gets one; who has it locked is asked for its passphrase."""
    console = serve()
    terminal = binding_terminal(home, "setup", "scripted")
    terminal.shows("asks for an account")
    for prompt in ("Passphrase for a new vault", "The same again"):
        terminal.answer(prompt, PHRASE)
    terminal.answer("Your name for this account", "ana@example.com")
    terminal.answer("Key (not shown):", KEY)
    said = terminal.text_at_end()
    assert f"ana@example.com ({NAME}) is bound" in said
    assert KEY.encode() not in terminal.raw
    assert PHRASE.encode() not in terminal.raw

    assert console.ask("LockVault").status == 204
    terminal = binding_terminal(home, "revoke", NAME)
    terminal.answer("Delete ana@example.com", "n")
    said = terminal.text_at_end(1)
    terminal = binding_terminal(home, "revoke", NAME)
    terminal.answer("[y/N]", "y")
    terminal.answer("Passphrase of the vault", PHRASE)
    said = terminal.text_at_end()
    assert "revoke it there as well" in said


@pytest.mark.real
def test_the_values_of_a_server_are_typed_unseen_and_again_where_it_asks_for_others(
    home: Path, folder: Path, serve: Serve
) -> None:
    """Read from a descriptor they are a JSON object. Lists have their names, and no file has a value."""
    name = "environment/small/default"

    def install(*secrets: str) -> None:
        shutil.rmtree(home / "store")
        install_server(home, table(folder, secrets=secrets, hosts=(HOST,)))

    install("TOKEN", "PEM")
    console = serve()
    terminal = binding_terminal(home, "setup", "small")
    for shown in ("needs    TOKEN, PEM", "held by  the server itself", f"reaches  {HOST}, and no"):
        terminal.shows(shown)
    for prompt in ("Passphrase for a new vault", "The same again"):
        terminal.answer(prompt, PHRASE)
    terminal.answer("Your name for this account", "")
    for each in ("TOKEN", "PEM"):
        terminal.answer(f"{each} (not shown):", KEY)
    assert f"{name} is bound" in terminal.text_at_end()
    given = json.dumps({"TOKEN": KEY, "PEM": "canary\nkey"})
    more = ("--identity", "work", "--secret-fd", "0")
    aileron("binding", "setup", "small", *more, home=home, stdin=given, env=KNOWN)
    console.end()
    install("TOKEN", "EXTRA")
    console.start()
    console.unlock(PHRASE)
    listed = aileron("binding", "list", home=home).stdout
    assert f"{name}  mcp://local/small\n    values │ TOKEN, PEM\n" in listed
    assert "cannot be used: the server now asks for other values: delete the account" in listed
    assert f"`aileron binding revoke {name}`" in listed
    aileron("binding", "revoke", name, "--yes", home=home, env=KNOWN)
    more = ("--secret-fd", "0")
    given = json.dumps({"TOKEN": KEY, "EXTRA": KEY})
    aileron("binding", "setup", "small", *more, home=home, stdin=given, env=KNOWN)
    usable = {
        each["name"]: each["names"]
        for each in aileron_json("binding", "list", home=home)["items"]
        if not each["problem"]
    }
    assert usable == {name: ["TOKEN", "EXTRA"]}
    files = [each.read_bytes() for each in home.rglob("*") if each.is_file()]
    said = [terminal.raw, json.dumps(console.records()).encode(), *files]
    assert not any(b"canary" in each for each in said)


def binding_terminal(home: Path, *words: str) -> Pty:
    return Pty([*CLI, "binding", *words, "--home", str(home)])


def test_nobody_at_a_terminal_is_told_what_to_do(home: Path, serve: Serve) -> None:
    console = serve()
    words = [*CLI, "binding", "setup", "scripted", "--home", str(home)]

    def run(*more: str, given: str = "", **options: Any) -> str:
        done = run_forked([*words, *more], given, start_new_session=True, **options)
        assert done.returncode in (1, 2)
        return done.stderr

    assert "`aileron vault init`" in run("--secret-fd", "0", given=KEY)
    aileron("vault", "init", "--passphrase-fd", "0", home=home, stdin=PHRASE, code=0)
    aileron("vault", "lock", home=home)
    assert "`aileron vault unlock`" in run("--secret-fd", "0", given=KEY)
    console.unlock(PHRASE)
    assert "--passphrase-fd or --passphrase-file" in run("--secret-fd", "0", given=KEY)
    typed = {**os.environ, **KNOWN}
    assert "--secret-fd or --secret-file" in run(env=typed)


def test_a_shell_completes_connectors_and_accounts(home: Path, unlocked: Console) -> None:
    """What another program wrote there does not become words of a command."""
    setup(home, "--account", "ana")
    assert bash_words(home, "aileron binding setup scr") == ["scripted"]
    assert bash_words(home, "aileron binding revoke api") == [NAME]
    unlocked.end()
    document = json.loads((home / "vault.json").read_text())
    entry = document["entries"][NAME]
    document["entries"] = {"api_key/$(x)/y": entry, "api_key/b/c": [], NAME: entry}
    (home / "vault.json").write_text(json.dumps(document))
    assert bash_words(home, "aileron binding revoke api") == ["api_key/b/c", NAME]
    (home / "vault.json").write_text("[")
    assert bash_words(home, "aileron binding revoke api") == []
