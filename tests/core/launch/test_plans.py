"""What each agent's module makes of a launch, and what of the person's environment it gets in its sandbox."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from aileron_core.errors import InvalidRequest
from aileron_core.launch import variables
from aileron_core.launch.agents import AGENTS
from aileron_core.launch.variables import AgentEnvironment, agent_environment
from aileron_core.settings import LaunchSettings
from tests.core.launch.plans import plan_of


@pytest.mark.parametrize("agent", AGENTS)
def test_standing_options_come_before_what_is_typed_and_controls_are_said(agent: str) -> None:
    """Settings first, so that the later of two wins; both behind the agent's own command."""
    typed = ("run", "-t", "hello") if agent == "goose" else ("hello",)
    argv = plan_of(agent, args=typed, settings_args=("--standing",)).argv
    assert argv.index("--standing") < argv.index("hello")
    if agent == "goose":
        assert argv.index("run") < argv.index("--with-extension") < argv.index("--standing")
    # Sentences that pages and `doctor` are made of.
    found = AGENTS[agent]
    assert found.tested_versions
    assert all(each.endswith(".") for each in (*found.controls, *found.not_controlled))
    assert found.not_controlled


def test_ones_own_opencode_settings_and_plugins_stay_under_ours() -> None:
    """The variable may be the person's already; theirs is kept, ours lies over it."""
    theirs = {"theme": "x", "mcp": {"mine": {"type": "local"}, "aileron": {"enabled": False}}}
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps(theirs)}
    merged = json.loads(plan_of("opencode", env=env).env["OPENCODE_CONFIG_CONTENT"])
    assert (merged["theme"], merged["mcp"]["mine"]) == ("x", {"type": "local"})
    assert merged["mcp"]["aileron"]["enabled"] is True
    assert merged["permission"] == {"aileron_*": "allow"}
    env = {"OPENCODE_CONFIG_CONTENT": '{"plugin": ["mine"]}'}
    found = plan_of("opencode", env=env, builtins="instead")
    plugins = json.loads(found.env["OPENCODE_CONFIG_CONTENT"])["plugin"]
    assert plugins == ["mine", "file:///p/aileron-opencode.mjs"]
    for text in ("{", "[]", "[" * 100_000):  # no launch without what the person set
        with pytest.raises(InvalidRequest, match="OPENCODE_CONFIG_CONTENT"):
            plan_of("opencode", env={"OPENCODE_CONFIG_CONTENT": text})


