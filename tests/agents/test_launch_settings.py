"""A launch's settings with the real agents in the sandbox: what they take is in their requests, as without one.

Codex and Claude Code with one case each; every case of all six in `make test-all`.
"""

import json
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.agents.agents_bench import Bench, Say, ScriptedLlm, workbench
from tests.agents.llm import ModelRequest
from tests.support.making import program
from tests.support.tls_service import Authority
from tests.support.variants import ALL

pytestmark = pytest.mark.timeout(300)

LLM, PROJECT = "http://the-model", "/the-project"
"""Stand for the scripted model's address and the project in a case."""
CA = f"{PROJECT}/ca.pem"
THROUGH_PROXY = {"HTTPS_PROXY": LLM, "SSL_CERT_FILE": CA, "NODE_EXTRA_CA_CERTS": CA}
"""The scripted model answers for every host; its authority is in the project, which the sandbox has."""
PROMPTS = {
    "codex": "exec --skip-git-repo-check hello", "claude": "-p hello --model chosen-model",
    "opencode": "run hello", "goose": "run --quiet --no-session -t hello", "pi": "-p hello",
    "gemini": "--skip-trust -m chosen-model -p hello",
}  # fmt: skip
CODEX_MINE = f"""\
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "{LLM}/mine"
env_key = "MY_KEY"
wire_api = "responses"
"""
OPENCODES = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": f"{LLM}/mine", "apiKey": "{env:MY_KEY}"},
    "models": {"chosen-model": {}},
}
OPENCODE_MINE = json.dumps({"model": "mine/chosen-model", "provider": {"mine": OPENCODES}})
PIS = {"baseUrl": f"{LLM}/mine", "api": "openai-completions", "apiKey": "${MY_KEY}"}
PI_MINE = json.dumps({"providers": {"mine": {**PIS, "models": [{"id": "chosen-model"}]}}})
GEMINI_KEY = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsCase:
    """One start of an agent, and what one of its requests has because of the person's settings."""

    agent: str
    about: str
    shown: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Below the home."""
    args: str = ""


CASES = [
    SettingsCase(agent="codex", about="key", shown=("authorization: Bearer key-1",), env={"OPENAI_API_KEY": "key-1"}),
    SettingsCase(agent="claude", about="key", shown=("x-api-key: key-1",), env={"ANTHROPIC_API_KEY": "key-1"}),
    SettingsCase(
        agent="codex", about="address", shown=(f"POST {LLM}/mine/responses", "authorization: Bearer key-1"),
        env={"MY_KEY": "key-1"}, files={".codex/config.toml": CODEX_MINE},
    ),
    SettingsCase(
        agent="claude", about="address", shown=(f"POST {LLM}/mine/v1/messages", "x-team: blue"),
        env={"ANTHROPIC_BASE_URL": f"{LLM}/mine", "ANTHROPIC_CUSTOM_HEADERS": "x-team: blue"},
    ),
    SettingsCase(
        agent="claude", about="bedrock",
        shown=("POST https://bedrock-runtime.eu-west-1.amazonaws.com/model/", "authorization: Bearer aws-1"),
        env={"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_BEARER_TOKEN_BEDROCK": "aws-1", "AWS_REGION": "eu-west-1"},
    ),
    SettingsCase(
        agent="opencode", about="address", shown=(f"POST {LLM}/mine/", "authorization: Bearer key-1"),
        env={"MY_KEY": "key-1"}, files={".config/opencode/opencode.json": OPENCODE_MINE},
    ),
    SettingsCase(
        agent="goose", about="address", shown=(f"POST {LLM}/mine/chat", "authorization: Bearer key-1"),
        env={"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "chosen-model", "OPENAI_API_KEY": "key-1",
             "OPENAI_HOST": LLM, "OPENAI_BASE_PATH": "mine/chat"},
        files={".config/goose/config.yaml": "GOOSE_DISABLE_SESSION_NAMING: true\nextensions: {}\n"},
    ),
    SettingsCase(
        agent="pi", about="address", shown=(f"POST {LLM}/mine/", "authorization: Bearer key-1"),
        env={"MY_KEY": "key-1"}, files={".pi/agent/models.json": PI_MINE},
        args="--provider mine --model chosen-model",
    ),
    SettingsCase(
        agent="gemini", about="address", shown=(f"POST {LLM}/mine/", "x-goog-api-key: key-1"),
        env={"GEMINI_API_KEY": "key-1", "GOOGLE_GEMINI_BASE_URL": f"{LLM}/mine"},
        files={".gemini/settings.json": GEMINI_KEY},
    ),
]  # fmt: skip
USUAL = (("codex", "address"), ("claude", "bedrock"))
HERE = [each for each in CASES if ALL or (each.agent, each.about) in USUAL]


@pytest.fixture(scope="module")
def shared_bench() -> Iterator[Bench]:
    """A console for all starts, whose model answers for every host; each has a home of its own."""
    with tempfile.TemporaryDirectory(prefix="ail-") as name:
        folder = Path(name)
        (folder / "authority").mkdir()
        authority = Authority(folder / "authority")
        llm = ScriptedLlm(lambda _: Say(text="FINAL"), stands_for=authority.context)
        with workbench(folder, llm) as bench:
            yield bench


def fresh(shared: Bench, name: str) -> Bench:
    # Another one where a test is tried again.
    bench = replace(shared, folder=Path(tempfile.mkdtemp(prefix=f"{name}-", dir=shared.folder)))
    for each in (bench.home, bench.project):
        each.mkdir()
    (bench.project / "ca.pem").write_bytes((shared.folder / "authority" / "ca.pem").read_bytes())
    bench.llm.seen.clear()
    return bench


def text(seen: ModelRequest) -> str:
    """Return a request as cases write it: method and URL, a line for each header."""
    headers = [f"{name}: {value}" for name, value in seen.headers.items()]
    return "\n".join([f"{seen.method} {seen.url}", *headers])


@pytest.mark.parametrize("case", HERE, ids=lambda each: f"{each.agent}-{each.about}")
def test_what_is_set_for_an_agent_is_in_its_requests(
    case: SettingsCase, shared_bench: Bench
) -> None:
    """Key, address, provider: the agent chooses in the sandbox as it does outside."""
    bench = fresh(shared_bench, f"{case.agent}-{case.about}")

    def filled(words: str) -> str:
        return words.replace(LLM, bench.llm.url).replace(PROJECT, str(bench.project))

    for name, content in case.files.items():
        bench.write(name, filled(content))
    given = {"CLAUDE_CODE_MAX_RETRIES": "0", **THROUGH_PROXY, **case.env}
    env = {name: filled(value) for name, value in given.items()}
    args = shlex.split(f"{PROMPTS[case.agent]} {case.args}")

    def is_shown() -> bool:
        asked = [text(each) for each in [*bench.llm.seen]]
        return any(all(filled(words) in each for words in case.shown) for each in asked)

    deadline = time.monotonic() + 180
    with bench.launched(case.agent, *args, env=env) as running:
        while not is_shown() and running.process.poll() is None and time.monotonic() < deadline:
            bench.llm.result_received.wait(0.05)
        running.process.terminate()
        output, _ = running.process.communicate(timeout=60)
    assert is_shown(), (output[-2000:], [text(each) for each in bench.llm.seen])


NAMED = {
    "codex": {"AWS_PROFILE": "work", "CODEX_X_FD": "3"},
    "claude": {"AWS_SECRET_ACCESS_KEY": "secret", "CLAUDE_CODE_USE_BEDROCK": "1", "SSH_AUTH_SOCK": "/x"},
}  # fmt: skip


@pytest.mark.parametrize("agent", NAMED)
def test_a_broad_login_is_named_and_the_agent_starts(agent: str, shared_bench: Bench) -> None:
    """One sentence at the launch says what its agent lacks, which stops nothing."""
    bench = fresh(shared_bench, f"{agent}-broad")
    (bench.home / ".aws").mkdir()
    ended = bench.run(agent, "--version", env=NAMED[agent])
    (said,) = [each for each in ended.output.splitlines() if "Not in the sandbox: " in each]
    for name in ("AWS_SECRET_ACCESS_KEY, ~/.aws", "AWS_PROFILE, CODEX_X_FD"):
        assert (f"Not in the sandbox: {name}. " in said) == (name.split(",")[0] in NAMED[agent])


@pytest.mark.parametrize("agent", ["codex", "claude"])
def test_a_program_that_settings_name_runs_in_the_sandbox(agent: str, shared_bench: Bench) -> None:
    """Codex' notifier and a hook of Claude Code's, from a folder of the home that it has nothing else of."""
    bench = fresh(shared_bench, f"{agent}-program")
    bench.write("bin/other", "x")
    notes = program(bench.home / "bin/noted", f"#!/bin/sh\necho run >> {bench.project}/noted\n")
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": str(notes)}]}]}
    bench.write(".claude/settings.json", json.dumps({"hooks": hooks}))
    bench.write(".codex/config.toml", f'model = "test"\nnotify = ["{notes}"]\n')
    ended = bench.run(agent, *shlex.split(PROMPTS[agent]), env={"CLAUDE_CODE_MAX_RETRIES": "0"})
    assert (bench.project / "noted").read_text().startswith("run")
    assert "May not work" not in ended.output


def test_a_dry_run_names_what_the_launch_would_name(bench: Bench) -> None:
    """With the launch's own sentence, and without the value of what a file sets for the agent."""
    config = bench.console.home / "config.toml"
    config.write_text(f"{config.read_text()}[launch.codex.env]\nOPENAI_PROJECT = 'secret-1'\n")
    bench.write(".codex/config.toml", 'cli_auth_credentials_store = "keyring"\n')
    shown = bench.aileron("launch", "codex", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "Not in the sandbox: the system's keyring. " in shown.stdout
    assert "OPENAI_PROJECT=(your own value" in shown.stdout
    assert "secret-1" not in shown.stdout
