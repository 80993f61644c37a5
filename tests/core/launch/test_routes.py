"""What chooses an agent's model, address and key reaches it in the sandbox, or stops the launch with a sentence."""

import contextlib
import sqlite3
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path, PurePosixPath

import pytest

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.environment import AgentEnvironment, agent_environment
from aileron_core.launch.plan import PlanContext
from aileron_core.launch.routes import Route, RouteSetting, judge_routes
from aileron_core.settings import LaunchSettings

SECRET = "a-value-that-no-sentence-holds"


def concrete(pattern: str) -> str:
    """Return a name or a value that *pattern* matches."""
    return pattern.replace("[MP]", "M").replace("*", "X")


def with_condition(route: Route) -> tuple[RouteSetting, ...]:
    """Return a setting with which *route* counts."""
    if route.only_while is None:
        return ()
    name, _, value = concrete(route.only_while.patterns[0]).partition("=")
    return (RouteSetting(name=name, value=value or "1", where="~/settings"),)


UNDECIDED = {
    name: [
        route
        for route in agent.routes
        if route.source == "environment" and route.only_while is not None
        if route.only_while.choice is not None
    ]
    for name, agent in AGENTS.items()
}
"""Variables with which an agent takes their provider of its own accord, while no model is chosen."""
OF_ANOTHER = {"opencode": ("-m", "groq/any"), "pi": ("--model", "groq/any")}


@pytest.mark.parametrize("agent", AGENTS)
def test_each_row_is_obeyed(agent: str, tmp_path: Path) -> None:
    """Carried or refused, as the table says."""
    for route in AGENTS[agent].routes:
        obeyed(route, tmp_path)


def obeyed(route: Route, home: Path) -> None:
    """Fail if *route* is not carried, or not refused with a sentence that names setting and place, and no value."""
    given = with_condition(route)
    own = {each.name: each.value for each in given}
    name = next((each for each in own if fnmatchcase(each, route.name)), concrete(route.name))
    settings, env, where = [*given], {"NAMED": SECRET}, "Your environment"
    if route.source == "login":
        (home / route.path).mkdir(parents=True, exist_ok=True)
        name = route.name
        where = "~/settings" if route.only_while is not None else name
    elif route.source == "settings":
        value = "NAMED" if route.names_variables else own.get(name, SECRET)
        settings.append(RouteSetting(name=name, value=value, where="~/settings"))
        where = "~/settings"
    else:
        settings = [each for each in given if each.name != name]
        env[name] = own.get(name, SECRET)
    found = judge_routes("It", [route], env, settings, chosen={}, home=home)
    if route.refused:
        assert found.carried == {}, route
        (sentence,) = found.notices if route.only_named else found.refusals
        assert where in sentence, route
        assert name in sentence, route
        assert sentence.endswith(f" {route.refused}"), route
        assert SECRET not in sentence, route
        return
    carried = {"NAMED"} if route.names_variables else {name} & {*env}
    assert ({*found.carried}, found.refusals) == (carried, ()), route


@pytest.mark.parametrize("agent", AGENTS)
def test_a_row_with_a_condition_counts_only_then(agent: str, tmp_path: Path) -> None:
    """A cloud's key goes to no agent that does not use that cloud, and stops no launch of one that has to be told to."""
    for route in AGENTS[agent].routes:
        if route.path:
            (tmp_path / route.path).mkdir(parents=True, exist_ok=True)
        if route.only_while is not None and route not in UNDECIDED[agent]:
            env = {concrete(route.name): SECRET}
            found = judge_routes("It", [route], env, (), chosen={}, home=tmp_path)
            assert (found.carried, found.refusals) == ({}, ()), route


def launched(
    agent: str,
    home: Path,
    env: Mapping[str, str],
    *args: str,
    files: Mapping[str, str] | None = None,
    **of_person: str,
) -> AgentEnvironment:
    """Return what *agent* gets in a sandbox, with *files* below the home; `project/...` are the project's."""
    for name, text in (files or {}).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return agent_environment(
        AGENTS[agent],
        env,
        home=home,
        project=home / "project",
        of_person=LaunchSettings(env=tuple(of_person.items())),
        of_project=LaunchSettings(),
        args=args,
        contained=True,
    )


ACCOUNT = '{"security": {"auth": {"selectedType": "oauth-personal"}}}'
LAST_USED = (
    '{"recent": [{"providerID": "azure", "modelID": "x"}, {"providerID": "groq", "modelID": "y"}]}'
)
LISTED = '{"new": {"env": ["NEW_KEY", "AWS_ACCESS_KEY_ID"]}, "other": {"env": ["OTHER_KEY"]}, "odd": {"env": 1}}'
MINE = '[model_providers.mine]\nbase_url = "https://x"\nenv_key = "MY_KEY"\n'


