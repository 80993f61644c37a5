"""`aileron gateway key`: providers' keys in the vault of a real console."""

import contextlib
from pathlib import Path

import pytest

from tests.support.server_harness import CLI, Console, aileron, aileron_json
from tests.support.terminal import Pty
from tests.support.vaults import KNOWN, PHRASE

KEY = "sk-canary-51ab90"


def test_a_key_is_stored_listed_and_removed_with_the_passphrase_asked_each_time(
    home: Path, unlocked: Console
) -> None:
    """Each step says what it is about and is on record; the key is in no output, answer or file."""
    words = ("gateway", "key", "set", "openai", "--secret-fd", "0")
    refused = aileron(*words, home=home, stdin=KEY, code=2)
    assert "passphrase" in refused.stderr
    wrong = {"AILERON_VAULT_PASSPHRASE": "another passphrase"}
    assert (
        "not the vault's passphrase"
        in aileron(*words, home=home, stdin=KEY, code=77, env=wrong).stderr
    )
    assert aileron_json("gateway", "key", "list", home=home)["items"] == []
    body = {"provider": "openai", "base_url": "https://api.openai.com", "secret": KEY}
    assert unlocked.ask("SetModelKey", **body).status == 400
    body |= {"passphrase": PHRASE, "base_url": "https://other.example"}
    assert unlocked.ask("SetModelKey", **body).status == 409

    said = aileron(*words, home=home, stdin=KEY, env=KNOWN).stdout
    assert "sent to  https://api.openai.com, over TLS, and to no other address" in said
    assert "✓ The key for openai is in the vault." in said
    (listed,) = aileron_json("gateway", "key", "list", home=home)["items"]
    assert (listed["provider"], listed["problem"]) == ("openai", "")
    assert (
        "✓ openai  sent to https://api.openai.com"
        in aileron("gateway", "key", "list", home=home).stdout
    )

    opened = unlocked.session(key_providers=["openai", "gemini"])
    assert opened["key_providers"] == ["openai"]
    assert opened["placeholder"].endswith("-aileron-placeholder")
    assert "placeholder" not in unlocked.session()
    asked = {"agent": "codex", "cwd": "/", "key_providers": ["nobody"]}
    assert unlocked.post("/v1/sessions", asked, local=True).status == 400

    aileron("gateway", "key", "remove", "openai", "--yes", home=home)
    assert aileron_json("gateway", "key", "list", home=home)["items"] == []
    assert "placeholder" not in unlocked.session(key_providers=["openai"])
    events = [record["event"] for record in unlocked.records()]
    assert events.count("gateway.key_set") == 1
    assert events.count("gateway.key_removed") == 1
    unlocked.end()
    kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert not [each for each in kept if KEY.encode() in each]


def test_a_key_that_config_sends_elsewhere_later_is_named_and_not_used(
    home: Path, unlocked: Console
) -> None:
    """It is for one address; without a console the files say so too."""
    words = ("gateway", "key", "set", "openai", "--secret-fd", "0")
    aileron(*words, home=home, stdin=KEY, env=KNOWN)
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


@pytest.mark.real
def test_the_key_is_typed_unseen(home: Path, unlocked: Console) -> None:
    terminal = Pty([*CLI, "gateway", "key", "set", "anthropic", "--home", str(home)])
    with contextlib.closing(terminal):
        terminal.answer("Passphrase of the vault", PHRASE)
        terminal.answer("Key (not shown)", KEY)
        terminal.shows("is in the vault")
        assert KEY.encode() not in terminal.raw
        assert PHRASE.encode() not in terminal.raw
    (listed,) = aileron_json("gateway", "key", "list", home=home)["items"]
    assert listed["provider"] == "anthropic"