_GOOSE = {"~/.config/goose/config.yaml": "GOOSE_PROVIDER: openai\n"}
_GEMINI = {"~/.gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'}


@pytest.mark.parametrize(
    ("agent", "settings", "env", "said"),
    [
        ("goose", _GOOSE, {}, "Set OPENAI_API_KEY, or run `aileron gateway key set openai`."),
        ("goose", {}, {"GOOSE_PROVIDER": "google"}, "run `aileron gateway key set gemini`."),
        ("goose", _GOOSE, {"OPENAI_API_KEY": "placeholder"}, ""),
        ("goose", {**_GOOSE, "~/.config/goose/secrets.yaml": "OPENAI_API_KEY: k"}, {}, ""),
        ("goose", _GOOSE, {"GOOSE_PROVIDER": "groq"}, ""),
        ("gemini", _GEMINI, {}, "Set GEMINI_API_KEY, or run `aileron gateway key set gemini`."),
        ("gemini", _GEMINI, {"GEMINI_API_KEY": "placeholder"}, ""),
        ("gemini", {**_GEMINI, "~/.gemini/gemini-credentials.json": "iv:tag:text"}, {}, ""),
        ("gemini", {}, {}, ""),
    ],
)  # fmt: skip
def test_a_key_that_only_the_keyring_can_have_is_lost_in_a_sandbox(
    agent: str, settings: dict[str, str], env: dict[str, str], said: str
) -> None:
    """What the vault gives is in its environment by then; outside the sandbox the keyring is there."""
    lost = plan_of(agent, settings=settings, env=env, contained=True).lost_key
    assert lost.endswith(said)
    assert bool(lost) == bool(said)
    assert plan_of(agent, settings=settings, env=env).lost_key == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_only_tools_that_replace_its_own_switch_its_own_off(agent: str) -> None:
    """Besides them, or without any, the agent keeps what it has; each says what it loses and what it keeps."""
    usual, beside = plan_of(agent), plan_of(agent, builtins="beside")
    if agent == "codex":  # its models are offered them by name
        assert "omit_tools_from" in shlex.join(beside.argv)
    else:
        assert beside == usual
    assert plan_of(agent, builtins="instead") != usual
    assert usual.beside == ()


_MANAGED = {"~/.codex/managed_config.toml": "[features]\nshell_tool = true\n"}


@pytest.mark.parametrize(
    ("agent", "args", "settings", "said"),
    [
        ("codex", ("exec", "--yolo"), {}, "the arguments contain --yolo"),
        ("codex", ("--enable", "unified_exec"), {}, "contain --enable unified_exec"),
        ("codex", ("-c", "features.shell_tool=true"), {}, "set features.shell_tool"),
        ("codex", (), _MANAGED, "~/.codex/managed_config.toml sets features.shell_tool"),
        ("codex", ("-s", "read-only", "-c", "features.shell_tool=false"), {}, ""),
        ("gemini", ("--admin-policy", "x.toml"), {}, "--admin-policy"),
        ("gemini", ("-y", "--policy", "x.toml"), {}, ""),
        ("opencode", ("run", "--pure"), {}, "--pure"),
        ("opencode", ("attach", "http://localhost:4096"), {}, "attaches"),
        ("goose", ("run", "--with-builtin=developer"), {}, "--with-builtin"),
        ("goose", ("session", "--resume"), {}, "--resume"),
        ("claude", ("--tools", "default", "--dangerously-skip-permissions"), {}, ""),
        ("pi", ("--tools", "bash"), {}, ""),
    ],
)
def test_what_brings_its_own_tools_back_is_said(
    agent: str, args: tuple[str, ...], settings: dict[str, str], said: str
) -> None:
    """Only where it does; what Codex keeps whatever is typed is said in any case."""
    beside = plan_of(agent, args=args, settings=settings, builtins="instead").beside
    kept = [each for each in beside if "apply_patch" in each]
    assert len(kept) == (agent == "codex")
    others = [each for each in beside if each not in kept]
    assert len(others) == bool(said)
    assert all(said in each and each.endswith("is not gated.") for each in others)


def test_ones_own_gemini_policies_stay() -> None:
    """Its `--policy` takes the place of those that it reads otherwise; a project's are none of them."""
    file = "~/.gemini/settings.json"
    for args, settings, own in (
        ((), {}, ["~/.gemini/policies"]),
        ((), {file: '{"policyPaths": ["~/mine", 1]}'}, ["~/mine"]),
        ((), {file.removeprefix("~/"): '{"policyPaths": ["theirs"]}'}, ["~/.gemini/policies"]),
        (("--policy", "typed"), {}, []),
    ):
        argv = plan_of("gemini", args=args, settings=settings).argv
        found = [each for each in argv if each.startswith("--policy=")]
        assert found == [f"--policy={each}" for each in own]


def test_ones_own_goose_extensions_stay_less_what_acts() -> None:
    """All of the person's settings count, the system's under them; their values are not for a dry run."""
    settings = {
        "~/.config/goose/config.yaml": (
            "extensions:\n  developer: {type: builtin, enabled: true}\n"
            "  mine: {type: stdio, cmd: mine, enabled: true, envs: {KEY: secret}}\n"
            "  todo: {type: platform, enabled: true}\n  theirs: {enabled: false}\n"
        ),
        "/etc/goose/config.yaml": "extensions:\n  theirs: {type: stdio, cmd: x, enabled: true}\n",
    }
    found = plan_of("goose", args=("session",), settings=settings, builtins="instead")
    extensions = json.loads(found.env["EXTENSIONS"])
    enabled = {name: each["enabled"] for name, each in extensions.items()}
    assert enabled == {"mine": True, "todo": True, "theirs": False}
    assert found.private == {"EXTENSIONS"}
    # `goose configure` would keep the list in the person's configuration.
    assert "EXTENSIONS" not in plan_of("goose", args=("configure",), builtins="instead").env


SECRET = "a-value-that-no-sentence-holds"
NONE = LaunchSettings()


def environment_of(
    agent: str,
    home: Path,
    env: Mapping[str, str],
    *args: str,
    files: Mapping[str, str] | None = None,
    project: str = "project",
    **chosen: str,
) -> AgentEnvironment:
    """Return what *agent* gets in *project* below *home*, of whose files its sandbox has only the project's."""
    for name, text in (files or {}).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / project).mkdir(parents=True, exist_ok=True)
    found = agent_environment(
        AGENTS[agent], env, home=home, project=home / project, args=args, of_project=NONE,
        of_person=LaunchSettings(env=tuple(chosen.items())), has=(home / project / "in").__eq__,
    )  # fmt: skip
    assert SECRET not in " ".join(found.notices)
    return found


