"""The pages of docs/agents, made from the modules that wire each agent."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from agent_sentences import SENTENCES
from commands import BEGIN, END

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.plan import CLOUD_LOGINS, CLOUDS, PROVIDERS, Agent, Plan, PlanContext
from aileron_core.launch.project import DENIED_WORDS
from aileron_core.launch.variables import NEVER_CARRIED

PRIVATE = PurePosixPath("/run/aileron/private")
GATEWAY = "http://127.0.0.1:PORT/gw/TOKEN"
EXAMPLE_KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "...")
EXAMPLE_SETTINGS = {
    "gemini": {
        "~/.gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
    }
}


def agent_pages() -> dict[str, str]:
    """Return every page by its name under docs/agents."""
    return {f"{name}.md": "\n".join(_page(agent)) + "\n" for name, agent in AGENTS.items()}


def with_variables(page: str) -> str:
    """Return *page* with the patterns of variables between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    words = ", ".join(f"`{word}`" for word in DENIED_WORDS)
    text = (
        "Never carried, but for what the next paragraphs or the agent's own page name, and what `env` of "
        f"`[launch.AGENT]` in your `config.toml` sets: {_names(NEVER_CARRIED)}.\n\n"
        f"Of clouds, carried for every agent (a key for models alone, project, region, address): {_names(CLOUDS)}.\n\n"
        f"Of model providers, carried for OpenCode, Goose and Pi: {_names(PROVIDERS)}.\n\n"
        f"A project's `aileron.toml` may pass no option whose name contains {words}, and none that the agent's page lists."
    )
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _page(agent: Agent) -> Iterator[str]:
    yield f"# {agent.title}"
    yield ""
    yield "Made from the code. [launch.md](../launch.md) says what every launch does."
    yield ""
    yield f"    aileron launch {agent.name} [-- AGENT ARGUMENTS]"
    yield ""
    versions = " and ".join(agent.tested_versions)
    yield f"Install it with `{agent.package}`. Tested with version {versions}; `aileron doctor {agent.name}` shows yours."
    yield ""
    yield "## What Aileron controls"
    yield ""
    yield from (
        f"* {sentence}" for sentence in (*agent.controls, SENTENCES[agent.name].passes_gateway)
    )
    yield ""
    yield from _wiring(agent)
    yield "## What Aileron does not control"
    yield ""
    yield from (
        f"* {sentence}"
        for sentence in (*agent.not_controlled, SENTENCES[agent.name].bypasses_gateway)
    )
    yield ""
    yield from _own_tools(agent)
    yield from _variables(agent)
    yield from _folders(agent)
    yield from _project(agent)


def _plan(agent: Agent) -> Plan:
    return agent.plan(
        PlanContext(
            relay=str(PRIVATE / "bin" / "aileron-mcp"),
            launch_dir=PRIVATE,
            project=PurePosixPath("/project"),
            env={**EXAMPLE_KEYS},
            settings=EXAMPLE_SETTINGS.get(agent.name, {}),
            gateway=GATEWAY,
            contained=True,
        )
    )


def _own_tools(agent: Agent) -> Iterator[str]:
    yield "## Its own tools"
    yield ""
    yield "With `--intercept-builtins`:"
    yield ""
    yield from (f"* {sentence}" for sentence in SENTENCES[agent.name].own_tools)
    yield ""


def _wiring(agent: Agent) -> Iterator[str]:
    plan = _plan(agent)
    yield "For this run only, in the launch's private folder (`--dry-run` prints it for your machine):"
    yield ""
    yield f"    {shlex.join(plan.argv)}"
    yield ""
    found = [f"`{name}={value}`" for name, value in sorted(plan.env.items())]
    found += [
        f"the file `~/{each.path}` (without a sandbox in your own folder, and removed at the end)"
        for each in plan.injected_files
    ]
    if found:
        yield f"With {', '.join(found)}."
        yield ""


def _variables(agent: Agent) -> Iterator[str]:
    takes_all = PROVIDERS[0] in agent.variables
    shared = {*CLOUDS, *CLOUD_LOGINS, *(PROVIDERS if takes_all else ())}
    own = [each for each in agent.variables if each not in shared]
    sets = "clouds and model providers" if takes_all else "clouds"
    yield "## Model, provider and key"
    yield ""
    yield f"From your environment it takes {_names(own)}, and [those of {sets}](../variables.md), as it does outside."
    if agent.variable_keys:
        yield f"Variables that {_names(agent.variable_keys)} in your settings name are carried too."
    asked = [each for each in agent.other_variables if each not in shared]
    if asked or agent.other_logins:
        yield f"Named at the launch and not carried: {_names([*asked, *(f'~/{each}' for each in agent.other_logins)])}."
    yield ""
    yield "Its base URL is [the console's gateway](../launch.md#model-traffic), unless you or the project have chosen another address, provider or login."
    hosts = ", ".join(f"`{host}`" for host in agent.hosts)
    yield f"With `--sandbox=hosts` it reaches {hosts}, and what you list."
    yield ""


def _folders(agent: Agent) -> Iterator[str]:
    yield f"## Your {agent.title} folders"
    yield ""
    yield "[What the sandbox has of them](../launch.md#the-agents-history-and-login), and nothing else:"
    yield ""
    for folder in agent.folders:
        kept = [*folder.state, *folder.state_files]
        kept += [str(folder.database.path)] if folder.database else []
        yield f"* `~/{folder.path}`: copied {_names(folder.settings) or 'as it is'}" + "".join(
            f"; {how} {_names(names)}"
            for how, names in (
                ("copied and back", folder.credentials),
                ("read-only", folder.read_only),
                ("kept", kept),
            )
            if names
        )
    yield ""


def _names(patterns: Iterable[str]) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns)


def _project(agent: Agent) -> Iterator[str]:
    yield "## Programs and project"
    yield ""
    more = f", and in {_names(agent.program_files)}" if agent.program_files else ""
    yield f"[Programs and files](../launch.md#programs-that-your-settings-name) that these settings name are looked for{more}. Checks, by their keys: {_names(each.strip('*.') for each in agent.checks)}."
    if agent.project_files:
        yield f"If {_names(agent.project_files)} in the project affects the connection to Aileron, the launch asks you to accept it, and asks again when it changes."
    denied = ", ".join(f"`{word}`" for word in sorted(agent.denied_args))
    yield f"A project's `aileron.toml` may not pass {denied}."
    additions = agent.plan(
        PlanContext(relay="", launch_dir=PRIVATE, env={}, project=PRIVATE)
    ).injected_files
    for each in additions:
        yield f"If a launch without a sandbox was killed, `~/{each.path.parent}` may still exist; the next launch removes it."
    yield f"To run it without Aileron, start `{agent.name}`: there is nothing to undo."
