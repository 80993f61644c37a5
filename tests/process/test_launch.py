"""`aileron launch`: with `--augment` a program of one's own, and with a vault no settings that nobody verified."""

import os
from pathlib import Path
from typing import Any

from aileron_core.ids import is_placeholder
from aileron_core.launch.augmented import augmented_environment
from aileron_core.launch.interfaces import LaunchedSession
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.server_harness import Console, Serve, aileron
from tests.support.vaults import PHRASE, make_vault


def test_only_a_launcher_opens_a_session_in_augment_mode(shared: Console) -> None:
    """As other flags that say what somebody else vouches for. An address of its own never gets a key of the vault."""
    asked: dict[str, Any] = {"agent": "a", "cwd": "/tmp", "augment": True}
    refused = shared.post("/v1/sessions", asked, local=True)
    assert refused.status == 400
    assert "`augment` is only allowed together with `launched`" in refused.error["message"]
    asked["launched"] = True
    assert shared.post("/v1/sessions", asked, local=True).status == 201
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


MINE = '[launch.codex]\nargs = ["--mine"]\n'
REFUSED = "config.toml has settings for this launch"


def launch_codex(home: Path, *options: str) -> str:
    return aileron("launch", "codex", *options, home=home, code=None).stderr


def test_a_launch_is_refused_until_its_settings_have_verified(home: Path, serve: Serve) -> None:
    config = home / "config.toml"
    config.write_text(MINE, encoding="utf-8")
    make_vault(home, PHRASE)
    console = serve(accept=False)
    assert REFUSED in launch_codex(home)
    assert console.unlock(PHRASE).status == 200
    assert REFUSED not in launch_codex(home)
    config.write_text(MINE.replace("--mine", "--its-own"), encoding="utf-8")
    assert REFUSED in launch_codex(home)
    config.write_text('[launch]\nhosts = ["github.com"]\n', encoding="utf-8")
    assert REFUSED in launch_codex(home, "--sandbox=hosts")
    assert REFUSED not in launch_codex(home)
    config.write_text("", encoding="utf-8")
    assert REFUSED not in launch_codex(home, "--sandbox=hosts")


def test_a_path_that_is_hidden_no_more_is_a_change_like_others(home: Path, serve: Serve) -> None:
    """A program that takes the line away, and its copy with it, gains nothing."""
    config = home / "config.toml"
    config.write_text('[launch]\nhide = [".env"]\n', encoding="utf-8")
    make_vault(home, PHRASE)
    console = serve(accept=False)
    assert REFUSED in launch_codex(home)
    assert console.unlock(PHRASE).status == 200
    assert REFUSED not in launch_codex(home)
    config.write_text("", encoding="utf-8")
    assert REFUSED in launch_codex(home)
    (home / "store" / "accepted-config.toml").unlink()
    assert REFUSED in launch_codex(home)


def test_nothing_is_fetched_from_a_mirror_that_is_not_verified(home: Path, serve: Serve) -> None:
    config = home / "config.toml"
    config.write_text('[store]\nmirror = "https://files.example"\n', encoding="utf-8")
    make_vault(home, PHRASE)
    asked: list[str] = []

    def answer(request: HttpRequest, _body: bytes) -> None:
        asked.append(request.path)
        reply(request, 404, b"", {})

    with http_server(answer) as server:
        place = f"127.0.0.1:{server.server_address[1]}"

        def add() -> str:
            routes = ("--route", f"files.example:443={place}", "--route", f"github.com:443={place}")
            source = "github://owner/repo"
            return aileron("action", "add", *routes, source, home=home, code=None).stderr

        assert "No console" in add()
        console = serve(accept=False)
        assert "names a mirror, and is not verified" in add()
        assert console.unlock(PHRASE).status == 200
        assert asked == []
        assert "has no release" in add()
        assert asked.pop() == "/owner/repo/latest"
        config.write_text('[store]\nmirror = "https://files.example/evil"\n', encoding="utf-8")
        assert "names a mirror, and is not verified" in add()
        assert asked == []
        config.write_text("", encoding="utf-8")
        assert "has no release" in add()
        assert asked == ["/owner/repo/releases/latest"]
