"""In which variables an agent gets a placeholder for a key in the vault, and which logins are left alone."""

from collections.abc import Mapping

import pytest

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.model_traffic import AgentSettings, with_placeholder
from tests.core.launch.test_model_traffic import ALL, CHATGPT, KEYS, context, ready

PLACEHOLDER = "random-aileron-placeholder"
OPENCODE = "~/.local/share/opencode/auth.json"


def placed(
    agent: str,
    settings: Mapping[str, str] | None = None,
    providers: set[str] = ALL,
    args: tuple[str, ...] = (),
    **env: str,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the agent's environment then, and why keys are not used."""
    texts = {**ready(agent), **(settings or {})}
    given = context({**KEYS, **env}, texts, args)
    own = AgentSettings(texts=texts)
    after, _, unused = with_placeholder(AGENTS[agent], given, own, PLACEHOLDER, providers)
    return dict(after.env), unused


@pytest.mark.parametrize(
    ("agent", "variables"),
    [
        ("codex", {"OPENAI_API_KEY"}),
        ("claude", {"ANTHROPIC_API_KEY"}),
        ("opencode", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"}),
        ("goose", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"}),
        ("pi", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}),
        ("gemini", {"GEMINI_API_KEY"}),
    ],
)
def test_each_agent_gets_it_where_it_takes_its_keys_from(agent: str, variables: set[str]) -> None:
    """And no other variable with a key of that provider; those of other providers stay."""
    env, unused = placed(agent)
    assert {name for name, value in env.items() if value == PLACEHOLDER} == variables
    assert unused == ()
    more, _ = placed(agent, CODEX_API_KEY="sk-too", GOOGLE_API_KEY="too")
    theirs = {name for names in AGENTS[agent].key_variables.values() for name in names}
    assert {more[name] for name in theirs & more.keys()} == {PLACEHOLDER}
    without, _ = placed(agent, providers=set())
    assert without == KEYS


def test_a_key_in_the_vault_is_enough_for_an_agent_without_one() -> None:
    """Its traffic passes with the placeholder."""
    bare = context({}, {})
    own = AgentSettings(texts={})
    _, traffic, _ = with_placeholder(AGENTS["codex"], bare, own, PLACEHOLDER, {"openai"})
    assert traffic.providers == {"openai"}
    _, traffic, _ = with_placeholder(AGENTS["codex"], bare, own, PLACEHOLDER, set())
    assert not traffic.providers


@pytest.mark.parametrize(
    ("agent", "env", "settings", "args", "reason"),
    [
        ("codex", {}, {"~/.codex/auth.json": CHATGPT}, (), "signed in with an account"),
        ("codex", {}, {"~/.codex/auth.json": '{"OPENAI_API_KEY": "k"}'}, (), "auth.json holds"),
        ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "t"}, {}, (), "CLAUDE_CODE_OAUTH_TOKEN is set"),
        ("claude", {}, {"~/.claude/.credentials.json": '{"claudeAiOauth": {"a": 1}}'}, (), "account"),
        ("claude", {}, {"~/.claude.json": '{"oauthAccount": {"a": 1}}'}, (), "account"),
        ("claude", {}, {"~/.claude.json": '{"primaryApiKey": "k"}'}, (), "sets primaryApiKey"),
        ("claude", {}, {".claude/settings.json": '{"apiKeyHelper": "x"}'}, (), "sets apiKeyHelper"),
        (
            "claude",
            {},
            {"~/.claude/settings.json": '{"env": {"ANTHROPIC_API_KEY": "k"}}'},
            (),
            "sets env.ANTHROPIC_API_KEY",
        ),
        ("opencode", {}, {OPENCODE: '{"openai": {"type": "api", "key": "k"}}'}, (), "has a login"),
        (
            "opencode",
            {},
            {"opencode.json": '{"provider": {"openai": {"options": {"apiKey": "k"}}}}'},
            (),
            "sets provider.openai.options.apiKey",
        ),
        ("pi", {}, {"~/.pi/agent/auth.json": '{"openai": {"key": "k"}}'}, (), "has a login"),
        ("pi", {}, {}, ("--api-key", "k"), "--api-key"),
        ("pi", {"ANTHROPIC_OAUTH_TOKEN": "t"}, {}, (), "ANTHROPIC_OAUTH_TOKEN is set"),
    ],
)  # fmt: skip
def test_a_login_of_its_own_is_left_alone_and_named(
    agent: str, env: dict[str, str], settings: dict[str, str], args: tuple[str, ...], reason: str
) -> None:
    """It would count over the placeholder, or the agent would pay in another way than before."""
    after, unused = placed(agent, settings, args=args, **env)
    assert any("is not used" in each and reason in each for each in unused)
    provider = unused[0].split()[4]
    first = next(
        names[0] for name, names in AGENTS[agent].key_variables.items() if name == provider
    )
    assert after.get(first) == KEYS.get(first)


def test_where_traffic_bypasses_the_gateway_no_placeholder_is_given() -> None:
    """Nobody would replace it there; the other providers' keys are."""
    env, _ = placed("goose", OPENAI_HOST="https://mine.example")
    assert env["OPENAI_API_KEY"] == KEYS["OPENAI_API_KEY"]
    assert env["ANTHROPIC_API_KEY"] == PLACEHOLDER
    env, _ = placed("goose", OPENAI_BASE_URL="https://mine.example")
    assert env["OPENAI_API_KEY"] == KEYS["OPENAI_API_KEY"]