@pytest.mark.parametrize("agent", AGENTS)
def test_no_broad_login_is_carried_unless_set_for_the_agent(agent: str, tmp_path: Path) -> None:
    """Nor a descriptor, a socket, or what a loader obeys: whatever the agent's patterns and its settings say."""
    broad = [pattern.replace("*", "X") for pattern in variables.NEVER_CARRIED]
    env = dict.fromkeys((*broad, "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET",
                         "CODEX_X_FD", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "ANTHROPIC_UNIX_SOCKET",
                         "SSH_AUTH_SOCK", "AILERON_TOKEN"), SECRET)  # fmt: skip
    settings = json.dumps({"env": [*env], "model": {each: f"${each}" for each in env}})
    own = {"codex": ".codex/config.toml", "claude": ".claude/settings.json", "gemini": ".gemini/settings.json",
           "goose": ".config/goose/config.yaml", "pi": ".pi/agent/settings.json",
           "opencode": ".config/opencode/opencode.json"}[agent]  # fmt: skip
    files = {own: 'x = ["AWS_PROFILE"]' if agent == "codex" else settings}
    found = environment_of(agent, tmp_path, env, files=files)
    assert found.env == {}
    assert "AWS_SECRET_ACCESS_KEY" in found.notices[0]
    (tmp_path / own).unlink()
    assert environment_of(agent, tmp_path, env, AWS_PROFILE="mine").env == {"AWS_PROFILE": "mine"}


@pytest.mark.parametrize(
    ("agent", "names"),
    [
        ("codex", "OPENAI_API_KEY OPENAI_ORGANIZATION CODEX_API_KEY CODEX_ACCESS_TOKEN CODEX_OSS_PORT"),
        ("claude", "ANTHROPIC_API_KEY ANTHROPIC_BASE_URL CLAUDE_CODE_USE_BEDROCK CLAUDE_CODE_OAUTH_TOKEN CLOUD_ML_REGION"),
        ("opencode", "OPENAI_API_KEY OPENAI_BASE_URL GROQ_API_KEY OPENCODE_CONFIG_CONTENT AZURE_API_KEY"),
        ("goose", "GOOSE_PROVIDER GOOSE_MODEL OPENAI_HOST GOOGLE_HOST DATABRICKS_HOST AZURE_OPENAI_API_KEY"),
        ("pi", "ANTHROPIC_OAUTH_TOKEN GEMINI_API_KEY MISTRAL_API_KEY LLAMA_BASE_URL GOOGLE_CLOUD_API_KEY"),
        ("gemini", "GEMINI_API_KEY GEMINI_MODEL GOOGLE_GEMINI_BASE_URL GOOGLE_GENAI_USE_VERTEXAI GOOGLE_CLOUD_PROJECT"),
    ],
)  # fmt: skip
def test_what_an_agent_takes_reaches_it_as_it_is(agent: str, names: str, tmp_path: Path) -> None:
    """Key, address, provider and model, and of every cloud the key for models and the region; nothing else."""
    env = dict.fromkeys((*names.split(), "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"), "{}")
    found = environment_of(agent, tmp_path, {**env, "DATABASE_URL": SECRET})
    assert (found.env, found.notices) == (env, ())
    assert all(map(variables.is_carried, env))


