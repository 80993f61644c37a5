"""`aileron launch --augment PROGRAM`: a script on a provider's SDK, a real console, a person, a scripted model."""

import os
from pathlib import Path

from aileron_core.ids import is_placeholder
from aileron_core.launch.augmented import augmented_environment
from aileron_core.launch.interfaces import LaunchedSession
from tests.support.server_harness import Console, aileron


def test_only_a_launcher_opens_a_session_in_augment_mode(shared: Console) -> None:
    """As other flags that say what somebody else vouches for."""
    asked = {"agent": "a", "cwd": "/tmp", "augment": True}
    refused = shared.post("/v1/sessions", asked, local=True)
    assert refused.status == 400
    assert "`augment` is only allowed together with `launched`" in refused.error["message"]
    assert shared.post("/v1/sessions", {**asked, "launched": True}, local=True).status == 201


def test_an_address_of_a_sessions_own_is_for_augment_mode_and_never_gets_a_key_of_the_vault(
    shared: Console,
) -> None:
    """The key was stored for another address."""
    asked = {"agent": "a", "cwd": "/tmp", "launched": True, "augment": True}
    url = "http://127.0.0.1:1/v1"
    for more in (
        {"base_url": url, "key_providers": ["openai"]},
        {"base_url": url, "augment": False},
        {"base_url": "http://me@127.0.0.1:1"},
        {"base_url": "file:///etc/passwd"},
    ):
        refused = shared.post("/v1/sessions", {**asked, **more}, local=True)
        assert refused.status == 400
        assert "'base_url' is a base URL" in refused.error["message"]
    assert shared.post("/v1/sessions", {**asked, "base_url": url}, local=True).status == 201


def test_what_means_nothing_with_augment_is_refused(home: Path) -> None:
    done = aileron("launch", "--sandbox=offline", "--augment", "python3", home=home, code=2)
    assert "--sandbox has no effect with --augment" in done.stderr
    done = aileron("launch", "--augment", "no-such-program-here", home=home, code=None)
    assert "There is no program 'no-such-program-here'" in done.stderr
    done = aileron("launch", "no-such-agent", home=home, code=2)
    assert "is not one of" in done.stderr
    assert "`aileron launch --augment PROGRAM`" in done.stderr
    done = aileron("launch", "--augment", home=home, code=2)
    assert "Name a program after --augment." in done.stderr


def test_a_program_gets_placeholders_for_the_keys_in_the_vault_and_keeps_its_own() -> None:
    """A token beside the placeholder would go before it."""
    placeholder = "x-aileron-placeholder"
    session = LaunchedSession(
        session_id="ses-1", token="t", gateway_token="g", url="http://127.0.0.1:9", socket=None,
        placeholder=placeholder, key_providers=("anthropic",),
    )  # fmt: skip
    mine = {
        "OPENAI_API_KEY": "mine", "ANTHROPIC_API_KEY": "old", "ANTHROPIC_AUTH_TOKEN": "old",
        "HTTP_PROXY": "http://proxy", "AILERON_TOKEN": "not for it", "PATH": os.environ["PATH"],
    }  # fmt: skip
    given = augmented_environment(mine, session)
    assert is_placeholder(given["ANTHROPIC_API_KEY"])
    assert given["OPENAI_API_KEY"] == "mine"
    assert given["OPENAI_BASE_URL"] == "http://127.0.0.1:9/gw/g/v1"
    assert given["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9/gw/g"
    assert given["no_proxy"] == "127.0.0.1"
    assert not {"ANTHROPIC_AUTH_TOKEN", "AILERON_TOKEN"} & given.keys()
