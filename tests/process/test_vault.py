"""The vault of a real console: over the socket, by the command line, unattended; and where no secret goes."""

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from examples.mailbox.server import Mailbox
from tests.support.forked import run_forked
from tests.support.making import program
from tests.support.processes import eventually
from tests.support.server_harness import CLI, DRAFT, ROOT, Console, Serve, aileron, aileron_json
from tests.support.terminal import Pty
from tests.support.variants import variants
from tests.support.vaults import make_vault

PHRASE, OTHER = "canary-phrase-c41d", "canary-other-77aa"
WRONG = "canary-wrong-9b3e"


@pytest.fixture
def unattended(home: Path, serve: Serve) -> Console:
    """A console whose vault a file unlocks."""
    file = program(home.parent / "phrase", PHRASE + "\n", 0o600)
    make_vault(home, PHRASE)
    return serve(None, "--passphrase-file", str(file))


def vault_events(console: Console) -> list[tuple[str, str]]:
    found = [each for each in console.records() if each["event"].startswith("vault.")]
    return [(each["event"], each["actor"]) for each in found]


def test_the_vault_of_a_console_from_its_creation_to_a_restart(home: Path, serve: Serve) -> None:
    """The keyring is turned on with the passphrase, and this machine's says that it has none."""
    make_vault(home, PHRASE)
    console = serve()
    assert console.ask("ReadVault").json["VaultStatus"]["has_keyring"] is False
    assert console.ask("UnlockVaultWithKeyring").status == 400, "never over the socket"
    wrong = console.unlock(WRONG), console.ask("SetKeyring", on=True, passphrase=WRONG)
    assert [each.status for each in wrong] == [403, 403]
    assert [each.error["details"]["attempts"] for each in wrong] == [1, 2]
    assert console.vault == "locked"
    done = aileron("vault", "unlock", "--passphrase-fd", "0", home=home, stdin=PHRASE)
    assert "The vault is unlocked" in done.stdout
    assert "2 wrong passphrases were given since" in done.stdout
    assert console.vault == "unlocked"
    aileron("vault", "lock", home=home)
    assert console.vault == "locked"
    assert console.unlock(PHRASE).json["VaultUnlocked"]["failed_attempts"] == 0
    whens = ("created", "unlock_failed", "unlock_failed", "unlocked", "locked", "unlocked")
    assert vault_events(console) == [(f"vault.{when}", "person") for when in whens]
    console.end()
    console.start()
    assert console.vault == "locked", "a console never unlocks it by itself"


def encoded_spellings(secret: str) -> Iterator[bytes]:
    yield secret.encode()
    yield secret.encode().hex().encode()
    # base64 in its three alignments, without the ends that neighbours change
    for offset in range(3):
        yield base64.b64encode(b"x" * offset + secret.encode())[4:-4]


def test_no_passphrase_is_anywhere_but_in_the_request(home: Path, serve: Serve) -> None:
    make_vault(home, PHRASE)
    console = serve()
    said = [console.unlock(WRONG).raw, console.unlock(PHRASE).raw, console.unlock(OTHER).raw]
    said.append(console.ask("CreateVault", passphrase=PHRASE).raw)
    kinds = ("CreateVault", "UnlockVault", "ChangePassphrase", PHRASE)
    for fields in ({"passphrase": PHRASE, "x": 1}, {"passphrase": [PHRASE]}, {"old": PHRASE}):
        said += [console.ask(kind, **fields).raw for kind in kinds]
    raw = b'{"UnlockVault": {"passphrase": "' + PHRASE.encode() + b'", "passphrase": "y"}}'
    for each in (raw, PHRASE.encode(), json.dumps({"UnlockVault": PHRASE}).encode()):
        said.append(console.request("POST", "/v1/intents", raw=each, local=True).raw)
    assert console.ask("ChangePassphrase", old=PHRASE, new=OTHER).status == 204
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            if process.name != str(os.getpid()):
                with contextlib.suppress(OSError):
                    said.append((process / name).read_bytes())
    files = [path for path in home.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"aileron.db", "aileron.log", "vault.json", "vault.json.previous"} <= names
    said += [path.read_bytes() for path in files]
    console.end()
    said += [path.read_bytes() for path in (console.stderr, home / "aileron.db")]
    for phrase in (PHRASE, OTHER, WRONG):
        for spelling in encoded_spellings(phrase):
            assert all(spelling not in each for each in said)


