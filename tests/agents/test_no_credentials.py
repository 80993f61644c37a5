"""Nothing of an account or of the vault is within reach of a contained agent, as an ordinary user meets it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.model import ConnectorIdentity
from aileron_core.clock import SystemClock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.manifest import parse_manifest
from aileron_core.console_port.account_intents import BindAccount
from aileron_core.credentials.binding import CredentialUser
from aileron_core.credentials.bindings import BindingService
from aileron_core.credentials.oauth import TokenEndpoint
from aileron_core.credentials.oauth_tokens import OAuthClient, Tokens
from aileron_core.vault.secret import Secret
from aileron_core.vault.vault import Vault
from tests.agents.agents_bench import Bench, ScriptedLlm, found_by, silent, workbench
from tests.core.runs.test_canaries import KINDS, MANIFEST
from tests.support.scripted_guest import FQN, furnish_guest
from tests.support.variants import variants

HOST = "api.example:443"
PHRASE, KEY = "qx7canary-phrase-1c0f", "qx7canary-key-51ab90"
ACCOUNT = "qx7canary-account@example.com"

SEARCH = '''#!/usr/bin/env python3
"""Searches all that can be read for what begins like the canaries; prints where it found any."""
import glob, json, os, socket, stat, sys
NEEDLE = b"qx7can" + b"ary-"
FOUND, READ = [], []

def look(name, data):
    READ.append(name)
    if NEEDLE in data or NEEDLE.hex().encode() in data:
        FOUND.append(name)

def ask(method, path, body=None):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(30)
        sock.connect("/run/aileron/s.sock")
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n"
        head += f"Content-Type: application/json\\r\\nContent-Length: {len(data)}\\r\\n\\r\\n"
        sock.sendall(head.encode() + data)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    look(f"answer to {method} {path}", answer)
    return int(answer.split()[1])

statuses = {
    f"{method} {path} {list(body or ())}": ask(method, path, body)
    for method, path, body in (
        ("GET", "/v1/status", None),
        ("POST", "/v1/intents", {"ReadVault": {}}),
        ("POST", "/v1/intents", {"LockVault": {}}),
        ("POST", "/v1/intents", {"UnlockVault": {"passphrase": "a wrong passphrase"}}),
        ("POST", "/v1/intents", {"ReadAccounts": {}}),
        ("POST", "/v1/intents", {"BindAccount": {"connector_hash": "scripted", "identity": "x", "account": "", "secret": "12345678"}}),
        ("POST", "/v1/intents", {"RevokeAccount": {"name": "api_key/scripted/work"}}),
        ("GET", "/v1/actions", None),
        ("POST", "/v1/actions/see/run", {"args": {}}),
        ("POST", "/v1/actions/act/run", {"args": {}}),
    )
}
for path in glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/fd/*"):
    if path.rpartition("/")[2] in ("environ", "cmdline", "status", "maps", "comm"):
        try:
            look(path, open(path, "rb").read())
        except OSError:
            pass
for top in os.listdir("/"):
    if top in ("proc", "sys", "usr", "lib", "lib64", "lib32", "libx32", "bin", "sbin", "dev", "opt", "boot"):
        continue
    for folder, _, names in os.walk("/" + top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode) and os.path.getsize(path) < 4_000_000:
                    look(path, open(path, "rb").read())
            except OSError:
                pass
MORE
print("SEARCH " + json.dumps({"statuses": statuses, "found": FOUND, "read": len(READ)}))
'''


async def bind_account(home: Path, kind: str, hash_: str) -> None:
    """Make a vault in *home* with an account of *kind* for the guest of that hash, as a person has done before."""
    clock = SystemClock()
    vault = Vault(home, clock)
    vault.create(Secret(PHRASE))

    async def record(*_: object) -> None:
        pass

    bindings = BindingService(vault, clock, record, TokenEndpoint(OutgoingClient, clock))
    manifest = f'[connector]\nname = "{FQN}"\nversion = "1.0.0"\n{needs(kind)}'
    parsed = parse_manifest(manifest.encode(), "m")
    assert parsed.credential is not None
    identity = ConnectorIdentity(fqn=FQN, version="1.0.0", hash=hash_)
    user = CredentialUser(identity=identity, requirement=parsed.credential, hosts=(HOST,))
    if kind == "oauth2":
        tokens = Tokens(
            access_token=Secret(KEY),
            refresh_token=Secret(f"{KEY}-renewal"),
            expires_at=clock.now() + 3600,
            client=OAuthClient(client_id="mine", client_secret=Secret(f"{KEY}-client")),
            token_url=f"https://{HOST}/t",
            scopes=("all",),
        )
        await bindings.authorize(user, "work", ACCOUNT, tokens)
    else:
        asked = BindAccount(
            connector_hash=user.identity.hash,
            identity="work",
            account=ACCOUNT,
            secret=Secret(KEY),
            user="" if kind == "api_key" else "ana",
            session_token=Secret(f"{KEY}-session") if kind == "aws_sigv4" else None,
        )
        await bindings.bind(user, asked)
    vault.lock()


def needs(kind: str) -> str:
    more = MANIFEST[kind].replace("api.example", HOST.partition(":")[0])
    return f'[capabilities.credential]\nkind = "{kind}"\n{more}'


def searched(bench: Bench, more: str = "", **env: str) -> dict[str, Any]:
    """Search as an agent would, after the lines *more*; return what was found."""
    return found_by("SEARCH", bench.launch(SEARCH.replace("MORE\n", more), **env).output)


@pytest.mark.parametrize("kind", variants(KINDS))
def test_a_contained_agent_finds_nothing_of_its_account(folder: Path, kind: str) -> None:
    """While the vault is unlocked, after a call that used the account: no answer, process or file has it."""
    home = folder / "aileron"
    request = {"url": f"https://{HOST}/x", "credential": kind}
    hash_ = furnish_guest(home, [request], [HOST], more=needs(kind))
    asyncio.run(bind_account(home, kind, hash_))
    with workbench(folder, ScriptedLlm(silent)) as bench:
        console = bench.console
        assert console.unlock(PHRASE).status == 200
        result = searched(bench)
        assert result["found"] == []
        assert result["read"] > 20
        for asked, status in result["statuses"].items():
            assert (status in (401, 403, 404)) == ("/v1/actions" not in asked), (asked, status)
        assert console.vault == "unlocked"
        (bound,) = console.ask("ReadAccounts").json["AccountsUpdated"]["accounts"]
        assert bound["name"].startswith(f"{kind}/")
        assert bound["problem"] == ""
        kept = [path for path in console.home.rglob("*") if path.is_file()]
        assert not [path for path in kept if KEY.encode() in path.read_bytes()]