@pytest.mark.parametrize(
    ("agent", "args", "files", "env", "carried"),
    [
        (
            "codex",
            (),
            {".codex/config.toml": f'model_provider = "mine"\n{MINE}'},
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        (
            "codex",
            ("-c", "model_provider=mine"),
            {".codex/config.toml": MINE},
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        (
            "codex",
            ("--profile", "work"),
            {".codex/work.config.toml": f'model_provider = "mine"\n{MINE}'},
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        (
            "codex",
            (),
            {".codex/config.toml": f'profile = "w"\n[profiles.w]\nmodel_provider = "mine"\n{MINE}'},
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        ("codex", (), {".codex/config.toml": MINE}, {"MY_KEY": "k"}, set()),
        ("codex", (), {".codex/.env": "OPENAI_API_KEY=k\nPATH=/evil\n"}, {}, {"OPENAI_API_KEY"}),
        (
            "opencode",
            (),
            {
                ".config/opencode/opencode.jsonc": '{"provider": {"x": {"options": {"apiKey": "{env:MY_KEY}"}}}}'
            },
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        ("opencode", ("run", "-m", "azure/x"), {}, {"AZURE_API_KEY": "k"}, {"AZURE_API_KEY"}),
        ("opencode", (), {}, {"GROQ_API_KEY": "k"}, {"GROQ_API_KEY"}),
        (
            "opencode",
            (),
            {".local/state/opencode/model.json": LAST_USED},
            {"AZURE_API_KEY": "k"},
            {"AZURE_API_KEY"},
        ),
        (
            "opencode",
            (),
            {".config/opencode/opencode.json": '{"provider": {"x": {"env": ["MY_KEY"]}}}'},
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        (
            "opencode",
            (),
            {
                ".opencode/opencode.json": '{"model": "azure/x", "x": "{file:./agent/a.md}"}',
                ".config/opencode/opencode.json": '{"x": "{file:~/.config/opencode/a.md}"}',
                "project/opencode.json": '{"x": "{file:./key}"}',
            },
            {"AZURE_API_KEY": "k"},
            {"AZURE_API_KEY"},
        ),
        (
            "opencode",
            (),
            {".config/opencode/agent/a.md": "---\nmodel: azure/x\n---\nmodel: groq/y\n"},
            {"AZURE_API_KEY": "k"},
            {"AZURE_API_KEY"},
        ),
        (
            "opencode",
            ("-m", "new/x"),
            {".cache/opencode/models.json": LISTED},
            {"NEW_KEY": "k", "OTHER_KEY": "k", "AWS_ACCESS_KEY_ID": "k"},
            {"NEW_KEY"},
        ),
        (
            "opencode",
            ("-m", "neon/x"),
            {},
            {"NEON_AI_GATEWAY_TOKEN": "k"},
            {"NEON_AI_GATEWAY_TOKEN"},
        ),
        ("opencode", ("-m", "google/x"), {}, {"GEMINI_API_KEY": "k"}, {"GEMINI_API_KEY"}),
        *(
            (agent, ("-m", "any/x"), {}, {name: "k"}, {name})
            for agent, name in (
                ("opencode", "GOOGLE_CLOUD_QUOTA_PROJECT"),
                ("pi", "GOOGLE_CLOUD_QUOTA_PROJECT"),
                ("goose", "GOOSE_EMBEDDING_MODEL"),
            )
        ),
        (
            "pi",
            (),
            {".pi/agent/settings.json": '{"enabledModels": ["amazon-bedrock/x"]}'},
            {"AWS_BEARER_TOKEN_BEDROCK": "k"},
            {"AWS_BEARER_TOKEN_BEDROCK"},
        ),
        (
            "pi",
            (),
            {".pi/agent/models.json": '{"providers": {"x": {"apiKey": "${MY_KEY}"}}}'},
            {"MY_KEY": "k"},
            {"MY_KEY"},
        ),
        (
            "goose",
            (),
            {".config/goose/config.yaml": "GOOSE_PROVIDER: groq\n"},
            {"GROQ_API_KEY": "k", "XAI_API_KEY": "k"},
            {"GROQ_API_KEY"},
        ),
        ("goose", ("run", "--provider", "xai"), {}, {"XAI_API_KEY": "k"}, {"XAI_API_KEY"}),
        ("gemini", (), {".env": "GEMINI_API_KEY=k\n"}, {}, {"GEMINI_API_KEY"}),
        (
            "claude",
            (),
            {".claude/settings.json": '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}'},
            {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "x", "ANTHROPIC_FOUNDRY_API_KEY": "k"},
            {"AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"},
        ),
        (
            "claude",
            (),
            {},
            {"CLAUDE_CODE_USE_BEDROCK": "0", "AWS_BEARER_TOKEN_BEDROCK": "k"},
            {"CLAUDE_CODE_USE_BEDROCK"},
        ),
    ],
)
def test_what_settings_and_arguments_choose_reaches_the_agent(
    agent: str,
    args: tuple[str, ...],
    files: Mapping[str, str],
    env: Mapping[str, str],
    carried: set[str],
    tmp_path: Path,
) -> None:
    """And nothing more of the environment than that."""
    found = launched(agent, tmp_path, {**env, "OTHER_SECRET": "k"}, *args, files=files)
    assert {*found.env} == carried
    assert found.refusals == ()


@pytest.mark.parametrize(
    ("agent", "args", "files", "env", "words"),
    [
        (
            "claude",
            (),
            {},
            {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "work"},
            ("Your environment sets AWS_PROFILE", "~/.aws", "AWS_BEARER_TOKEN_BEDROCK"),
        ),
        (
            "claude",
            (),
            {".aws/config": ""},
            {"CLAUDE_CODE_USE_BEDROCK": "1"},
            ("sets CLAUDE_CODE_USE_BEDROCK, for which Claude Code uses ~/.aws",),
        ),
        (
            "claude",
            (),
            {".claude/settings.json": '{"apiKeyHelper": "~/bin/key"}'},
            {},
            ("~/.claude/settings.json sets apiKeyHelper",),
        ),
        (
            "codex",
            (),
            {".codex/config.toml": 'cli_auth_credentials_store = "keyring"'},
            {},
            ("~/.codex/config.toml sets cli_auth_credentials_store", "keyring"),
        ),
        (
            "codex",
            (),
            {
                ".codex/config.toml": 'model_provider = "mine"\n[model_providers.mine.auth]\ncommand = "x"'
            },
            {},
            ("model_providers.*.auth.command",),
        ),
        (
            "opencode",
            (),
            {".config/opencode/opencode.json": '{"x": "{file:~/.secrets/key}"}'},
            {},
            ("~/.config/opencode/opencode.json sets {file:...}",),
        ),
        (
            "opencode",
            (),
            {".opencode/opencode.json": '{"x": "{file:./key}"}'},
            {},
            ("~/.opencode/opencode.json sets {file:...}",),
        ),
        (
            "opencode",
            (),
            {".local/share/opencode/auth.json": '{"https://x": {"type": "wellknown", "key": "K"}}'},
            {},
            ("~/.local/share/opencode/auth.json sets login.type", "opencode auth logout"),
        ),
        (
            "opencode",
            (),
            {".cache/opencode/models.json": LISTED},
            {"NEW_KEY": "k"},
            ("~/.cache/opencode/models.json sets new.env (NEW_KEY)", "Choose a model"),
        ),
        (
            "opencode",
            (),
            {},
            {"WATSONX_AI_APIKEY": "k"},
            (
                "OpenCode's own list of models sets watsonx.env (WATSONX_AI_APIKEY)",
                "Choose a model",
            ),
        ),
        (
            "opencode",
            (),
            {},
            {"GOOGLE_API_KEY": "k"},
            ("OpenCode's own list of models sets google.env (GOOGLE_API_KEY)", "Choose a model"),
        ),
        (
            "opencode",
            ("run", "-m", "vercel/x"),
            {},
            {"VERCEL_OIDC_TOKEN": "k"},
            ("VERCEL_OIDC_TOKEN", "AI_GATEWAY_API_KEY"),
        ),
        (
            "opencode",
            ("run", "-m", "github-copilot/x"),
            {},
            {"GITHUB_TOKEN": "k"},
            ("GITHUB_TOKEN", "opencode auth login"),
        ),
        (
            "pi",
            (),
            {".pi/agent/auth.json": '{"x": {"type": "api_key", "key": "!pass x"}}'},
            {},
            ("~/.pi/agent/auth.json sets !COMMAND",),
        ),
        (
            "goose",
            (),
            {".config/goose/config.yaml": "GOOSE_PROVIDER: claude-code\n"},
            {"GOOSE_PLANNER_PROVIDER": "openai"},
            ("~/.config/goose/config.yaml sets GOOSE_PROVIDER", "another agent"),
        ),
        (
            "gemini",
            (),
            {".config/gcloud/x": ""},
            {"GOOGLE_GENAI_USE_VERTEXAI": "true"},
            ("~/.config/gcloud", "GOOGLE_API_KEY"),
        ),
    ],
)
def test_what_the_sandbox_cannot_have_is_named_before_the_start(
    agent: str,
    args: tuple[str, ...],
    files: Mapping[str, str],
    env: Mapping[str, str],
    words: tuple[str, ...],
    tmp_path: Path,
) -> None:
    """What, where, and what to do; without it the agent would ask another place, or with another key."""
    (sentence,) = launched(agent, tmp_path, env, *args, files=files).refusals
    for each in words:
        assert each in sentence


def test_a_projects_settings_bring_no_variable_into_the_sandbox(tmp_path: Path) -> None:
    """Neither by name nor by a switch that would carry a key; a name that the person set stops the launch."""
    files = {"project/.codex/config.toml": f'model_provider = "mine"\n{MINE}'}
    found = launched("codex", tmp_path, {"MY_KEY": SECRET}, files=files)
    assert "MY_KEY" not in found.env
    (sentence,) = found.refusals
    assert sentence.startswith(".codex/config.toml names the variable MY_KEY.")
    assert launched("codex", tmp_path, {}, files=files).refusals == ()
    files = {"project/.claude/settings.json": '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}'}
    found = launched("claude", tmp_path, {"AWS_BEARER_TOKEN_BEDROCK": SECRET}, files=files)
    assert found.env == {}


def test_what_you_set_for_the_agent_in_config_toml_reaches_it_whatever_it_is(
    tmp_path: Path,
) -> None:
    """The way out of every refusal of a variable, and it counts over the environment."""
    env = {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "work"}
    found = launched("claude", tmp_path, env, AWS_PROFILE="other")
    assert found.refusals == ()
    assert found.env["AWS_PROFILE"] == "other"
    off = launched("claude", tmp_path, env, CLAUDE_CODE_USE_BEDROCK="0")
    assert (off.refusals, off.env) == ((), {"CLAUDE_CODE_USE_BEDROCK": "0"})


def test_a_folder_variable_that_names_the_usual_place_changes_nothing(tmp_path: Path) -> None:
    """Many shells set XDG_CONFIG_HOME to what it is anyway."""
    usual = {"XDG_CONFIG_HOME": f"{tmp_path}/.config"}
    assert launched("opencode", tmp_path, usual).refusals == ()
    (sentence,) = launched("opencode", tmp_path, {"XDG_CONFIG_HOME": "/elsewhere"}).refusals
    assert "XDG_CONFIG_HOME" in sentence


def test_a_key_that_other_programs_may_mean_is_carried_once_its_provider_is_chosen(
    tmp_path: Path,
) -> None:
    """Before that a sentence names it; nothing is left out in silence."""
    env = {"SCALEWAY_API_KEY": "k", "ECHO_API_KEY": "other"}
    idle = launched("opencode", tmp_path, env, *OF_ANOTHER["opencode"])
    assert (idle.env, idle.refusals) == ({}, ())
    (sentence,) = idle.notices
    assert "Not in the sandbox: ECHO_API_KEY, SCALEWAY_API_KEY." in sentence
    assert "`[launch.opencode]`" in sentence
    used = launched("opencode", tmp_path, env, "run", "-m", "scaleway/any")
    assert used.env == {"SCALEWAY_API_KEY": "k"}
    assert ["ECHO_API_KEY" in each and "SCALEWAY" not in each for each in used.notices] == [True]
    given = launched("opencode", tmp_path, env, ECHO_API_KEY="k", SCALEWAY_API_KEY="k")
    assert (given.notices, given.refusals) == ((), ())


@pytest.mark.parametrize(
    ("agent", "route"),
    [(agent, route) for agent, routes in UNDECIDED.items() for route in routes],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_variable_that_may_choose_the_provider_is_never_dropped_in_silence(
    agent: str, route: Route, tmp_path: Path
) -> None:
    """Refused while no model is chosen, named while another provider's is; `config.toml` decides it too."""
    name = concrete(route.name)
    env = {name: SECRET}
    (sentence,) = launched(agent, tmp_path, env).refusals
    assert sentence.startswith(f"Your environment sets {name}, which {AGENTS[agent].title} takes")
    assert "Choose a model" in sentence
    assert f"`[launch.{agent}]`" in sentence
    assert SECRET not in sentence
    other = launched(agent, tmp_path, env, *OF_ANOTHER[agent])
    assert (other.env, other.refusals) == ({}, ())
    (sentence,) = other.notices
    assert sentence.startswith(f"Not in the sandbox: {name}. ")
    assert route.only_while is not None
    provider = route.only_while.patterns[0].partition("=")[2].removesuffix("/*").replace("*", "")
    own = launched(agent, tmp_path, env, OF_ANOTHER[agent][0], f"{provider}/any")
    assert own.notices == ()
    if route.refused:
        (sentence,) = own.refusals
        assert sentence.endswith(f" {route.refused}")
    else:
        assert (own.env, own.refusals) == (env, ())
    for value in ("", "of-config"):
        given = launched(agent, tmp_path, env, files=None, **{name: value})
        assert (given.env, given.refusals, given.notices) == ({name: value}, (), ())


@pytest.mark.parametrize("agent", ["opencode", "pi"])
@pytest.mark.parametrize(
    "name", ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_CLOUD_LOCATION"]
)
def test_what_is_beside_a_login_stops_no_launch(agent: str, name: str, tmp_path: Path) -> None:
    """A region or a file for all tools makes no agent choose that cloud."""
    found = launched(agent, tmp_path, {name: "k"})
    assert (found.env, found.refusals, found.notices) == ({}, (), ())


@pytest.mark.parametrize(("login", "stops"), [("USE_COMPUTE_ADC", True), ("", False)])
def test_a_machines_login_counts_for_gemini_only_where_it_is_used(
    login: str, stops: bool, tmp_path: Path
) -> None:
    """A Google account does not need it."""
    env = {"GCE_METADATA_HOST": "k"} | (
        {f"GEMINI_CLI_{login}": "true"} if login else {"CLOUDSDK_CONFIG": "k"}
    )
    files = None if login else {".gemini/settings.json": ACCOUNT}
    found = launched("gemini", tmp_path, env, files=files)
    assert bool(found.refusals) is stops


def test_one_sentence_names_all_variables_that_may_choose_the_provider(tmp_path: Path) -> None:
    """Whichever of them it would be."""
    env = {"GITHUB_TOKEN": "k", "AZURE_RESOURCE_NAME": "k", "AZURE_API_KEY": "k"}
    (sentence,) = launched("opencode", tmp_path, env).refusals
    assert sentence.startswith(
        "Your environment sets AZURE_API_KEY, AZURE_RESOURCE_NAME, GITHUB_TOKEN, which OpenCode"
    )


def test_the_model_used_last_counts_while_no_setting_chooses_one(tmp_path: Path) -> None:
    """As it does for OpenCode: a model in its settings comes first."""
    files = {
        ".local/state/opencode/model.json": LAST_USED,
        ".config/opencode/opencode.json": '{"model": "groq/any"}',
    }
    found = launched("opencode", tmp_path, {"AZURE_API_KEY": "k"}, files=files)
    assert (found.env, found.refusals) == ({}, ())
    assert ["AZURE_API_KEY" in each for each in found.notices] == [True]
    for damaged in ("[]", "{", '{"recent": 1}', '{"recent": [1]}', '{"recent": []}'):
        home = tmp_path / "damaged"
        files = {".local/state/opencode/model.json": damaged}
        (sentence,) = launched("opencode", home, {"AZURE_API_KEY": "k"}, files=files).refusals
        assert "no model is chosen" in sentence


@pytest.mark.parametrize(
    ("agent", "files", "name", "setting"),
    [
        ("opencode", {"opencode.json": '{"model": "azure/x"}'}, "AZURE_API_KEY", "model"),
        ("pi", {".pi/settings.json": '{"defaultProvider": "amazon-bedrock"}'},
         "AWS_BEARER_TOKEN_BEDROCK", "defaultProvider"),
        ("claude", {".claude/settings.json": '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}'},
         "AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_USE_BEDROCK"),
        ("codex", {".codex/config.toml": 'model_provider = "amazon-bedrock"'},
         "AWS_BEARER_TOKEN_BEDROCK", "model_provider"),
    ],
)  # fmt: skip
def test_a_key_for_what_a_project_chooses_stops_the_launch(
    agent: str, files: Mapping[str, str], name: str, setting: str, tmp_path: Path
) -> None:
    """The agent would obey the project, without the key that it has outside the sandbox."""
    (file,) = files
    below = {f"project/{file}": text for file, text in files.items()}
    found = launched(agent, tmp_path, {name: SECRET}, files=below)
    assert found.env == {}
    (sentence,) = found.refusals
    assert sentence.startswith(f"{file} sets {setting}, for which ")
    assert f" uses {name}. A project's settings bring nothing into the sandbox" in sentence
    given = launched(agent, tmp_path, {}, files=below, **{name: "k"})
    assert given.refusals == ()


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_settings_in_the_repository_above_the_project_are_named(agent: str, tmp_path: Path) -> None:
    """The agent reads them outside the sandbox, which has the project alone."""
    name = AGENTS[agent].project_files[0]
    files = {f"repository/{name}": "", name: "", f"repository/below/between/{name}": ""}
    assert launched(agent, tmp_path, {}, files=files).notices == ()
    project = tmp_path / "repository" / "below" / "between" / "project"
    (tmp_path / "repository" / ".git").mkdir()

    def notices() -> tuple[str, ...]:
        return agent_environment(
            AGENTS[agent],
            {},
            home=tmp_path,
            project=project,
            of_person=LaunchSettings(),
            of_project=LaunchSettings(),
            args=(),
            contained=True,
        ).notices

    (sentence,) = notices()
    between, above = (f"{each}/{name}" for each in (project.parent, tmp_path / "repository"))
    assert sentence.startswith(f"Not in the sandbox: {between}, {above}. ")
    (project / ".git").mkdir(parents=True)
    assert notices() == ()


def test_an_env_file_above_the_project_is_named_if_it_chooses_something(tmp_path: Path) -> None:
    """Gemini CLI's: it reads the nearest one, wherever that is."""
    home, project = tmp_path / "home", tmp_path / "above" / "between" / "project"
    project.mkdir(parents=True)

    def notices() -> tuple[str, ...]:
        return agent_environment(
            AGENTS["gemini"],
            {},
            home=home,
            project=project,
            of_person=LaunchSettings(),
            of_project=LaunchSettings(),
            args=(),
            contained=True,
        ).notices

    file = tmp_path / "above" / ".env"
    file.write_text(f"DATABASE={SECRET}\n")
    assert notices() == ()
    file.write_text(f"GEMINI_MODEL={SECRET}\n")
    (sentence,) = notices()
    assert sentence.startswith(
        f"Not in the sandbox: {file}. Outside, Gemini CLI takes GEMINI_MODEL "
    )
    assert SECRET not in sentence
    (project / ".env").write_text("")
    assert notices() == ()


def test_a_key_that_may_be_in_the_keyring_stops_the_launch(tmp_path: Path) -> None:
    """Goose's, unless the environment or its file of secrets has it."""
    files = {".config/goose/config.yaml": "GOOSE_PROVIDER: mistral\n"}
    (sentence,) = launched("goose", tmp_path, {}, files=files).refusals
    assert sentence.startswith(
        "~/.config/goose/config.yaml sets a provider that needs MISTRAL_API_KEY, for which Goose uses its keyring. "
    )
    assert launched("goose", tmp_path, {"MISTRAL_API_KEY": "k"}).refusals == ()
    assert launched("goose", tmp_path, {}, MISTRAL_API_KEY="k").refusals == ()
    needless = launched("goose", tmp_path, {"GOOSE_PROVIDER": "litellm"})
    assert needless.refusals == ()
    assert ["may need LITELLM_API_KEY" in each for each in needless.notices] == [True]
    given = launched("goose", tmp_path, {"GOOSE_PROVIDER": "litellm", "LITELLM_API_KEY": "k"})
    assert given.notices == ()
    secrets = {".config/goose/secrets.yaml": "MISTRAL_API_KEY: k\n"}
    assert launched("goose", tmp_path, {}, files=secrets).refusals == ()


@pytest.mark.parametrize(
    ("provider", "key"), [("databricks", "DATABRICKS_TOKEN"), ("snowflake", "SNOWFLAKE_TOKEN"),
                          ("azure_openai", "AZURE_OPENAI_API_KEY"), ("avian", "AVIAN_API_KEY"),
                          ("ollama_cloud", "OLLAMA_CLOUD_API_KEY"), ("routstr", "ROUTSTR_API_KEY"),
                          ("tanzu_ai", "TANZU_AI_API_KEY"), ("venice", "VENICE_API_KEY"),
                          ("zai", "ZHIPU_API_KEY"), ("mine", "MY_KEY")],
)  # fmt: skip
def test_no_other_login_stands_in_for_the_key_of_gooses_provider(
    provider: str, key: str, tmp_path: Path
) -> None:
    """With the key, a login beside it changes nothing; a provider of one's own may need none."""
    own = '{"name": "mine", "api_key_env": "MY_KEY"}'
    files = {".config/goose/custom_providers/mine.json": own, ".config/goose/databricks": ""}
    chosen = {"GOOSE_PROVIDER": provider}
    refused = launched("goose", tmp_path, chosen, files=files).refusals
    assert any(
        f"a provider that needs {key}, for which Goose uses its keyring" in each for each in refused
    )
    assert launched("goose", tmp_path, {**chosen, key: "k"}, files=files).refusals == ()
    secrets = {**files, ".config/goose/secrets.yaml": f"{key}: k\n"}
    assert launched("goose", tmp_path, chosen, files=secrets).refusals == ()
    free = own.replace("}", ', "requires_auth": false}')
    files = {
        **secrets,
        ".config/goose/secrets.yaml": "",
        ".config/goose/custom_providers/mine.json": free,
    }
    refused = launched("goose", tmp_path, chosen, files=files).refusals
    assert (refused == ()) == (provider == "mine")


def test_a_part_of_an_address_alone_stops_nothing(tmp_path: Path) -> None:
    """Other programs have their own use for it, and with it alone no provider can be asked."""
    env = {"CLOUDFLARE_ACCOUNT_ID": "mine", "ANTHROPIC_API_KEY": "k"}
    assert launched("pi", tmp_path, env).refusals == ()


def test_a_model_without_its_provider_is_a_choice(tmp_path: Path) -> None:
    """Of Pi's, which finds the provider itself: what others would take is named, and stops nothing."""
    found = launched("pi", tmp_path, {"HF_TOKEN": SECRET}, "--model", "any")
    assert (found.env, found.refusals) == ({}, ())
    assert ["HF_TOKEN" in each for each in found.notices] == [True]


@pytest.mark.parametrize(
    ("agent", "path", "text", "name"),
    [
        ("opencode", "/etc/opencode/opencode.json", '{"model": "azure/x"}', "model"),
        ("goose", "/etc/goose/config.yaml", "GOOSE_PROVIDER: openai\n", "GOOSE_PROVIDER"),
        ("gemini", "/etc/gemini-cli/settings.json", '{"model": {"name": "x"}}', "model.name"),
    ],
)
def test_settings_for_all_users_count(agent: str, path: str, text: str, name: str) -> None:
    """The sandbox has those of this system, and they choose as the person's own do."""
    assert PurePosixPath(path) in AGENTS[agent].settings_paths({})
    context = PlanContext(
        relay="", launch_dir=PurePosixPath("/"), env={}, settings={path: text}, contained=True
    )
    (found,) = (each for each in AGENTS[agent].route_settings(context) if each.name == name)
    assert (found.where, found.from_project) == (path, False)


def test_an_organization_of_an_account_stops_the_launch(tmp_path: Path) -> None:
    """OpenCode's: it brings settings and a token, and is in its database; the account alone brings none."""
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    tables = files("aileron_core.launch.agents").joinpath("opencode_tables.sql").read_text("utf-8")
    with contextlib.closing(sqlite3.connect(folder / "opencode.db")) as database:
        database.executescript(tables)
        database.execute("INSERT INTO account_state VALUES (1, NULL, NULL)")
        database.commit()
        assert launched("opencode", tmp_path, {}).refusals == ()
        database.execute("UPDATE account_state SET active_org_id = 'org'")
        database.commit()
        (sentence,) = launched("opencode", tmp_path, {}).refusals
    assert sentence.startswith(
        "~/.local/share/opencode/opencode.db sets account_state.active_org_id"
    )
    assert "opencode console logout" in sentence
    (folder / "opencode.db").write_text("damaged")
    assert launched("opencode", tmp_path, {}).refusals == ()


def test_without_a_sandbox_the_agent_gets_everything(tmp_path: Path) -> None:
    """Nothing is refused, and nothing is left out but Aileron's own variables."""
    env = {"AWS_PROFILE": "work", "CLAUDE_CODE_USE_BEDROCK": "1", "AILERON_HOME": "x"}
    found = agent_environment(
        AGENTS["claude"],
        env,
        home=tmp_path,
        project=tmp_path,
        of_person=LaunchSettings(),
        of_project=LaunchSettings(),
        args=(),
        contained=False,
    )
    assert found.refusals == ()
    assert {*found.env} == {"AWS_PROFILE", "CLAUDE_CODE_USE_BEDROCK"}


@pytest.mark.parametrize(
    ("agent", "args", "files", "env", "names"),
    [
        (
            "codex",
            (),
            {
                ".codex/config.toml": (
                    'model_provider = "amazon-bedrock"\n'
                    '[model_providers.amazon-bedrock.aws]\nregion = "eu-central-1"\n'
                )
            },
            {"AWS_ACCESS_KEY_ID": SECRET},
            "AWS_ACCESS_KEY_ID",
        ),
        (
            "codex",
            (),
            {".codex/config.toml": 'cli_auth_credentials_store = "auto"\n'},
            {},
            "cli_auth_credentials_store",
        ),
        (
            "gemini",
            (),
            {".gemini/settings.json": ACCOUNT},
            {"GOOGLE_APPLICATION_CREDENTIALS": "/elsewhere"},
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            "gemini",
            (),
            {".gemini/settings.json": '{"security": {"auth": {"selectedType": "$MY_LOGIN"}}}'},
            {"MY_LOGIN": "vertex-ai", "GOOGLE_APPLICATION_CREDENTIALS": "/elsewhere"},
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        ("claude", (), {".config/anthropic/default.json": "{}"}, {}, "~/.config/anthropic"),
        (
            "goose",
            ("run", "--provider", "github_copilot"),
            {".config/goose/githubcopilot/info.json": "{}"},
            {},
            "~/.config/goose/githubcopilot",
        ),
        (
            "goose",
            ("run", "--provider", "github_copilot"),
            {},
            {"GITHUB_COPILOT_HOST": "https://elsewhere"},
            "GITHUB_COPILOT_HOST",
        ),
        ("goose", ("run", "--provider", "tetrate"), {}, {}, "TETRATE_API_KEY"),
        (
            "pi",
            ("--model", "cloudflare-ai-gateway/any"),
            {},
            {"CLOUDFLARE_GATEWAY_ID": "mine"},
            "CLOUDFLARE_GATEWAY_ID",
        ),
    ],
)
def test_a_login_or_an_address_that_is_elsewhere_stops_the_launch(
    agent: str,
    args: tuple[str, ...],
    files: Mapping[str, str],
    env: Mapping[str, str],
    names: str,
    tmp_path: Path,
) -> None:
    (sentence,) = launched(agent, tmp_path, env, *args, files=files).refusals
    assert names in sentence
    assert SECRET not in sentence


@pytest.mark.parametrize(
    ("agent", "args", "files"),
    [
        (
            "codex",
            ("-pwork",),
            {
                ".codex/work.config.toml": (
                    'model_provider = "mine"\n[model_providers.mine]\nenv_key = "MY_KEY"\n'
                )
            },
        ),
        (
            "codex",
            (
                "-c", 'model_providers.mine.env_key="MY_KEY"',
                "-c", 'model_providers.mine.base_url="https://x"', "-c", "model_provider=mine",
            ),
            {},
        ),
        (
            "gemini",
            (),
            {".gemini/settings.json": '{"model": {"name": "${MY_KEY:-usual}"}, "other": "$OTHER"}'},
        ),
    ],
)  # fmt: skip
def test_a_variable_that_its_settings_name_is_carried(
    agent: str, args: tuple[str, ...], files: Mapping[str, str], tmp_path: Path
) -> None:
    """However they are put together; of Gemini CLI's only those of the model and the login."""
    found = launched(agent, tmp_path, {"MY_KEY": "mine", "OTHER": SECRET}, *args, files=files)
    assert found.refusals == ()
    assert found.env.get("MY_KEY") == "mine"
    assert "OTHER" not in found.env


def test_settings_of_all_users_count_wherever_they_are_split() -> None:
    """Claude Code's folder of them, and Gemini CLI's defaults."""
    claude, gemini = (AGENTS[each].settings_paths({}, ()) for each in ("claude", "gemini"))
    assert PurePosixPath("/etc/claude-code/managed-settings.d/*.json") in claude
    assert PurePosixPath("/etc/gemini-cli/system-defaults.json") in gemini


_ELSEWHERE = {
    "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_SCOPE",
    "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_WORKSPACE_ID", "CLAUDE_CODE_FEDERATION_CACHE_DIR",
    "CLAUDE_CODE_HOST_CREDS_FILE", "CLAUDE_CODE_OAUTH_CLIENT_ID", "CLAUDE_CODE_OAUTH_SCOPES",
    "CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST", "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
    "CLAUDE_SESSION_INGRESS_TOKEN_FILE",
}  # fmt: skip
_LOGIN = {".config/anthropic/default.json": "{}"}
_AT_AWS, _AT_VERTEX = {"CLAUDE_CODE_USE_BEDROCK": "1"}, {"CLAUDE_CODE_USE_VERTEX": "1"}
_AT_FOUNDRY = {"CLAUDE_CODE_USE_FOUNDRY": "1"}
_AWS_LOGIN = {"AWS_PROFILE": "work", "AWS_ROLE_ARN": "role"}
_AWS_FILES = {
    ".aws/config": "",
    ".claude/settings.json": '{"awsAuthRefresh": "/x", "awsCredentialExport": "/x"}',
}
_GCP_FILES = {".config/gcloud/x": "", ".claude/settings.json": '{"gcpAuthRefresh": "/x"}'}


@pytest.mark.parametrize(
    ("env", "files", "instead"),
    [
        (dict.fromkeys(_ELSEWHERE, "x"), _LOGIN,
         ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")),
        ({}, {".claude/settings.json": '{"apiKeyHelper": "/x"}'},
         ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
        ({**_AT_AWS, **_AWS_LOGIN}, _AWS_FILES,
         ("AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_MANTLE_AUTH",
          "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH", "ANTHROPIC_AWS_API_KEY")),
        ({**_AT_VERTEX, "GOOGLE_APPLICATION_CREDENTIALS": "/x", "CLOUDSDK_CONFIG": "/x"}, _GCP_FILES,
         ("CLAUDE_CODE_SKIP_VERTEX_AUTH", "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH")),
        (_AT_VERTEX, _GCP_FILES,
         ("CLAUDE_CODE_SKIP_VERTEX_AUTH", "CLAUDE_CODE_SKIP_ANTHROPIC_GOOGLE_CLOUD_AUTH")),
        ({**_AT_VERTEX, "GOOGLE_CLOUD_PROJECT": "x", "GCLOUD_PROJECT": "x"}, {},
         ("ANTHROPIC_VERTEX_PROJECT_ID",)),
        ({**_AT_FOUNDRY, "AZURE_CLIENT_ID": "x"}, {".azure/x": ""},
         ("ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_AUTH_TOKEN", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH")),
    ],
    ids=["login", "helper", "aws", "google", "gcloud", "project", "azure"],
)  # fmt: skip
def test_what_makes_a_login_needless_lets_claude_start(
    env: Mapping[str, str], files: Mapping[str, str], instead: tuple[str, ...], tmp_path: Path
) -> None:
    """Each of its own keys, and each switch for a proxy that signs; without them each setting is refused."""
    refused = launched("claude", tmp_path, env, files=files).refusals
    for name in {*env} - {*_AT_AWS, *_AT_VERTEX, *_AT_FOUNDRY}:
        assert any(f"sets {name}, " in each for each in refused), name
    assert refused
    for name in instead:
        assert launched("claude", tmp_path, {**env, name: "1"}).refusals == (), name