@pytest.mark.parametrize(
    ("agent", "file", "text"),
    [
        ("codex", ".codex/config.toml", '[model_providers.mine]\nenv_key = "MY_KEY"'),
        ("codex", ".codex/config.toml", '[model_providers.mine.env_http_headers]\nx = "MY_KEY"'),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": {"x": {"headers": {"x": "{env:MY_KEY}"}}}}'),
        ("opencode", ".config/opencode/opencode.json", '{"provider": {"mine": {"env": ["MY_KEY"]}}}'),
        ("goose", ".config/goose/custom_providers/mine.json", '{"api_key_env": "MY_KEY"}'),
        ("pi", ".pi/agent/models.json", '{"providers": {"mine": {"apiKey": "${MY_KEY}"}}}'),
        ("gemini", ".gemini/settings.json", '{"model": {"name": "$MY_KEY"}}'),
    ],
)  # fmt: skip
def test_a_variable_that_settings_name_for_a_key_is_carried(
    agent: str, file: str, text: str, tmp_path: Path
) -> None:
    """As outside; no value of any other setting brings a variable in, and no project's."""
    found = environment_of(agent, tmp_path, {"MY_KEY": SECRET}, files={file: text})
    assert found.env == {"MY_KEY": SECRET}
    (tmp_path / file).unlink()
    assert environment_of(agent, tmp_path, {"MY_KEY": SECRET}).env == {}
    others = {"codex": 'x = ["MY_KEY"]', "goose": '{"name": "MY_KEY"}'}
    other = others.get(agent, '{"x": "$MY_KEY"}')
    found = environment_of(agent, tmp_path, {"MY_KEY": SECRET}, files={file: other})
    assert found.env == {}
    assert found.notices[0].startswith("Not in the sandbox: MY_KEY. ")


def test_neither_a_projects_settings_nor_a_login_bring_a_variable_in(tmp_path: Path) -> None:
    """Also where the person's own variable has led there. An agent could have written into a login."""
    text = '[model_providers.mine]\nenv_key = "MY_KEY"'
    files = {"project/.codex/config.toml": text}
    found = environment_of("codex", tmp_path, {"MY_KEY": SECRET}, files=files)
    assert found.env == {}
    assert found.notices[0].startswith("Not in the sandbox: MY_KEY. ")
    env = {"MY_KEY": SECRET, "CODEX_HOME": f"{tmp_path}/project/in"}
    found = environment_of("codex", tmp_path, env, files={"project/in/config.toml": text})
    assert {*found.env} == {"CODEX_HOME"}
    assert found.notices[0].startswith("Not in the sandbox: MY_KEY. ")
    key = "model_providers.x.env_key"
    for typed in (f'-c{key}="MY_KEY"', f"--config={key}=MY_KEY"):
        assert "MY_KEY" in environment_of("codex", tmp_path, {"MY_KEY": SECRET}, typed).env
    env = {"NPM_TOKEN": SECRET}
    for agent, name in {"codex": ".codex/auth.json", "pi": ".pi/agent/auth.json"}.items():
        files = {name: json.dumps({"key": "NPM_TOKEN", "last_refresh": "{env:NPM_TOKEN}"})}
        assert environment_of(agent, tmp_path, env, files=files).env == {}