def test_a_console_unlocked_by_a_file_says_so(home: Path, unattended: Console) -> None:
    assert unattended.ask("ReadVault").json["VaultStatus"]["unattended"] is True
    assert vault_events(unattended)[-1] == ("vault.unlocked", "aileron")
    for command in (("vault", "status"), ("status",)):
        assert "unattended" in aileron(*command, home=home).stdout
        assert aileron_json(*command, home=home)["unattended"] is True
    assert "unattended" in aileron("doctor", home=home, code=None).stdout
    # Whoever has the file can lock and unlock it: it stays what it was.
    aileron("vault", "lock", home=home)
    assert aileron_json("status", home=home)["unattended"] is False
    assert unattended.unlock(PHRASE).status == 200
    assert aileron_json("status", home=home)["unattended"] is True


def test_a_passphrase_decides_nothing(unattended: Console) -> None:
    token = unattended.session()["token"]
    asked = unattended.run("send-draft", {"draft_id": DRAFT}, token)
    assert asked.status == 202
    approval = asked.json["approval_id"]
    body = {"approved": True, "passphrase": PHRASE}
    path = f"/v1/action-approvals/{approval}/decide"
    statuses = [
        unattended.request("POST", path, body, token=each, local=local).status
        for each, local in product((None, token, PHRASE), (True, False))
    ]
    assert statuses == [401, 401, 403, 403, 401, 401]
    result = unattended.get(f"/v1/action-approvals/{approval}/result", token=token).json
    assert result["status"] == "pending_approval"
    assert not [each for each in unattended.records() if each["event"].startswith("approval.")]
    # And none that decides comes by the way in that takes one.
    taken = unattended.ask("Approve", approval_id=approval, digest="0" * 64, passphrase=PHRASE)
    assert taken.status == 400


def test_an_unattended_start_widens_nothing(home: Path, unattended: Console, serve: Serve) -> None:
    """Also after the vault was locked and unlocked with it; what takes away, and its status, still work."""
    account = {"connector_hash": "x", "identity": "mine", "account": "", "secret": "a-key-of-mine"}
    key = {"provider": "anthropic", "base_url": "https://api.anthropic.com", "secret": "a-key"}
    widening: list[tuple[str, dict[str, Any]]] = [
        ("BindAccount", account),
        ("RebindAccount", {"name": "api_key/x/mine", "connector_hash": "x"}),
        ("BeginLogin", {"connector_hash": "x"}),
        ("SetModelKey", key),
        ("SetKeyring", {"on": True}),
    ]
    for _ in range(2):
        for kind, fields in widening:
            answer = unattended.ask(kind, **fields, passphrase=PHRASE)
            assert (answer.status, answer.error["class"]) == (403, "forbidden"), kind
            assert "from a file, a descriptor or a variable" in answer.error["message"]
        aileron("vault", "lock", home=home)
        assert unattended.unlock(PHRASE).status == 200
    unattended.end()
    attended = serve()
    assert attended.unlock(PHRASE).status == 200
    for kind, fields in widening[:3]:
        assert attended.ask(kind, **fields, passphrase=PHRASE).error["class"] == "not_found", kind


def test_the_variable_is_overwritten_in_the_process(home: Path, serve: Serve) -> None:
    make_vault(home, PHRASE)
    console = serve(env={"AILERON_VAULT_PASSPHRASE": PHRASE})
    assert console.vault == "unlocked"
    environ = Path(f"/proc/{console.process.pid}/environ").read_bytes()
    assert b"AILERON_VAULT_PASSPHRASE=\0" in environ, "the name is there, so this is what is meant"
    assert PHRASE.encode() not in environ


