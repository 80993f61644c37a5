"""`aileron launch --augment PROGRAM`: a script on a provider's SDK, a real console, a person, a scripted model."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from aileron_core.ids import is_placeholder
from aileron_core.launch.augmented import augmented_environment
from aileron_core.launch.interfaces import LaunchedSession
from examples.mailbox.server import Mailbox
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text
from tests.core.server.gateway.harness import Upstream
from tests.support.core_harness import writes
from tests.support.server_harness import CLI, DRAFT, Attend, Console, Serve, aileron

SCRIPTS = {
    "anthropic": (
        "import anthropic, sys\n"
        "client = anthropic.Anthropic(api_key='sk-own')\n"
        "with client.messages.stream(model='m', max_tokens=99, messages=[{'role': 'user', 'content': 'go'}]) as stream:\n"
        "    print('ANSWER', *stream.text_stream, sys.argv[1:])\n"
    ),
    "openai": (
        "import openai, sys\n"
        "client = openai.OpenAI(api_key='sk-own')\n"
        "answer = client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'go'}])\n"
        "print('ANSWER', answer.choices[0].message.content, sys.argv[1:])\n"
    ),
}


@contextlib.asynccontextmanager
async def modelled(home: Path, model: ScriptedModel) -> AsyncGenerator[None, None]:
    async with Upstream(model).listening() as upstream:
        url = f"http://127.0.0.1:{upstream.port}"
        text = f'[gateway]\nanthropic = "{url}"\nopenai = "{url}"\n'
        (home / "config.toml").write_text(text, encoding="utf-8")
        yield


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_a_script_on_an_sdk_sends_mail_once_a_person_says_yes(
    provider: str, home: Path, mailbox: Mailbox, attend: Attend, tmp_path: Path
) -> None:
    """It knows nothing of Aileron, and gets its own arguments, options too."""
    model = ScriptedModel([Call("send_draft", {"draft_id": DRAFT})], [Text("It is sent.")])
    async with modelled(home, model):
        console = await asyncio.to_thread(attend)
        (tmp_path / "script.py").write_text(SCRIPTS[provider], encoding="utf-8")
        words = [*CLI, "launch", "--home", str(home), "--augment"]
        words += [sys.executable, "script.py", "--label", "its own"]
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert await asyncio.to_thread(console.until, lambda: bool(console.views))
        (approval_id,) = console.views
        assert await asyncio.to_thread(console.approve, approval_id)
        out, err = await process.communicate()
        assert process.returncode == 0, err
        assert b"ANSWER" in out
        assert b"sent. ['--label', 'its own']" in out
        assert b"is not contained: --augment has no sandbox" in err
        assert len(model.requests) == 2
        assert any(each.startswith("POST") for each in writes(mailbox))
        opened = [each for each in console.records() if each["event"] == "session.opened"]
        assert [each["augment"] for each in opened] == [True]
        ended = [each for each in console.records() if each["event"] == "session.ended"]
        assert len(ended) == 1


def test_only_a_launcher_opens_a_session_in_augment_mode(serve: Serve) -> None:
    """As other flags that say what somebody else vouches for."""
    console: Console = serve()
    asked = {"agent": "a", "cwd": "/tmp", "augment": True}
    refused = console.post("/v1/sessions", asked, local=True)
    assert refused.status == 400
    assert "`augment` is only allowed together with `launched`" in refused.error["message"]
    assert console.post("/v1/sessions", {**asked, "launched": True}, local=True).status == 201


def test_what_means_nothing_with_augment_is_refused(home: Path) -> None:
    """Before anything is started."""
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