def test_what_an_agent_asks_for_and_has_not_is_named_in_one_sentence(tmp_path: Path) -> None:
    """Variables, paths that lead nowhere, and the logins of what it has chosen; of others nothing."""
    for folder in (".aws", ".azure", ".config/gcloud", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    env = {"AWS_PROFILE": SECRET, "CLAUDE_CODE_USE_BEDROCK": "1", "OTHER": SECRET}
    env |= {"CLAUDE_CONFIG_DIR": f"{tmp_path}/elsewhere"}
    found = environment_of("claude", tmp_path, env)
    assert {*found.env} == {"CLAUDE_CODE_USE_BEDROCK"}
    (sentence,) = found.notices
    assert sentence == (
        "Not in the sandbox: AWS_PROFILE, CLAUDE_CONFIG_DIR, ~/.aws. Claude Code may need it for its models. Set a "
        "variable under `env` of `[launch.claude]` in config.toml, and give it a file with --read."
    )
    env = {"CLAUDE_CODE_USE_BEDROCK": "0", "ANTHROPIC_API_KEY": "/none"}
    off = environment_of("claude", tmp_path, env)
    assert (off.env, off.notices) == (env, ())
    (sentence,) = environment_of("pi", tmp_path, {"SOME_API_KEY": SECRET}).notices
    assert "SOME_API_KEY" in sentence
    files = {".codex/config.toml": 'cli_auth_credentials_store = "keyring"'}
    (sentence,) = environment_of("codex", tmp_path, {}, files=files).notices
    assert sentence.startswith("Not in the sandbox: the system's keyring. ")


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_settings_in_the_repository_above_the_project_are_named(agent: str, tmp_path: Path) -> None:
    """The agent reads them outside the sandbox, which has the project alone."""
    name = AGENTS[agent].project_files[0]
    files = {f"repository/{name}": "", name: "", f"repository/below/between/{name}": ""}
    inner = "repository/below/between/project"
    assert environment_of(agent, tmp_path, {}, files=files, project=inner).notices == ()
    (tmp_path / "repository" / ".git").mkdir()
    (sentence,) = environment_of(agent, tmp_path, {}, project=inner).notices
    between, above = (tmp_path / f"repository/{each}" / name for each in ("below/between", "."))
    assert sentence.startswith(f"Not in the sandbox: {between}, {above}. ")
    (tmp_path / inner / ".git").mkdir()
    assert environment_of(agent, tmp_path, {}, project=inner).notices == ()


def test_an_env_file_above_the_project_is_named_and_that_of_the_home_counts(tmp_path: Path) -> None:
    """Gemini CLI's: it reads the nearest one, wherever that is."""
    home = {".env": f"GEMINI_MODEL={SECRET}\nDATABASE={SECRET}\n"}
    assert environment_of("gemini", tmp_path, {}, files=home).env == {"GEMINI_MODEL": SECRET}
    file, inner = tmp_path / "above" / ".env", "above/project"
    files = {"above/.env": home[".env"]}
    found = environment_of("gemini", tmp_path, {}, files=files, project=inner)
    assert found.env == {}
    said = f"Not in the sandbox: {file}. Outside, Gemini CLI takes GEMINI_MODEL from it."
    assert found.notices[0].startswith(said)
    file.write_text(f"DATABASE={SECRET}\n")
    assert environment_of("gemini", tmp_path, {}, project=inner).notices == ()
    (tmp_path / inner / ".env").write_text("")
    assert environment_of("gemini", tmp_path, {}, project=inner).env == {}


def test_without_a_sandbox_the_agent_gets_everything(tmp_path: Path) -> None:
    env = {"AWS_PROFILE": "work", "OTHER": "1", "AILERON_HOME": "x"}
    found = agent_environment(
        AGENTS["claude"], env, home=tmp_path, project=tmp_path, of_person=NONE, of_project=NONE, args=(), has=None,
    )  # fmt: skip
    assert {*found.env} == {"AWS_PROFILE", "OTHER"}
