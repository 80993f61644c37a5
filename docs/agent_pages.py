"""The pages of docs/agents, made from the modules that wire each agent."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.plan import Agent, Builtins, Plan, PlanContext
from aileron_core.launch.project import DENIED_WORDS
from aileron_core.launch.routes import Route

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


def _page(agent: Agent) -> Iterator[str]:
    yield f"# {agent.title}"
    yield ""
    yield "`docs/generate.py` makes this page from the code. [launch.md](../launch.md) describes what every launch does."
    yield ""
    yield f"    aileron launch {agent.name}"
    yield f"    aileron launch {agent.name} -- AGENT ARGUMENTS"
    yield ""
    versions = " and ".join(agent.tested_versions)
    yield f"Install it with `{agent.package}`. Aileron is tested with version {versions}; `aileron doctor {agent.name}` shows the version that you have."
    yield ""
    yield "## What Aileron controls"
    yield ""
    yield from (f"* {sentence}" for sentence in (*agent.controls, agent.passes_gateway))
    yield ""
    yield "## What Aileron does not control"
    yield ""
    yield from (f"* {sentence}" for sentence in (*agent.not_controlled, agent.bypasses_gateway))
    yield ""
    yield from _wiring(agent)
    yield from _own_tools(agent)
    yield from _traffic(agent)
    yield from _folders(agent)
    yield from _routes(agent)
    yield from _project(agent)
    yield from _undo(agent)


def _plan(agent: Agent, builtins: Builtins = "off") -> Plan:
    return agent.plan(
        PlanContext(
            relay=str(PRIVATE / "bin" / "aileron-mcp"),
            launch_dir=PRIVATE,
            env={**EXAMPLE_KEYS},
            settings=EXAMPLE_SETTINGS.get(agent.name, {}),
            gateway=GATEWAY,
            contained=True,
            builtins=builtins,
        )
    )


def _own_tools(agent: Agent) -> Iterator[str]:
    usual, instead = _plan(agent), _plan(agent, "instead")
    yield "## Its own tools"
    yield ""
    yield f"With `--intercept-builtins`, Aileron's Read, Write, Edit, Bash, Glob and Grep stand in place of {agent.title}'s own tools:"
    yield ""
    yield from (f"* {sentence}" for sentence in agent.own_tools)
    yield ""
    if words := [word for word in instead.argv if word not in usual.argv]:
        yield f"The command has these arguments in addition: `{shlex.join(words)}`"
        yield ""


def _wiring(agent: Agent) -> Iterator[str]:
    plan = _plan(agent)
    yield "## What Aileron sets"
    yield ""
    yield f"Everything below applies to this run only. `aileron launch {agent.name} --dry-run` prints it for your machine. `{PRIVATE}` is the launch's private folder."
    yield ""
    yield f"    {shlex.join(plan.argv)}"
    yield ""
    rows = [f"| `{name}` | `{_cell(value)}` |" for name, value in sorted(plan.env.items())]
    rows += [f"| the file `{PRIVATE}/{name}` | removed at the end |" for name in plan.files]
    rows += [
        f"| the file `~/{each.path}` | in the sandbox, written to the copy; without a sandbox, written to your own folder and removed at the end |"
        for each in plan.injected_files
    ]
    if rows:
        yield "| also set | value |"
        yield "|---|---|"
        yield from rows
        yield ""


def _traffic(agent: Agent) -> Iterator[str]:
    names = ", ".join(
        f"`{path}`" if path.is_absolute() else f"`~/{path}`" for path in agent.settings_paths({})
    )
    yield "## Model traffic"
    yield ""
    yield f"{agent.title}'s base URL for this run begins with `{GATEWAY}`, the console's gateway. The gateway forwards requests and answers byte for byte ([launch.md](../launch.md#model-traffic))."
    yield f"Before Aileron sets this, it checks whether you have chosen another address, provider or login: in your environment, the arguments, the project's settings, {names}."
    yield "If so, Aileron leaves your choice as it is, and the launch says what bypasses the gateway and why. With `--no-gateway`, Aileron changes none of this."
    yield ""


def _folders(agent: Agent) -> Iterator[str]:
    hosts = ", ".join(f"`{host}`" for host in agent.hosts)
    yield f"With `--sandbox=hosts`, {agent.title} reaches {hosts}, and what you list ([launch.md](../launch.md#--sandboxhosts))."
    yield ""
    yield f"## Your {agent.title} folders"
    yield ""
    yield f"In the sandbox, {agent.title} gets a copy of its settings, deleted when the session ends, and its own downloads read-only. It gets nothing else of these folders, however large they are."
    yield "Only a credential is copied back, and only if it still has the same format. Aileron does not verify its values."
    yield ""
    yield f"What the table calls kept is {agent.title}'s history. It is not that of your home: Aileron keeps it in its own home, for contained launches in the same project ([launch.md](../launch.md#the-agents-history-and-login))."
    if any(folder.database for folder in agent.folders):
        yield "Of its database, only the rows of conversations are kept ([launch.md](../launch.md#conversations-in-a-database))."
    yield ""
    yield "| folder | copied | read-only | copied back | kept |"
    yield "|---|---|---|---|---|"
    for folder in agent.folders:
        copied = _names((*folder.settings, *folder.credentials)) or "the file"
        yield f"| `~/{folder.path}` | {copied} | {_names(folder.read_only) or 'nothing'} | {_names(folder.credentials) or 'nothing'} | {_names((*folder.state, *folder.state_files, *([str(folder.database.path)] if folder.database else []))) or 'nothing'} |"
    yield ""


def _routes(agent: Agent) -> Iterator[str]:
    yield "## Model, provider and key"
    yield ""
    more = "".join(f" `{name}` too." for name in agent.env_names)
    yield f"From your environment, {agent.title} gets in the sandbox the language and terminal variables, the proxies, and what this table says.{more}"
    yield (
        "What chooses its model, where its requests go or with which key reaches it there, or the launch stops before the start and says why, or, where another provider is chosen, names what the sandbox lacks. A variable that you set for it in `config.toml` (`env` under "
        f"`[launch.{agent.name}]`) always reaches it. `--no-sandbox` gives it everything."
    )
    yield ""
    yield "| setting | where | chooses | in the sandbox |"
    yield "|---|---|---|---|"
    rows: dict[tuple[str, str, str], list[str]] = {}
    for route in agent.routes:
        key = (_SOURCES[route.source], route.chooses, _handling(route))
        rows.setdefault(key, []).append(route.name)
    for (where, chooses, handling), names in rows.items():
        listed = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
        yield f"| {_cell(listed)} | {where} | {_cell(chooses)} | {_cell(handling)} |"
    yield ""


_SOURCES = {"environment": "environment", "settings": "settings", "login": "your home"}


def _handling(route: Route) -> str:
    when = f" while {route.only_while.text}" if route.only_while is not None else ""
    if route.unless:
        when += f" unless one of these is set: {_names(route.unless)}"
    if route.runs_program:
        return f"carried{when} if the sandbox has the program, else refused: {route.refused}"
    choice = route.only_while.choice if route.only_while is not None else None
    open_choice = choice is not None and route.source == "environment"
    none = "while no model is chosen; named while another is" if open_choice else ""
    if route.refused:
        return f"{'named at the launch' if route.only_named else 'refused'}{when}: {route.refused}{f' Refused too {none}.' if none else ''}"
    also = "carried, and so are the variables that it names" if route.names_variables else "carried"
    return f"{also}{when}{f'; refused {none}' if none else ''}"


def _names(patterns: Iterable[str]) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns)


def _project(agent: Agent) -> Iterator[str]:
    yield "## Programs that your settings name"
    yield ""
    yield f"In a sandbox, Aileron looks for programs in {agent.program_settings}."
    yield "It mounts what it may, and names the others ([launch.md](../launch.md#programs-that-your-settings-name))."
    yield ""
    yield "## Project files"
    yield ""
    if agent.project_files:
        names = ", ".join(f"`{name}`" for name in agent.project_files)
        which = "one of them" if len(agent.project_files) > 1 else "it"
        yield f"{agent.title} reads {names}. If {which} affects its connection to Aileron, the launch asks you to accept the file before the agent starts, and asks again when the file changes."
    else:
        yield f"{agent.title} reads no settings from a project."
    yield ""
    words = ", ".join(f"`{word}`" for word in DENIED_WORDS)
    denied = ", ".join(f"`{word}`" for word in sorted(agent.denied_args))
    yield f"A project's `aileron.toml` may not pass {denied}, or an option whose name contains {words}."
    yield ""


def _undo(agent: Agent) -> Iterator[str]:
    yield "## How to undo"
    yield ""
    yield f"There is nothing to undo. Start `{agent.program}` directly to run it without Aileron."
    additions = agent.plan(PlanContext(relay="", launch_dir=PRIVATE, env={})).injected_files
    for each in additions:
        yield f"If a launch without a sandbox was killed, `~/{each.path.parent}` may still exist. The next launch removes it, or you can remove it yourself."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
