"""What each agent's module makes of a launch."""

import json
import shlex

import pytest

from aileron_core.errors import InvalidRequest
from aileron_core.launch.agents import AGENTS
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
    assert merged["theme"] == "x"
    assert merged["mcp"]["mine"] == {"type": "local"}
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