def test_popping_the_variable_alone_would_leave_it(tmp_path: Path) -> None:
    """What is overwritten is the block that the kernel shows; a child's is clean as well."""
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n"
        "import os, subprocess\n"
        "from aileron_core.vault.unattended import take_passphrase_variable\n"
        "before = open('/proc/self/environ', 'rb').read()\n"
        "taken = take_passphrase_variable()\n"
        "after = open('/proc/self/environ', 'rb').read()\n"
        "child = subprocess.run(['env', '-0'], capture_output=True).stdout\n"
        f"secret = {PHRASE!r}.encode()\n"
        "print(secret in before, secret in after, secret in child, taken.reveal() == secret,"
        " len(before) == len(after), b'HERE=1' in after, b'HERE=1' in child)\n"
    )
    env = {"BEFORE": "0", "AILERON_VAULT_PASSPHRASE": PHRASE, "HERE": "1"}
    said = subprocess.check_output([sys.executable, "-c", code], env=env, text=True)
    assert said.split() == ["True", "False", "False", "True", "True", "True", "True"]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda file: file.chmod(0o640), "Others can read"),
        (lambda file: (file.parent / ".git").mkdir(), "is in the project"),
        (lambda file: (file.parent.parent / "aileron.toml").touch(), "is in the project"),
        (lambda file: file.write_text(""), "There is no passphrase in"),
        (lambda file: file.unlink(), "cannot be read"),
        (lambda file: os.chown(file, 65534, -1), "not a regular file that you own"),
    ],
)
def test_a_file_that_others_may_have_read_is_refused(home: Path, spoil: Any, sentence: str) -> None:
    if sentence == "not a regular file that you own" and os.getuid() != 0:
        pytest.skip("only root gives files away")
    file = program(home.parent / "project" / "below" / "phrase", PHRASE, 0o600)
    spoil(file)
    make_vault(home, PHRASE)
    done = aileron("serve", "--passphrase-file", str(file), home=home, code=2)
    assert sentence in done.stderr
    assert PHRASE not in done.stderr


def test_without_terminal_console_or_right_passphrase_it_says_what_to_do(home: Path) -> None:
    assert "aileron vault init" in aileron("vault", "status", home=home).stdout
    serve, given = ("serve", "--passphrase-fd", "0"), {"AILERON_VAULT_PASSPHRASE": PHRASE}
    assert "aileron vault init" in aileron(*serve, home=home, stdin=PHRASE, code=1).stderr
    none = run_forked([*CLI, "vault", "init", "--home", str(home)], start_new_session=True)
    assert none.returncode == 2
    assert "--passphrase-fd or --passphrase-file" in none.stderr
    aileron("vault", "init", "--passphrase-fd", "0", home=home, stdin=PHRASE)
    assert "aileron vault unlock" in aileron("vault", "init", home=home, code=1).stderr
    for command in ("unlock", "lock", "change-passphrase"):
        assert "aileron console" in aileron("vault", command, home=home, code=69).stderr
    assert aileron_json("vault", "status", home=home)["state"] == "locked"
    wrong = aileron(*serve, home=home, stdin=WRONG, code=77).stderr
    assert "not the vault's passphrase" in wrong
    assert "given twice" in aileron(*serve, home=home, env=given, stdin=PHRASE, code=2).stderr


