"""Which of an agent's model traffic passes the gateway, and where it gets a placeholder."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.model_traffic import (
    AgentSettings,
    bypass_warnings,
    predict_traffic,
    with_placeholder,
)
from aileron_core.launch.plan import ModelTraffic, Plan
from tests.core.launch.plans import context, plan_of

Args = tuple[str, ...]
Texts = Mapping[str, str]
NONE: Texts = {}
GATEWAY = "http://127.0.0.1:4000/gw/tok"
_GOOGLES = ("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")
KEYS = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", **dict.fromkeys(_GOOGLES, "gm")}
BY_KEY = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
CHATGPT = '{"auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": {"id_token": "x"}}'
OPENCODE = "~/.local/share/opencode/auth.json"
ALL = {"anthropic", "openai", "gemini"}


def traffic(agent: str, settings: Texts = NONE, env: Texts = NONE, args: Args = ()) -> ModelTraffic:
    return AGENTS[agent].traffic(context({**KEYS, **env}, settings, args))


def plan(agent: str, settings: Texts = NONE, env: Texts = NONE, args: Args = ()) -> Plan:
    return plan_of(agent, env={**KEYS, **env}, settings=settings, args=args, gateway=GATEWAY)


def plan_text(plan: Plan) -> str:
    return json.dumps([*plan.argv, {**plan.env}, {**plan.files}])


def passing_settings(agent: str) -> Texts:
    return {"~/.gemini/settings.json": BY_KEY} if agent == "gemini" else {}


def test_each_agent_gets_the_base_url_that_it_completes_to_the_providers_path() -> None:
    """Root or `/v1`, whatever the agent puts behind it; in an argv only where it takes its base URL no other way."""
    assert f'base_url = "{GATEWAY}/v1"' in " ".join(plan("codex").argv)
    claude = json.loads(plan("claude").files["claude-settings.json"])
    assert claude["env"]["ANTHROPIC_BASE_URL"] == GATEWAY
    opencode = json.loads(plan("opencode").env["OPENCODE_CONFIG_CONTENT"])["provider"]
    given = {name: each["options"]["baseURL"] for name, each in opencode.items()}
    bases = {"anthropic": GATEWAY, "openai": f"{GATEWAY}/v1", "google": f"{GATEWAY}/v1beta"}
    assert given == {**bases, "anthropic": f"{GATEWAY}/v1"}
    goose = plan("goose").env
    assert goose["OPENAI_HOST"] == goose["ANTHROPIC_HOST"] == goose["GOOGLE_HOST"] == GATEWAY
    assert plan("gemini", {"x": BY_KEY}).env["GOOGLE_GEMINI_BASE_URL"] == GATEWAY
    pi = plan("pi").files["aileron-pi.mjs"]
    assert f"const BASES = {json.dumps(bases)};" in pi
    for agent in {*AGENTS} - {"codex"}:
        settings = passing_settings(agent)
        assert traffic(agent, settings).bypass_reasons == ()
        assert GATEWAY in plan_text(plan(agent, settings))
        assert "/gw/" not in " ".join(plan(agent, settings).argv)


BY_ACCOUNT = BY_KEY.replace("gemini-api-key", "vertex-ai")
PROFILE = 'profile = "w"\n[profiles.w]\nmodel_provider = "mine"'
BEDROCK = '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}'


@pytest.mark.parametrize(
    ("agent", "settings", "env", "args", "named"),
    [
        ("claude", {}, {"ANTHROPIC_BASE_URL": "https://mine"}, (), "ANTHROPIC_BASE_URL"),
        ("claude", {}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, (), "CLAUDE_CODE_USE_BEDROCK"),
        ("codex", {}, {"CODEX_ACCESS_TOKEN": "token"}, (), "CODEX_ACCESS_TOKEN"),
        ("gemini", {}, {"HTTPS_PROXY": "http://proxy:3128"}, (), "HTTPS_PROXY"),
        ("codex", {"~/.codex/config.toml": 'model_provider = "mine"'}, {}, (), "model_provider"),
        ("codex", {"/etc/codex/config.toml": 'openai_base_url = "https://x"'}, {}, (), "openai_base"),
        ("codex", {"~/.codex/config.toml": PROFILE}, {}, (), "profiles.w.model_provider"),
        ("codex", {".codex/config.toml": "not = = toml"}, {}, (), "cannot be parsed"),
        ("codex", {"~/.codex/auth.json": CHATGPT}, {}, (), "ChatGPT"),
        ("claude", {"~/.claude/settings.json": BEDROCK}, {}, (), "env.CLAUDE_CODE_USE_BEDROCK"),
        ("claude", {"~/.claude/settings.json": "{"}, {}, (), "cannot be parsed"),
        ("gemini", {"~/.gemini/.env": "export https_proxy='http://p'"}, {}, (), "https_proxy"),
        ("gemini", {".gemini/settings.json": BY_ACCOUNT}, {}, (), "signed in"),
        ("gemini", {}, {}, ("--proxy", "http://p:3128", "-p", "x"), "--proxy"),
        ("codex", {}, {}, ("--oss",), "--oss"),
        ("codex", {}, {}, ("exec", "-p", "w"), "-p"),
        ("codex", {}, {}, ("-c", "model_provider='x'"), "model_provider"),
    ],
)  # fmt: skip
def test_traffic_that_you_send_elsewhere_is_left_alone_and_named(
    agent: str, settings: Texts, env: Texts, args: Args, named: str
) -> None:
    """Never break an agent: what works goes on as it is. The sentence quotes no file."""
    settings = {**passing_settings(agent), **settings}
    found = traffic(agent, settings, env=env, args=args)
    assert found.providers == frozenset()
    assert named in found.bypass_reasons[0]
    assert "https://" not in found.bypass_reasons[0]
    assert GATEWAY not in plan_text(plan(agent, settings, env, args))
    (_,) = bypass_warnings(AGENTS[agent], found)
    assert "cannot reach a model" in bypass_warnings(AGENTS[agent], found, offline=True)[1]


def test_a_project_that_sends_it_elsewhere_is_asked_about() -> None:
    """A repository moves no upstream, and no key to a proxy, without a person's yes."""
    for agent, path, text in (
        ("codex", ".codex/config.toml", 'profile = "theirs"'),
        ("claude", ".claude/settings.json", '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}'),
        ("claude", ".claude/settings.json", '{"env": {"https_proxy": "http://theirs"}}'),
        ("gemini", ".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://theirs"),
        ("gemini", ".gemini/.env", "HTTPS_PROXY=http://theirs"),
        ("gemini", ".gemini/settings.json", '{"security": {"auth": {"selectedType": "x"}}}'),
        ("opencode", "opencode.json", '{"provider": {"openai": {"api": "http://theirs"}}}'),
    ):
        (sentence,) = AGENTS[agent].overrides(path, text)
        assert sentence.startswith(f"{path} sets ")


