"""Launching Pi: it has no MCP client and no permissions, so an extension of Aileron's is the client."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from aileron_core.launch.model_traffic import bypass_proxies
from aileron_core.launch.plan import (
    CLOUD_LOGINS,
    CLOUDS,
    ITS_OWN_TOOLS,
    PROVIDER_NAMES,
    PROVIDERS,
    Agent,
    AgentFolder,
    ModelTraffic,
    Plan,
    PlanContext,
    ProviderName,
)
from aileron_core.launch.settings_files import (
    PROVIDER_HOSTS,
    home_path,
    json_table,
    option_value,
    table_at,
)

_FILE = "aileron-pi.mjs"
_OWN_TOOLS = ("bash", "edit", "find", "grep", "ls", "powershell", "read", "write")
_SUFFIXES = {"anthropic": "", "openai": "/v1", "google": "/v1beta"}
"""What stands between a provider's address and the paths that Pi puts behind it."""


def _plan(context: PlanContext) -> Plan:
    """Return `pi -e` with the extension, which knows the relay and no secret."""
    text = files("aileron_core.launch.agents").joinpath("pi_extension.mjs").read_text("utf-8")
    text = text.replace("__RELAY__", json.dumps(context.relay), 1)
    through = _traffic(context).providers if context.gateway is not None else ()
    bases = {
        name: f"{context.gateway}{_SUFFIXES[name]}"
        for name, provider in PROVIDER_NAMES.items()
        if provider in through
    }
    text = text.replace("__BASES__", json.dumps(bases), 1)
    instead = context.builtins == "instead"
    text = text.replace("__REFUSED__", json.dumps(_OWN_TOOLS if instead else ()), 1)
    env = {"PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
    if bases:
        host = urlsplit(context.gateway or "").hostname or ""
        env |= bypass_proxies({**context.env, "HTTP_PROXY": _proxy(context)}, host)
    return Plan(
        argv=(
            "pi",
            "-e",
            f"{context.launch_dir}/{_FILE}",
            *(("--no-builtin-tools",) if instead else ()),
            *context.all_args,
        ),
        env=env,
        files={_FILE: text},
    )


def _settings_paths(env: Mapping[str, str], args: tuple[str, ...]) -> tuple[PurePosixPath, ...]:
    """Return its settings and its list of models; a login passes just like an API key."""
    own = home_path(env, "PI_CODING_AGENT_DIR", ".pi/agent")
    return (own / "auth.json", own / "settings.json", own / "models.json")


def _own_login(context: PlanContext, name: str) -> str | None:
    """Return a login, or a key in its settings or arguments: these count over its environment."""
    if option_value(context.all_args, "--api-key") is not None:
        return "its arguments contain --api-key"
    for token in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"):
        if name == "anthropic" and context.env.get(token):
            return f"{token} is set"
    for path, text in context.settings.items():
        table = json_table(text) or {}
        if path.endswith("/auth.json") and table_at(table, name):
            return f"{path} has a login for {name}"
        if table_at(table, "providers", name).get("apiKey"):
            return f"{path} sets providers.{name}.apiKey"
    return None


def _traffic(context: PlanContext) -> ModelTraffic:
    """Let Anthropic, OpenAI and Google pass, except those with a configured address."""
    through = set(PROVIDER_NAMES.values())
    past: list[str] = []
    logins: dict[ProviderName, str] = {
        provider: login
        for name, provider in PROVIDER_NAMES.items()
        if (login := _own_login(context, name)) is not None
    }
    chosen = ""
    for path, text in context.settings.items():
        if path.endswith("/auth.json"):
            continue
        table = json_table(text)
        if table is None:
            return ModelTraffic(frozenset(), (f"{path} cannot be parsed",), logins)
        for name, provider in PROVIDER_NAMES.items():
            # Whatever it is: this file counts over what an extension registers.
            if table_at(table, "providers", name).get("baseUrl"):
                past.append(f"{path} sets providers.{name}.baseUrl")
                through.discard(provider)
        chosen = str(table.get("defaultProvider") or chosen)
    model = (option_value(context.all_args, "--model") or "").partition("/")
    chosen = (
        option_value(context.all_args, "--provider") or (model[0] if model[1] else "") or chosen
    )
    if chosen not in ("", *PROVIDER_NAMES):
        past.append(f"the gateway does not support its provider {chosen}")
    return ModelTraffic(frozenset(through), tuple(past), logins)


def _overrides(name: str, text: str) -> tuple[str, ...]:
    """Report extensions, which would run inside Pi."""
    return (f"{name} lists extensions",) if '"extensions"' in text else ()


def _proxy(context: PlanContext) -> str:
    """Return the proxy that it uses, from its settings or the environment; empty if none."""
    tables = [json_table(text) or {} for text in context.settings.values()]
    own = [str(table["httpProxy"]) for table in tables if table.get("httpProxy")]
    return own[-1] if own else context.env.get("HTTP_PROXY", "")


PI = Agent(
    name="pi",
    title="Pi",
    package="npm install -g @earendil-works/pi-coding-agent",
    tested_versions=("0.87.1", "0.74.2"),
    folders=(
        AgentFolder(
            path=PurePosixPath(".pi/agent"),
            settings=(
                "settings.json", "models.json", "models-store.json", "keybindings.json", "trust.json",
                "*.md", "agents", "extensions", "skills", "prompts", "themes", "tools",
            ),
            credentials=("auth.json",),
            read_only=("bin", "npm", "git/*/*/*"),
            state=("sessions",),
            conversations=("sessions/*/*.jsonl",),
        ),
    ),
    variables=("PI_*", *PROVIDERS, *CLOUDS),
    other_variables=(*CLOUD_LOGINS, "CLOUDFLARE_*", "COPILOT_GITHUB_TOKEN", "HF_TOKEN", "*_API_KEY"),
    variable_keys=("*apiKey", "key", "*.key", "*headers.*", "*env.*"),
    hosts=PROVIDER_HOSTS,
    key_variables={
        "anthropic": ("ANTHROPIC_API_KEY",), "openai": ("OPENAI_API_KEY",), "gemini": ("GEMINI_API_KEY",),
    },
    project_files=(".pi/settings.json",),
    checks=("extensions", "packages*"),
    denied_args=(
        "-e", "--extension", "--no-extensions", "--system-prompt", "--append-system-prompt",
        "--tools", "-t", "--exclude-tools", "--no-tools", "--provider", "--api-key", "--skill", "--prompt-template",
        "--theme", "--session", "--session-dir", "--session-id", "--fork", "--export", "--continue",
        "-c", "--resume", "-r", "--mode", "--rpc", "--print", "-p",
    ),
    controls=(
        "Aileron's actions are available as tools of an extension that exists only for this run.",
        "A call can take any time: Pi has no time limit for tools.",
        "Telemetry is off for this run.",
    ),
    not_controlled=(
        ITS_OWN_TOOLS,
        "Its other tools: Pi never asks before it uses one. Extensions in your own ~/.pi run alongside Aileron's.",
    ),
    plan=_plan,
    settings_paths=_settings_paths,
    traffic=_traffic,
    overrides=_overrides,
)  # fmt: skip
