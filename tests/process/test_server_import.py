"""`aileron server add --from`: the secrets of an agent's server go into the vault, and its settings stay as they are."""

import json
from pathlib import Path

import pytest

from tests.support.mcp_servers import install, table
from tests.support.server_harness import Console, aileron, aileron_json
from tests.support.vaults import KNOWN

KEY = "canary-key-77c1f0"
RUN = ("npx", "-y", "pkg")


@pytest.fixture
def home(folder: Path) -> Path:
    """A home with the server `small`, which asks for a secret."""
    (folder / "home").mkdir()
    made = table(folder, run=RUN, secrets=("API_KEY",), hosts=("api.example:443",))
    install(folder / "home", made)
    return folder / "home"


def test_a_servers_secret_goes_into_the_vault_at_a_word_and_nowhere_else(
    home: Path, unlocked: Console
) -> None:
    entries = {
        "small": {"command": RUN[0], "args": RUN[1:], "env": {"API_KEY": KEY}},
        "sse": {"type": "sse", "url": "https://mcp.example"},
    }
    file = home.parent / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    before = file.read_bytes()
    words = ("server", "add", "--from", str(file))
    refused = aileron(*words, "--json", home=home, env=KNOWN, code=2)
    assert "Give --yes" in refused.stdout
    assert aileron_json("binding", "list", home=home)["items"] == []

    told = aileron(*words, "--yes", home=home, env=KNOWN, code=1).stdout
    assert f"✗ sse ({file}) was not added: it is reached by SSE" in told
    assert "in the vault, for small alone" in told
    (bound,) = aileron_json("binding", "list", home=home)["items"]
    assert (bound["name"], bound["problem"]) == ("environment/small/default", "")
    assert file.read_bytes() == before
    again = aileron(*words, "small", "--yes", home=home, env=KNOWN).stdout
    assert "has an account already" in again
    unlocked.end()
    kept = [each for each in home.rglob("*") if each.is_file()]
    assert not [each for each in kept if KEY.encode() in each.read_bytes()]
    assert KEY not in told + again