@pytest.mark.real
def test_the_passphrase_is_typed_unseen_and_twice(home: Path, serve: Serve) -> None:
    def ask(*words: str) -> Pty:
        return Pty([*CLI, "vault", *words, "--home", str(home)])

    terminal = ask("init")
    terminal.answer("New passphrase", PHRASE)
    terminal.answer("The same again", OTHER)
    assert terminal.ended() == 2
    assert "two passphrases differ" in terminal.cells.text
    assert not (home / "vault.json").exists()

    terminal = ask("init")
    for prompt in ("New passphrase", "The same again"):
        terminal.answer(prompt, PHRASE)
    assert terminal.ended() == 0
    assert PHRASE.encode() not in terminal.raw

    console = serve()
    terminal = ask("change-passphrase")
    terminal.answer("Passphrase of the vault", PHRASE)
    for prompt in ("New passphrase", "The same again"):
        terminal.answer(prompt, OTHER)
    assert terminal.ended() == 0
    assert OTHER.encode() not in terminal.raw
    assert console.unlock(PHRASE).status == 403
    assert console.unlock(OTHER).status == 200


# Locked: agents see every tool, over MCP and REST, and every call waits

AWAITING = [("list-drafts", "awaiting_vault"), ("send-draft", "awaiting_vault")]


@pytest.fixture
def locked(home: Path, serve: Serve, mailbox: Mailbox) -> Console:
    """The example's files were accepted before there was a vault, which signed them; it is locked."""
    (home / "config.toml").write_text("[mcp]\nhold_seconds = 0\n")
    serve(mailbox).end()
    make_vault(home, PHRASE)
    console = serve(mailbox, accept=False)
    assert console.vault == "locked"
    return console


def test_over_rest_actions_are_listed_and_runs_wait(locked: Console, mailbox: Mailbox) -> None:
    token = locked.session()["token"]
    listed = {each["name"] for each in locked.get("/v1/actions", token=token).json["items"]}
    assert {"list-drafts", "send-draft"} <= listed
    read = locked.run("list-drafts", {}, token)
    gated = locked.run("send-draft", {"draft_id": DRAFT}, token)
    for each in (read, gated):
        assert (each.status, each.json["status"]) == (202, "pending_approval")
        assert each.json["waits_for"] == "the vault"
    assert locked.rows("action, state") == AWAITING
    assert "Then it runs without approval" in read.json["message"]
    assert "A person has to approve it after that" in gated.json["message"]
    said = aileron("status", home=locked.home).stdout
    assert "waiting for approval" not in said
    assert said.count("waits for the vault or an account") == 2
    assert mailbox.state()["requests"] == []
    assert locked.unlock(PHRASE).status == 200
    result = f"/v1/action-approvals/{read.json['approval_id']}/result?wait=20"
    assert locked.get(result, token=token).json["status"] == "completed"
    eventually(lambda: locked.rows()[1] == ("pending",), "the gated call is asked about")
    of_gated = f"/v1/action-approvals/{gated.json['approval_id']}/result"
    assert locked.get(of_gated, token=token).json["waits_for"] == "a person's approval"
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("era", variants(["2026-07-28", "legacy"]))
async def test_over_mcp_each_tool_is_listed_and_each_call_waits(
    locked: Console, mailbox: Mailbox, era: str
) -> None:
    bearer = {"Authorization": f"Bearer {locked.session()['token']}"}
    async with httpx2.AsyncClient(headers=bearer, timeout=httpx2.Timeout(30)) as http:
        server: Any = streamable_http_client(f"{locked.url}/mcp", http_client=http)
        async with Client(server, mode=era, read_timeout_seconds=30) as client:
            tools = {each.name for each in (await client.list_tools()).tools}
            assert {"list_drafts", "send_draft"} <= tools
            read = await client.call_tool("list_drafts", {})
            gated = await client.call_tool("send_draft", {"draft_id": DRAFT})
            for each in (read, gated):
                assert each.structured_content is not None
                assert each.structured_content["status"] == "pending_approval"
                assert each.structured_content["waits_for"] == "the vault"
                assert "waits for the vault" in str(each.content)
            assert locked.rows("action, state") == AWAITING
            assert mailbox.state()["requests"] == []
            assert locked.unlock(PHRASE).status == 200
            asked = {"approval_id": read.structured_content["approval_id"], "wait_seconds": 20}
            end = await client.call_tool("check_action_status", asked)
            assert end.structured_content is not None
            assert end.structured_content["status"] == "completed"