def test_a_proxy_in_claudes_own_settings_is_not_asked_for_the_gateway() -> None:
    """Its settings count over the environment, and what they keep from the proxy stays so."""
    own = {"env": {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "mine.example"}}
    made = plan("claude", {"~/.claude/settings.json": json.dumps(own)})
    env = json.loads(made.files["claude-settings.json"])["env"]
    assert env["NO_PROXY"] == env["no_proxy"] == "mine.example,127.0.0.1"
    assert "NO_PROXY" not in json.loads(plan("claude").files["claude-settings.json"])["env"]


@pytest.mark.parametrize(
    ("agent", "path", "text"),
    [
        ("codex", "~/.codex/config.toml", 'model = "gpt-5"\nmodel_provider = "openai"'),
        ("codex", "~/.codex/config.toml", '[model_providers.other]\nbase_url = "https://x"'),
        ("claude", "~/.claude/settings.json", '{"env": {"DISABLE_TELEMETRY": "1"}}'),
        ("opencode", "~/.config/opencode/opencode.jsonc", '{"theme": "x", // mine\n}'),
        ("goose", "~/.config/goose/config.yaml", "OPENAI_HOST: https://api.openai.com\n"),
        ("codex", "~/.codex/config.toml", 'openai_base_url = "https://api.openai.com/v1/"'),
        ("pi", "~/.pi/agent/models.json", '{"providers": {"ollama": {"baseUrl": "http://x"}}}'),
        ("claude", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        ("goose", "OPENAI_HOST", "https://api.openai.com/"),
        *(("claude", "CLAUDE_CODE_USE_BEDROCK", off) for off in ("0", "false", "")),
    ],
)
def test_what_names_no_other_place_changes_nothing(agent: str, path: str, text: str) -> None:
    """A switch that is off, or the provider's own address: the gateway leads there too, and takes its place."""
    settings, env = ({path: text}, NONE) if path.startswith("~") else (NONE, {path: text})
    assert traffic(agent, settings, env) == traffic(agent)
    assert env is NONE or f'"{text}"' not in plan_text(plan(agent, env=env))
    # Words that are no options are what the agent is told.
    assert traffic("codex", args=("exec", "explain openai_base_url")) == traffic("codex")


def test_codexs_own_key_is_used_before_one_in_the_environment() -> None:
    """In the order in which Codex looks itself."""
    own = {"~/.codex/auth.json": '{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-own"}'}
    assert "requires_openai_auth = true" in plan_text(plan("codex", own))
    assert "env_key" not in plan_text(plan("codex", own))
    assert 'env_key = \\"OPENAI_API_KEY\\"' in plan_text(plan("codex"))
    assert "sk-o" not in plan_text(plan("codex", own))


def test_opencodes_own_providers_and_logins_are_left_alone_one_by_one() -> None:
    """What can pass does; the sentence says that not all does."""
    providers = {"google": {"options": {"baseURL": "https://x"}}, "local": {}}
    config = json.dumps({"model": "local/test", "provider": providers})
    login = '{"openai": {"type": "oauth", "access": "secret"}}'
    settings = {OPENCODE: login, "~/.config/opencode/opencode.json": config}
    found = traffic("opencode", settings)
    assert found.providers == {"anthropic"}
    assert len(found.bypass_reasons) == 3
    sentence = " ".join(bypass_warnings(AGENTS["opencode"], found))
    assert sentence.startswith("Some of OpenCode's model traffic bypasses Aileron's gateway: ")
    assert "secret" not in sentence
    given = json.loads(plan("opencode", settings).env["OPENCODE_CONFIG_CONTENT"])
    assert list(given["provider"]) == ["anthropic"]


def test_no_provider_is_given_without_a_key() -> None:
    """OpenCode would offer its models first, and each would fail; Codex would send a login of ChatGPT there."""
    found = AGENTS["opencode"].traffic(context({"OPENAI_API_KEY": "x"}))
    assert found.providers == {"openai"}
    for agent, reason in (("opencode", ""), ("codex", "codex login")):
        none = AGENTS[agent].traffic(context())
        assert none.providers == frozenset()
        assert reason in none.bypass_reasons[0]


PI = '{"providers": {"openai": {"baseUrl": "https://x"}}}'
UNSUPPORTED = "the gateway does not support"


@pytest.mark.parametrize(
    ("agent", "settings", "env", "args", "named"),
    [
        ("goose", {"~/.config/goose/config.yaml": "OPENAI_HOST: https://x"}, {}, (), "config.yaml"),
        ("pi", {"~/.pi/agent/models.json": PI}, {}, (), "models.json"),
        ("opencode", {}, {"OPENAI_BASE_URL": "https://mine"}, (), "OPENAI_BASE_URL is set"),
        ("goose", {}, {}, ("run", "--provider", "ollama", "-t", "x"), UNSUPPORTED),
        ("goose", {}, {"GOOSE_PROVIDER": "databricks"}, (), UNSUPPORTED),
        ("pi", {}, {}, ("--provider=groq", "-p", "x"), UNSUPPORTED),
        ("pi", {}, {}, ("--model", "groq/x"), UNSUPPORTED),
        ("opencode", {}, {}, ("run", "-m", "openrouter/x", "hello"), UNSUPPORTED),
    ],
)
def test_a_host_or_a_provider_of_your_own_leaves_the_others_to_pass(
    agent: str, settings: Texts, env: Texts, args: Args, named: str
) -> None:
    """Where another provider is chosen, all are set: they may be chosen later."""
    found = traffic(agent, settings, env, args)
    assert found.providers == (ALL if named == UNSUPPORTED else ALL - {"openai"})
    assert named in found.bypass_reasons[0]


def test_goose_configure_is_given_no_address_that_it_would_keep() -> None:
    """It offers to write what it finds in the environment into the person's own configuration."""
    assert GATEWAY not in plan_text(plan("goose", args=("configure",)))


@pytest.mark.parametrize("agent", AGENTS)
def test_unreadable_settings_leave_it_alone(agent: str, tmp_path: Path, project: Path) -> None:
    """A folder in a file's place, a fifo, bytes that are no text: nobody can tell what they set."""
    (path, *_) = AGENTS[agent].settings_paths({}, ())
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(b"\xff\xfe")
    found = predict_traffic(AGENTS[agent], KEYS, tmp_path, project)
    assert found.providers == frozenset()
    assert found.bypass_reasons == (f"~/{path} cannot be read",)
    (sentence,) = bypass_warnings(AGENTS[agent], found)
    assert sentence.endswith(f"bypasses Aileron's gateway: ~/{path} cannot be read.")


def test_the_persons_settings_come_before_the_projects_wherever_a_variable_moves_them(
    tmp_path: Path, project: Path
) -> None:
    """The later of two counts, and texts of credentials are not shown by accident. CODEX_HOME and its like count."""
    own = tmp_path / ".codex" / "auth.json"
    own.parent.mkdir()
    own.write_text('{"OPENAI_API_KEY": "sk-secret"}')
    (project / ".codex").mkdir()
    (project / ".codex" / "config.toml").write_text("")
    found = AgentSettings.read(AGENTS["codex"], {}, tmp_path, project)
    assert list(found.texts) == ["~/.codex/auth.json", ".codex/config.toml"]
    assert "sk-secret" not in repr(found)
    assert "sk-secret" not in repr(context({}, found.texts))
    (tmp_path / "config.toml").write_text('model_provider = "mine"')
    env = {**KEYS, "CODEX_HOME": str(tmp_path)}
    found = predict_traffic(AGENTS["codex"], env, tmp_path / "none", project)
    assert found.bypass_reasons == (f"{tmp_path}/config.toml sets model_provider",)


PLACEHOLDER = "random-aileron-placeholder"


def with_keys_placed(
    agent: str, settings: Texts = NONE, keyed: set[str] = ALL, args: Args = (), env: Texts = NONE
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the agent's environment then, and why keys are not used."""
    texts = {**passing_settings(agent), **settings}
    given = context({**KEYS, **env}, texts, args)
    own = AgentSettings(texts=texts)
    after, _, unused = with_placeholder(AGENTS[agent], given, own, PLACEHOLDER, keyed)
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
    env, unused = with_keys_placed(agent)
    assert {name for name, value in env.items() if value == PLACEHOLDER} == variables
    assert unused == ()
    more, _ = with_keys_placed(agent, env={"CODEX_API_KEY": "sk-too", "GOOGLE_API_KEY": "too"})
    theirs = {name for names in AGENTS[agent].key_variables.values() for name in names}
    assert {more[name] for name in theirs & more.keys()} == {PLACEHOLDER}
    without, _ = with_keys_placed(agent, keyed=set())
    assert without == KEYS


def test_a_key_in_the_vault_is_enough_but_where_traffic_bypasses_the_gateway() -> None:
    """Nobody would replace the placeholder there; the other providers' keys are."""
    codex, own = AGENTS["codex"], AgentSettings(texts={})
    for providers in ({"openai"}, set[str]()):
        _, found, _ = with_placeholder(codex, context(), own, PLACEHOLDER, providers)
        assert found.providers == providers
    for name in ("OPENAI_HOST", "OPENAI_BASE_URL"):
        env, _ = with_keys_placed("goose", env={name: "https://mine.example"})
        assert env["OPENAI_API_KEY"] == KEYS["OPENAI_API_KEY"]
        assert env["ANTHROPIC_API_KEY"] == PLACEHOLDER


@pytest.mark.parametrize(
    ("agent", "env", "settings", "args", "reason"),
    [
        ("codex", {}, {"~/.codex/auth.json": CHATGPT}, (), "signed in with an account"),
        ("codex", {}, {"~/.codex/auth.json": '{"OPENAI_API_KEY": "k"}'}, (), "auth.json holds"),
        ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "t"}, {}, (), "CLAUDE_CODE_OAUTH_TOKEN is set"),
        ("claude", {}, {"~/.claude.json": '{"oauthAccount": {"a": 1}}'}, (), "account"),
        ("claude", {}, {"~/.claude.json": '{"primaryApiKey": "k"}'}, (), "sets primaryApiKey"),
        ("claude", {}, {".claude/settings.json": '{"apiKeyHelper": "x"}'}, (), "sets apiKeyHelper"),
        ("opencode", {}, {OPENCODE: '{"openai": {"type": "api", "key": "k"}}'}, (), "has a login"),
        ("pi", {}, {"~/.pi/agent/auth.json": '{"openai": {"key": "k"}}'}, (), "has a login"),
        ("pi", {}, {}, ("--api-key", "k"), "--api-key"),
        ("pi", {"ANTHROPIC_OAUTH_TOKEN": "t"}, {}, (), "ANTHROPIC_OAUTH_TOKEN is set"),
    ],
)  # fmt: skip
def test_a_login_of_its_own_is_named(
    agent: str, env: Texts, settings: Texts, args: Args, reason: str
) -> None:
    """It would count over the placeholder, or the agent would pay in another way than before."""
    after, unused = with_keys_placed(agent, settings, args=args, env=env)
    assert any("is not used" in each and reason in each for each in unused)
    provider = unused[0].split()[4]
    key_variables = AGENTS[agent].key_variables.items()
    first = next(names[0] for name, names in key_variables if name == provider)
    assert after.get(first) == KEYS.get(first)
