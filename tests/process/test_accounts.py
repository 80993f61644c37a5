"""Accounts of a real console: bound by the command line, over the socket alone, and their secret nowhere."""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
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
    install_needing_key(folder / "home")
    return folder / "home"


def install_needing_key(home: Path, *hosts: str, version: str = "1.0.0") -> str:
    request = {"url": f"https://{HOST}/x", "credential": "api_key"}
    return furnish_guest(home, [request], [HOST, *hosts], more=NEEDS_KEY, version=version)


def setup(home: Path, *more: str, key: str = KEY, code: int = 0) -> str:
    words = ("binding", "setup", "scripted", "--secret-fd", "0", *more)
    done = aileron(*words, home=home, stdin=key, code=code, env=KNOWN)
    return done.stderr if code else done.stdout


def installed_anew(console: Console, install: Callable[[], object]) -> None:
    """Have other files in the store once *console* is there again, its vault unlocked."""
    console.end()
    shutil.rmtree(console.home / "store")
    install()
    console.start()
    assert console.unlock(PHRASE).status == 200


def listed_accounts(home: Path) -> list[dict[str, Any]]:
    return aileron_json("binding", "list", home=home)["items"]


def told_of(home: Path, *words: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    done = aileron("binding", *words, home=home, code=code, env=env)
    return done.stderr if code else done.stdout


def test_an_account_is_bound_listed_and_revoked(home: Path, unlocked: Console) -> None:
    """Listed without a console too, from the vault's locked file; the rest says that it needs one."""
    said = setup(home, "--account", "ana@example.com")
    for each in (
        f"{FQN}@1.0.0 asks for an account, {NAME}:",
        "a key, in the header X-Key",
        f"sent to  {HOST}, over TLS",
        "its author says │ all of ‹RLO›it",
        f"✓ ana@example.com ({NAME}) is bound",
    ):
        assert each in said
    (item,) = asked = listed_accounts(home)
    assert (item["name"], item["account"], item["problem"]) == (NAME, "ana@example.com", "")
    assert (item["hosts"], item["remembered_for"], item["last_used_at"]) == ([HOST], [], None)
    inspected = told_of(home, "inspect", NAME)
    assert "sent to    api.example:443" in inspected
    assert "last used  never" in inspected
    assert "is bound already" in setup(home, code=1)
    assert "is not remembered for an action 'act'" in told_of(home, "forget", NAME, "act", code=1)
    told_of(home, "forget", "api_key/scripted/none", "act", code=1)

    unlocked.end()
    assert listed_accounts(home) == asked
    for words in (("setup", "scripted"), ("rebind", NAME), ("revoke", NAME)):
        refused = told_of(home, *words, code=69)
        assert "aileron console" in refused
        assert "binding" in refused
    unlocked.start()
    assert unlocked.unlock(PHRASE).status == 200

    refused = aileron("binding", "revoke", NAME, "--json", home=home, code=2)
    assert "Give --yes" in refused.stdout
    assert len(listed_accounts(home)) == 1
    told_of(home, "revoke", NAME, "--yes")
    assert "No account is bound" in told_of(home, "list")
    events = [each["event"] for each in unlocked.records()]
    found = [each for each in events if each.startswith("binding.")]
    assert found == ["binding.created", "binding.revoked"]


def test_another_program_of_the_user_can_ask_and_never_widen(home: Path, unlocked: Console) -> None:
    """On the socket, with the vault unlocked: each widening request needs the passphrase, each time."""
    setup(home, "--account", "ana@example.com")
    before = listed_accounts(home)
    new = {"connector_hash": FQN, "identity": "mine", "account": "", "secret": "a-key-of-mine"}
    widening: list[tuple[str, dict[str, Any]]] = [
        ("BindAccount", new),
        ("RebindAccount", {"name": NAME, "connector_hash": FQN}),
        ("BeginLogin", {"replaces": NAME, "connector_hash": FQN}),
    ]
    for kind, fields in widening:
        assert unlocked.ask(kind, **fields).status == 400, kind
    guessed = [unlocked.ask(kind, **each, passphrase="another one") for kind, each in widening]
    assert [each.error["class"] for each in guessed] == ["forbidden"] * 3
    assert [each.error["details"]["attempts"] for each in guessed] == [1, 2, 3]
    # As if the last one were a moment ago, however slow this machine is.
    attempts = json.loads((home / "vault-attempts.json").read_text())
    attempts["last"] = time.time() + 3600
    (home / "vault-attempts.json").write_text(json.dumps(attempts))
    early = unlocked.ask("BindAccount", **new, passphrase=PHRASE)
    assert early.error["class"] == "rate_limited"
    assert listed_accounts(home) == before
    events = [each["event"] for each in unlocked.records()]
    assert events.count("vault.unlock_failed") == 3
    assert "3 wrong passphrases were given" in aileron("vault", "status", home=home).stdout
    # What takes away needs no passphrase.
    assert unlocked.ask("RevokeAccount", name=NAME).status == 200
    assert listed_accounts(home) == []


def test_what_cannot_be_bound_says_why_before_it_asks(home: Path, unlocked: Console) -> None:
    assert "Did you mean scripted?" in told_of(home, "setup", "scriptd", code=1)
    store = ConnectorStore(home)
    module, manifest = store.read(store.list()[0].identity.hash)
    other = manifest.replace(b"tests/scripted", b"tests/other")
    plain = store.install_bytes(module, other).identity.hash
    assert "is not accepted" in told_of(home, "setup", plain, code=1)
    asked = {"connector_hash": plain, "identity": "x", "account": "", "secret": KEY}
    absent = unlocked.ask("BindAccount", **asked, passphrase=PHRASE)
    assert (absent.status, absent.error["class"]) == (404, "not_found")
    assert "An identity has" in setup(home, "--identity", "A/b", code=2)
    assert "7 bytes" in setup(home, key="1234567", code=2)
    assert "line break" in setup(home, key="12345678\n90", code=2)
    assert "given twice" in setup(home, "--secret-file", "/dev/null", code=2)
    assert listed_accounts(home) == []


def test_a_connector_that_changed_is_bound_again_after_a_yes(home: Path, unlocked: Console) -> None:
    setup(home)
    installed_anew(unlocked, lambda: install_needing_key(home, "more.example:443"))
    said = told_of(home, "list")
    assert "cannot be used: the connector can now reach more.example:443" in said
    assert f"`aileron binding rebind {NAME}`" in said
    assert "no account" in aileron("action", "list", home=home).stdout
    assert unlocked.run("see", {}, unlocked.session()["token"]).status == 202
    assert f"`aileron binding rebind {NAME}`." in aileron("status", home=home).stdout
    assert "newly sent to more.example:443" in told_of(home, "rebind", NAME, "--yes", env=KNOWN)
    assert listed_accounts(home)[0]["problem"] == ""
    assert "no account" not in aileron("action", "list", home=home).stdout


def test_no_secret_is_anywhere_but_in_the_request(home: Path, unlocked: Console) -> None:
    body = {"passphrase": PHRASE, "connector_hash": FQN, "identity": "work", "account": "ana"}
    body["secret"] = KEY
    other = {**body, "identity": "other"}
    answers = [
        unlocked.ask("BindAccount", **each)
        for each in (
            *({**body, **wrong} for wrong in ({"x": 1}, {"connector_hash": "nowhere"})),
            *({**body, "identity": "A B"}, {**body, "secret": KEY + "\n"}),
            *({**body, "secret": each} for each in ([KEY], KEY + "\ud800", KEY * 1000)),
            *({**body, "session_token": KEY, "user": KEY}, other, other),
        )
    ]
    answers.append(unlocked.request("POST", "/v1/intents", raw=KEY.encode(), local=True))
    statuses = [each.status for each in answers]
    assert statuses == [400, 404, 400, 400, 400, 400, 400, 200, 200, 409, 400]
    said = [*(each.raw for each in answers), unlocked.ask("ReadAccounts").raw]
    again = {"passphrase": PHRASE, "name": "api_key/scripted/work", "connector_hash": FQN}
    assert unlocked.ask("RebindAccount", **again).status == 200
    said += [json.dumps(unlocked.records()).encode()]
    unlocked.end()
    said += [unlocked.stderr.read_bytes(), *(each.read_bytes() for each in files_of_home(home))]
    assert all(KEY.encode() not in each and PHRASE.encode() not in each for each in said)


@pytest.mark.real
def test_the_secret_is_typed_unseen_into_a_vault_made_for_it(home: Path, serve: Serve) -> None:
    """Who has no vault gets one; who has it locked is asked for its passphrase."""
    console = serve()
    terminal = terminal_of(home, "binding", "setup", "scripted")
    terminal.shows("asks for an account")
    for prompt in ("Passphrase for a new vault", "The same again"):
        terminal.answer(prompt, PHRASE)
    terminal.answer("Your name for this account", "ana@example.com")
    terminal.answer("Key (not shown):", KEY)
    assert f"ana@example.com ({NAME}) is bound" in terminal.text_at_end()
    model = terminal_of(home, "gateway", "key", "set", "anthropic")
    model.answer("Passphrase of the vault", PHRASE)
    model.answer("Key (not shown)", MODEL_KEY)
    assert "is in the vault" in model.text_at_end()
    assert [each["provider"] for each in model_keys(home)] == ["anthropic"]
    for secret in (KEY, MODEL_KEY, PHRASE):
        assert secret.encode() not in terminal.raw + model.raw

    assert console.ask("LockVault").status == 204
    terminal = terminal_of(home, "binding", "revoke", NAME)
    terminal.answer("Delete ana@example.com", "n")
    terminal.text_at_end(1)
    terminal = terminal_of(home, "binding", "revoke", NAME)
    terminal.answer("[y/N]", "y")
    terminal.answer("Passphrase of the vault", PHRASE)
    assert "revoke it there as well" in terminal.text_at_end()


@pytest.mark.real
def test_values_of_a_server_are_typed_unseen_and_again_for_others(home: Path, serve: Serve) -> None:
    """Read from a descriptor they are a JSON object. Lists have their names, and no file has a value."""
    name = "environment/small/default"

    def install(*secrets: str) -> None:
        install_server(home, table(home.parent, secrets=secrets, hosts=(HOST,)))

    shutil.rmtree(home / "store")
    install("TOKEN", "PEM")
    console = serve()
    terminal = terminal_of(home, "binding", "setup", "small")
    for shown in ("needs    TOKEN, PEM", "held by  the server itself", f"reaches  {HOST}, and no"):
        terminal.shows(shown)
    for prompt in ("Passphrase for a new vault", "The same again"):
        terminal.answer(prompt, PHRASE)
    terminal.answer("Your name for this account", "")
    for each in ("TOKEN", "PEM"):
        terminal.answer(f"{each} (not shown):", KEY)
    assert f"{name} is bound" in terminal.text_at_end()
    words = ("binding", "setup", "small", "--secret-fd", "0")
    given = json.dumps({"TOKEN": KEY, "PEM": "canary\nkey"})
    aileron(*words, "--identity", "work", home=home, stdin=given, env=KNOWN)
    installed_anew(console, lambda: install("TOKEN", "EXTRA"))
    said = told_of(home, "list")
    assert f"{name}  mcp://local/small\n    values │ TOKEN, PEM\n" in said
    assert "cannot be used: the server now asks for other values: delete the account" in said
    assert f"`aileron binding revoke {name}`" in said
    told_of(home, "revoke", name, "--yes", env=KNOWN)
    given = json.dumps({"TOKEN": KEY, "EXTRA": KEY})
    aileron(*words, home=home, stdin=given, env=KNOWN)
    usable = {each["name"]: each["names"] for each in listed_accounts(home) if not each["problem"]}
    assert usable == {name: ["TOKEN", "EXTRA"]}
    kept = [each.read_bytes() for each in files_of_home(home)]
    everything = [terminal.raw, json.dumps(console.records()).encode(), *kept]
    assert not any(b"canary" in each for each in everything)


def files_of_home(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file()]


def terminal_of(home: Path, *words: str) -> Pty:
    return Pty([*CLI, *words, "--home", str(home)])


def test_nobody_at_a_terminal_is_told_what_to_do(home: Path, serve: Serve) -> None:
    console = serve()
    words = [*CLI, "binding", "setup", "scripted", "--home", str(home)]

    def run(*more: str, given: str = "", **options: Any) -> str:
        done = run_forked([*words, *more], given, start_new_session=True, **options)
        assert done.returncode in (1, 2)
        return done.stderr

    assert "`aileron vault init`" in run("--secret-fd", "0", given=KEY)
    aileron("vault", "init", "--passphrase-fd", "0", home=home, stdin=PHRASE)
    aileron("vault", "lock", home=home)
    assert "`aileron vault unlock`" in run("--secret-fd", "0", given=KEY)
    console.unlock(PHRASE)
    assert "--passphrase-fd or --passphrase-file" in run("--secret-fd", "0", given=KEY)
    assert "--secret-fd or --secret-file" in run(env={**os.environ, **KNOWN})


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


def test_a_servers_secret_goes_into_the_vault_alone(home: Path, unlocked: Console) -> None:
    """`aileron server add --from`: out of an agent's settings, which stay as they are."""
    run = ("npx", "-y", "pkg")
    made = table(home.parent, run=run, secrets=("API_KEY",), hosts=(HOST,))
    installed_anew(unlocked, lambda: install_server(home, made))
    entries = {
        "small": {"command": run[0], "args": run[1:], "env": {"API_KEY": KEY}},
        "sse": {"type": "sse", "url": "https://mcp.example"},
    }
    file = home.parent / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    before = file.read_bytes()
    words = ("server", "add", "--from", str(file))
    refused = aileron(*words, "--json", home=home, env=KNOWN, code=2)
    assert "Give --yes" in refused.stdout
    assert listed_accounts(home) == []

    said = aileron(*words, "--yes", home=home, env=KNOWN, code=1).stdout
    assert f"✗ sse ({file}) was not added: it is reached by SSE" in said
    assert "in the vault, for small alone" in said
    (bound,) = listed_accounts(home)
    assert (bound["name"], bound["problem"]) == ("environment/small/default", "")
    assert file.read_bytes() == before
    again = aileron(*words, "small", "--yes", home=home, env=KNOWN).stdout
    assert "has an account already" in again
    unlocked.end()
    assert not [each for each in files_of_home(home) if KEY.encode() in each.read_bytes()]
    assert KEY not in said + again


# Keys of models' providers: `aileron gateway key`

MODEL_KEY = "sk-canary-51ab90"


def model_keys(home: Path) -> list[dict[str, str]]:
    return aileron_json("gateway", "key", "list", home=home)["items"]


def test_a_key_is_stored_listed_and_removed_by_passphrase(home: Path, unlocked: Console) -> None:
    words = ("gateway", "key", "set", "openai", "--secret-fd", "0")
    refused = aileron(*words, home=home, stdin=MODEL_KEY, code=2)
    assert "passphrase" in refused.stderr
    wrong = {"AILERON_VAULT_PASSPHRASE": "another passphrase"}
    refused = aileron(*words, home=home, stdin=MODEL_KEY, code=77, env=wrong)
    assert "not the vault's passphrase" in refused.stderr
    assert model_keys(home) == []
    body = {"provider": "openai", "base_url": "https://api.openai.com", "secret": MODEL_KEY}
    assert unlocked.ask("SetModelKey", **body).status == 400
    body |= {"passphrase": PHRASE, "base_url": "https://other.example"}
    assert unlocked.ask("SetModelKey", **body).status == 409

    said = aileron(*words, home=home, stdin=MODEL_KEY, env=KNOWN).stdout
    assert "sent to  https://api.openai.com, over TLS, and to no other address" in said
    assert "✓ The key for openai is in the vault." in said
    (key,) = model_keys(home)
    assert (key["provider"], key["problem"]) == ("openai", "")
    said = aileron("gateway", "key", "list", home=home).stdout
    assert "✓ openai  sent to https://api.openai.com" in said

    opened = unlocked.session(key_providers=["openai", "gemini"])
    assert opened["key_providers"] == ["openai"]
    assert opened["placeholder"].endswith("-aileron-placeholder")
    assert "placeholder" not in unlocked.session()
    asked = {"agent": "codex", "cwd": "/", "key_providers": ["nobody"]}
    assert unlocked.post("/v1/sessions", asked, local=True).status == 400

    aileron("gateway", "key", "remove", "openai", "--yes", home=home)
    assert model_keys(home) == []
    assert "placeholder" not in unlocked.session(key_providers=["openai"])
    events = [record["event"] for record in unlocked.records()]
    assert (events.count("gateway.key_set"), events.count("gateway.key_removed")) == (1, 1)
    unlocked.end()
    assert not [each for each in files_of_home(home) if MODEL_KEY.encode() in each.read_bytes()]


def test_a_key_that_config_now_sends_elsewhere_is_not_used(home: Path, unlocked: Console) -> None:
    """It is for one address; without a console the files say so too."""
    words = ("gateway", "key", "set", "openai", "--secret-fd", "0")
    aileron(*words, home=home, stdin=MODEL_KEY, env=KNOWN)
    unlocked.end()
    (home / "config.toml").write_text('[gateway]\nopenai = "https://models.example"\n')
    shown = aileron("gateway", "key", "list", home=home).stdout
    assert "not used: requests to openai go to https://models.example now" in shown
    (home / "config.toml").write_text('[gateway]\nopenai = "http://models.example"\n')
    unlocked.start()
    unlocked.unlock(PHRASE)
    assert "placeholder" not in unlocked.session(key_providers=["openai"])
    refused = aileron("gateway", "key", "set", "openai", home=home, code=None)
    assert "http://models.example is not https" in refused.stderr
    assert "over TLS" not in refused.stdout
