"""Real agents in the sandbox ask the model, at the address and with the key that environment and settings choose.

Each start covers several rows of the agent's table (`Agent.routes`); the scripted model sees what was
asked. Codex and OpenCode here; all six with AILERON_TEST_ALL set (`make test-all`).
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from aileron_core.launch.agents import AGENTS
from tests.agents.agents_bench import CLI, KEYS, Bench, Say, ScriptedLlm, workbench
from tests.support.variants import variants

pytestmark = pytest.mark.timeout(120)

LLM = "THE-ADDRESS-OF-THE-MODEL"
"""Stands for that address in a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One start of an agent, and what its model sees."""

    agent: str
    args: tuple[str, ...]
    path: str
    """What a request's path begins with."""
    model: str = ""
    """In the body."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])


CODEX = ("exec", "--skip-git-repo-check", "hello")
MINE = """\
model = "chosen-model"
model_provider = "mine"
[model_providers.mine]
name = "mine"
base_url = "THE-ADDRESS-OF-THE-MODEL/mine"
env_key = "MY_KEY"
wire_api = "responses"
query_params = { api-version = "7" }
http_headers = { x-fixed = "fixed" }
env_http_headers = { x-team = "MY_TEAM" }
"""
OPENCODE = {
    "model": "mine/chosen-model",
    "small_model": "groq/llama-3.1-8b-instant",
    "provider": {
        "mine": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {
                "baseURL": "{env:MY_URL}/mine",
                "apiKey": "{env:MY_KEY}",
                "headers": {"x-team": "{env:MY_TEAM}"},
            },
            "models": {"chosen-model": {}},
        },
        "groq": {"options": {"baseURL": f"{LLM}/groq"}},
    },
}
CLAUDE = ("-p", "hello")
CLAUDE_ONCE = {
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "ANTHROPIC_MODEL": "chosen-model",
    "ANTHROPIC_CUSTOM_HEADERS": "x-team: blue",
}
PI = {
    "providers": {
        "mine": {
            "baseUrl": f"{LLM}/mine",
            "api": "openai-completions",
            "apiKey": "$MY_KEY",
            "headers": {"x-team": "${MY_TEAM}"},
            "models": [{"id": "chosen-model"}],
        }
    }
}
GOOSE = ("run", "--quiet", "--no-session", "-t", "hello")
UNNAMED = "GOOSE_DISABLE_SESSION_NAMING: true\nextensions: {}\n"
"""A name for the session would be asked from another model."""
GEMINI = ("--skip-trust", "-p", "hello")
CASES = [
    Case(
        agent="codex",
        args=CODEX,
        files={".codex/config.toml": MINE},
        env={"MY_KEY": "sk-mine", "MY_TEAM": "blue"},
        path="/mine/responses?api-version=7",
        model="chosen-model",
        headers={"authorization": "Bearer sk-mine", "x-team": "blue", "x-fixed": "fixed"},
    ),
    Case(
        agent="opencode",
        args=("run", "hello"),
        files={".config/opencode/opencode.json": json.dumps(OPENCODE)},
        env={"MY_KEY": "sk-mine", "MY_TEAM": "blue", "MY_URL": LLM, "GROQ_API_KEY": "gsk-x"},
        path="/mine/chat/completions",
        model="chosen-model",
        headers={"authorization": "Bearer sk-mine", "x-team": "blue"},
    ),
    Case(
        agent="codex",
        args=CODEX,
        env={"OPENAI_ORGANIZATION": "org-1", "OPENAI_PROJECT": "proj-1"},
        files={
            ".codex/config.toml": 'model = "chosen-model"\n',
            ".codex/.env": "OPENAI_API_KEY=unused\n",
        },
        path="/v1/responses",
        model="chosen-model",
        headers={
            "authorization": f"Bearer {KEYS['OPENAI_API_KEY']}",
            "openai-organization": "org-1",
            "openai-project": "proj-1",
        },
    ),
    Case(
        agent="claude",
        args=CLAUDE,
        env={**CLAUDE_ONCE, "ANTHROPIC_AUTH_TOKEN": "token", "ANTHROPIC_API_KEY": ""},
        path="/v1/messages",
        model="chosen-model",
        headers={"authorization": "Bearer token", "x-team": "blue"},
    ),
    Case(
        agent="claude",
        args=CLAUDE,
        env={
            **CLAUDE_ONCE,
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "ANTHROPIC_BEDROCK_BASE_URL": f"{LLM}/bedrock",
            "AWS_BEARER_TOKEN_BEDROCK": "token",
            "AWS_REGION": "eu-west-1",
        },
        path="/bedrock/model/chosen-model/",
        headers={"authorization": "Bearer token", "x-team": "blue"},
    ),
    Case(
        agent="claude",
        args=CLAUDE,
        files={".claude/settings.json": json.dumps({"env": {"CLAUDE_CODE_USE_VERTEX": "1"}})},
        env={
            **CLAUDE_ONCE,
            "ANTHROPIC_VERTEX_BASE_URL": f"{LLM}/vertex",
            "ANTHROPIC_VERTEX_PROJECT_ID": "project-1",
            "CLOUD_ML_REGION": "europe-west1",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        },
        path="/vertex/projects/project-1/locations/europe-west1/publishers/anthropic/models/chosen-model",
        headers={"x-team": "blue"},
    ),
    Case(
        agent="claude",
        args=CLAUDE,
        env={
            **CLAUDE_ONCE,
            "CLAUDE_CODE_USE_FOUNDRY": "1",
            "ANTHROPIC_FOUNDRY_BASE_URL": f"{LLM}/foundry",
            "ANTHROPIC_FOUNDRY_API_KEY": "foundry-key",
        },
        path="/foundry/v1/messages",
        model="chosen-model",
        headers={"x-api-key": "foundry-key", "x-team": "blue"},
    ),
    Case(
        agent="opencode",
        args=("run", "-m", "openai/gpt-5", "hello"),
        env={"OPENAI_BASE_URL": f"{LLM}/mine"},
        path="/mine/responses",
        headers={"authorization": f"Bearer {KEYS['OPENAI_API_KEY']}"},
    ),
    Case(
        agent="pi",
        args=("-p", "--provider", "mine", "--model", "chosen-model", "hello"),
        files={".pi/agent/models.json": json.dumps(PI)},
        env={"MY_KEY": "sk-mine", "MY_TEAM": "blue"},
        path="/mine/chat/completions",
        model="chosen-model",
        headers={"authorization": "Bearer sk-mine", "x-team": "blue"},
    ),
    Case(
        agent="goose",
        args=GOOSE,
        files={".config/goose/config.yaml": UNNAMED},
        env={
            "GOOSE_PROVIDER": "openrouter",
            "GOOSE_MODEL": "chosen-model",
            "OPENROUTER_HOST": LLM,
            "OPENROUTER_API_KEY": "or-key",
        },
        path="/api/v1/chat/completions",
        model="chosen-model",
        headers={"authorization": "Bearer or-key"},
    ),
    Case(
        agent="goose",
        args=GOOSE,
        files={
            ".config/goose/config.yaml": f"GOOSE_PROVIDER: openai\nGOOSE_MODEL: chosen-model\n{UNNAMED}"
        },
        env={
            "OPENAI_BASE_PATH": "mine/chat/completions",
            "OPENAI_CUSTOM_HEADERS": "x-team=blue",
        },
        path="/mine/chat/completions",
        model="chosen-model",
        headers={"authorization": f"Bearer {KEYS['OPENAI_API_KEY']}", "x-team": "blue"},
    ),
    Case(
        agent="gemini",
        args=GEMINI,
        env={
            "GOOGLE_GENAI_USE_VERTEXAI": "true",
            "GOOGLE_API_KEY": "vertex-key",
            "GEMINI_API_KEY": "",
            "GOOGLE_VERTEX_BASE_URL": f"{LLM}/vertex",
            "GEMINI_MODEL": "gemini-2.5-flash",
            "GEMINI_CLI_CUSTOM_HEADERS": "x-team: blue",
        },
        path="/vertex/v1beta1/publishers/google/models/gemini-2.5-flash:",
        headers={"x-goog-api-key": "vertex-key", "x-team": "blue"},
    ),
]


@pytest.mark.parametrize("case", variants(CASES), ids=lambda case: f"{case.agent}-{case.path}")
def test_the_model_is_asked_as_environment_and_settings_choose(case: Case, tmp_path: Path) -> None:
    """Name, address, key and headers, in the sandbox as they would be without it."""
    with workbench(tmp_path, ScriptedLlm(lambda _: Say(text="FINAL"))) as bench:
        here = bench.llm.url
        for name, text in case.files.items():
            bench.write(name, text.replace(LLM, here))
        env = {name: value.replace(LLM, here) for name, value in case.env.items()}
        with bench.launched(case.agent, *case.args, env=env) as running:
            ended = running.end()
        asked = [each for each in bench.llm.seen if each.path.startswith(case.path)]
        assert asked, (ended.output, [each.path for each in bench.llm.seen])
        for each in asked:
            assert {name: each.headers.get(name) for name in case.headers} == case.headers
            assert not case.model or each.body["model"] == case.model
        if "GROQ_API_KEY" in case.env:
            titles = [each for each in bench.llm.seen if each.path.startswith("/groq/")]
            assert {each.headers["authorization"] for each in titles} == {"Bearer gsk-x"}


def test_a_login_that_the_sandbox_cannot_contain_stops_the_launch_and_fails_doctor(
    bench: Bench,
) -> None:
    """One sentence before anything starts: no session, no request to a model."""
    bench.write(".codex/config.toml", 'cli_auth_credentials_store = "keyring"\n')
    with bench.launched("codex", *CODEX) as running:
        ended = running.end()
    assert ended.code == 77, ended.output
    assert "Codex was not started. ~/.codex/config.toml sets cli_auth_credentials_store" in (
        ended.output
    )
    doctor = subprocess.run(
        [*CLI, "doctor", "codex", "--home", str(bench.console.home)],
        env=bench.environment({}),
        cwd=bench.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert doctor.returncode == 1
    assert "✗ codex: Codex was not started. ~/.codex/config.toml sets" in doctor.stdout
    assert bench.llm.seen == []
    assert "session.opened" not in [each["event"] for each in bench.console.records()]


@pytest.mark.parametrize("agent", variants(["claude", "opencode", "pi", "gemini"], 0))
def test_each_variable_of_the_table_is_one_that_the_program_knows(agent: str) -> None:
    """The programs in JavaScript hold the names as they are; those in Rust hold some in pieces."""
    known = b"".join(path.read_bytes() for path in _program(agent))
    names = {route.name for route in AGENTS[agent].routes if route.source == "environment"}
    assert {name for name in names if name.partition("*")[0].encode() not in known} == set()


def _program(agent: str) -> list[Path]:
    """Return the files that are the program of *agent*."""
    here = Path(__file__).parent
    every = here / "npm-all" / "node_modules"
    if agent == "opencode":
        found = list((here / "npm" / "node_modules").glob("opencode-linux-*/bin/opencode"))
    elif agent == "claude":
        found = list(every.glob("@anthropic-ai/claude-code-linux-*/claude"))
    elif agent == "gemini":
        found = list((every / "@google" / "gemini-cli" / "bundle").glob("*.js"))
    else:
        names = (
            "@earendil-works",
            "@aws-sdk",
            "@smithy",
            "google-auth-library",
            "@google/genai",
        )
        found = [path for name in names for path in (every / name).rglob("*.js")]
    assert found
    return found
