"""Launching Pi: it has no MCP client and no permissions, so an extension of Aileron's is the client."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from aileron_core.launch.agents.settings_files import home_path, json_table, option_value, table_at
from aileron_core.launch.model_traffic import bypass_proxies
from aileron_core.launch.plan import PROVIDER_NAMES, AgentFolder, ModelTraffic, Plan, PlanContext

_FILE = "aileron-pi.mjs"
_SUFFIXES = {"anthropic": "", "openai": "/v1", "google": "/v1beta"}
"""What stands between a provider's address and the paths that Pi puts behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pi:
    name: str = "pi"
    title: str = "Pi"
    program: str = "pi"
    package: str = "npm install -g @earendil-works/pi-coding-agent"
    tested_versions: tuple[str, ...] = ("0.87.1", "0.74.2")
    folders: tuple[AgentFolder, ...] = (
        AgentFolder(
            path=PurePosixPath(".pi"), credentials=("agent/auth.json",), leave_out=("sessions",)
        ),
    )
    env_names: tuple[str, ...] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_OAUTH_TOKEN",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "OPENROUTER_API_KEY",
    )
    project_files: tuple[str, ...] = (".pi/settings.json",)
    denied_args: tuple[str, ...] = (
        "-e", "--extension", "--no-extensions", "--system-prompt", "--append-system-prompt",
        "--tools", "-t", "--exclude-tools", "--no-tools", "--provider", "--api-key", "--skill", "--prompt-template",
        "--theme", "--session", "--session-dir", "--session-id", "--fork", "--export", "--continue",
        "-c", "--resume", "-r", "--mode", "--rpc", "--print", "-p",
    )  # fmt: skip
    controls: tuple[str, ...] = (
        ("Aileron's actions are available as tools of an extension that exists only for this run."),
        "A call can take any time: Pi has no time limit for tools.",
        "Telemetry is off for this run.",
    )
    not_controlled: tuple[str, ...] = (
        (
            "Its shell and file tools: in the sandbox they can reach the project; without it, "
            "everything you can."
        ),
        (
            "Its other tools: Pi never asks before it uses one. Extensions in your own ~/.pi run "
            "alongside Aileron's."
        ),
    )
    passes_gateway: str = (
        "Traffic to models of Anthropic, OpenAI and Google goes through the gateway."
    )
    bypasses_gateway: str = (
        "Traffic to other providers, or to a base URL of your own, bypasses the gateway."
    )

    def plan(self, context: PlanContext) -> Plan:
        """Return `pi -e` with the extension, which knows the relay and no secret."""
        text = files("aileron_core.launch.agents").joinpath("pi_extension.mjs").read_text("utf-8")
        text = text.replace("__RELAY__", json.dumps(context.relay), 1)
        through = self.traffic(context).providers if context.gateway is not None else ()
        bases = {
            name: f"{context.gateway}{_SUFFIXES[name]}"
            for name, provider in PROVIDER_NAMES.items()
            if provider in through
        }
        text = text.replace("__BASES__", json.dumps(bases), 1)
        env = {"PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
        if bases:
            host = urlsplit(context.gateway or "").hostname or ""
            env |= bypass_proxies({**context.env, "HTTP_PROXY": _proxy(context)}, host)
        return Plan(
            argv=(self.program, "-e", f"{context.launch_dir}/{_FILE}", *context.all_args),
            env=env,
            files={_FILE: text},
            call_seconds=float(context.call_seconds),
        )

    def settings_paths(self, env: Mapping[str, str]) -> tuple[PurePosixPath, ...]:
        """Return its settings and its list of models; a login passes just like an API key."""
        own = home_path(env, "PI_CODING_AGENT_DIR", ".pi/agent")
        return (own / "settings.json", own / "models.json")

    def traffic(self, context: PlanContext) -> ModelTraffic:
        """Let Anthropic, OpenAI and Google pass, except those with a configured address."""
        through = set(PROVIDER_NAMES.values())
        past: list[str] = []
        chosen = ""
        for path, text in context.settings.items():
            table = json_table(text)
            if table is None:
                return ModelTraffic(
                    providers=frozenset(), bypass_reasons=(f"{path} cannot be parsed",)
                )
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
        return ModelTraffic(providers=frozenset(through), bypass_reasons=tuple(past))

    def overrides(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Report extensions, which would run inside Pi."""
        return tuple(
            f"{name} lists extensions" for name, text in files.items() if '"extensions"' in text
        )


def _proxy(context: PlanContext) -> str:
    """Return the proxy that it uses, from its settings or the environment; empty if none."""
    tables = [json_table(text) or {} for text in context.settings.values()]
    own = [str(table["httpProxy"]) for table in tables if table.get("httpProxy")]
    return own[-1] if own else context.env.get("HTTP_PROXY", "")


PI = _Pi()
