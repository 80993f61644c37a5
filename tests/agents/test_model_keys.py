"""A provider's key in the vault: real agents ask their model with a placeholder, and find nothing of the key."""

import contextlib
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agents_bench import KEYS, PROMPTS, Bench, sends_a_draft, workbench
from tests.agents.llm import Conversation, Say, Script, ScriptedLlm
from tests.agents.test_no_credentials import PHRASE, searched
from tests.agents.test_real_agents import AGENTS
from tests.support.tls_service import certificate

pytestmark = pytest.mark.timeout(300)

KEY = "qx7canary-key-51ab90"
ENDING = "-aileron-placeholder"
_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")

ASKS = """
import re, urllib.request
base = re.search(r'base_url = "([^"]+)"', " ".join(sys.argv))[1]
for _ in range(2):
    body = json.dumps({"stream": True, "input": [], "tools": [{"type": "function", "name": "x"}]})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    asked = urllib.request.Request(base + "/responses", body.encode(), headers)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        data = answer.read()
    look("answer of the model", data)
    statuses["masked"] = data.count(b"*" * 20)
statuses["placeholder"] = os.environ["OPENAI_API_KEY"][-20:]
statuses["others"] = [name for name in os.environ if name.endswith("_API_KEY")]
"""


@contextlib.contextmanager
def bench_with_keys(script: Script, folder: Path) -> Iterator[Bench]:
    """Run a console whose vault has the key of each provider, over a model behind TLS."""
    pem = certificate(folder, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with workbench(folder, ScriptedLlm(script, tls=context), ca_file=pem) as bench:
        console = bench.console
        assert console.ask("CreateVault", passphrase=PHRASE).status == 200
        for provider in ("anthropic", "openai", "gemini"):
            fields = {"provider": provider, "base_url": bench.llm.url, "secret": KEY}
            assert console.ask("SetModelKey", **fields, passphrase=PHRASE).status == 200
        yield bench


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_has_a_placeholder_and_the_model_gets_the_key(agent: str, tmp_path: Path) -> None:
    """From call to answer; keys of the person's shell reach neither the model nor the agent."""
    with bench_with_keys(sends_a_draft, tmp_path) as bench:
        bench.configure(agent)
        with bench.launched(agent, *PROMPTS[agent], watched=True) as running:
            bench.console.approve(bench.asked())
            ended = running.end()
        assert "FINAL" in ended.output
        assert "gets a placeholder for its key of" in ended.output
        assert bench.llm.seen
        for seen in bench.llm.seen:
            (sent,) = [seen.headers[name] for name in _HEADERS if name in seen.headers]
            assert sent.removeprefix("Bearer ") == KEY
            assert ENDING.encode() not in seen.raw
            assert not [key for key in KEYS.values() if key.encode() in seen.raw]
        assert not [line for line in ended.command_lines if ENDING in line or KEY in line]
        assert KEY not in ended.output
        assert bench.left_behind() == []


def test_a_contained_agent_finds_nothing_of_the_key_that_its_requests_carry(folder: Path) -> None:
    """Not where the model repeats it, nor in a process, a file or an answer; nor is it in the home."""

    def repeats(_: Conversation) -> Say:
        return Say(text=f"you sent {KEY}")

    with bench_with_keys(repeats, folder) as bench:
        theirs = {"OPENAI_API_KEY": "qx7canary-of-the-shell", "CODEX_API_KEY": "qx7canary-too"}
        result = searched(bench, ASKS, **theirs)
        assert result["found"] == []
        assert result["read"] > 20
        assert result["statuses"]["masked"] > 0
        assert result["statuses"]["placeholder"] == ENDING
        assert result["statuses"]["others"] == ["OPENAI_API_KEY"]
        assert [each.headers["authorization"] for each in bench.llm.seen] == [f"Bearer {KEY}"] * 2
        home = bench.console.home
        kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
        assert not [each for each in kept if KEY.encode() in each]
        records = json.dumps(bench.console.records())
        assert KEY not in records
        assert ENDING not in records
