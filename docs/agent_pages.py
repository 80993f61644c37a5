"""The pages of docs/agents, made from the modules that wire each agent."""

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from aileron_core.launch.agents import AGENTS
from aileron_core.launch.plan import Agent, PlanContext

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
    yield "Made from its module by `docs/generate.py`. What every launch does is described in [launch.md](../launch.md)."
    yield ""
    yield f"    aileron launch {agent.name}"
    yield f"    aileron launch {agent.name} -- ITS OWN ARGUMENTS"
    yield ""
    versions = ", ".join(agent.tested_versions)
    yield f"Install it with `{agent.package}`. This wiring was tried with {versions}; `aileron doctor {agent.name}` says what you have."
    yield ""
    yield "## What Aileron controls"
    yield ""
    yield from (f"* {sentence}" for sentence in (*agent.controls, agent.passes_gateway))
    yield ""
    yield "## What stays outside"
    yield ""
    yield from (f"* {sentence}" for sentence in (*agent.not_controlled, agent.bypasses_gateway))
    yield ""
    yield from _wiring(agent)
    yield from _traffic(agent)
    yield from _folders(agent)
    yield from _project(agent)
    yield from _undo(agent)


def _wiring(agent: Agent) -> Iterator[str]:
    relay = str(PRIVATE / "bin" / "aileron-mcp")
    plan = agent.plan(
        PlanContext(
            relay=relay,
            launch_dir=PRIVATE,
            env=EXAMPLE_KEYS,
            settings=EXAMPLE_SETTINGS.get(agent.name, {}),
            gateway=GATEWAY,
            contained=True,
        )
    )
    yield "## What is set, exactly"
    yield ""
    yield f"For this one run; `aileron launch {agent.name} --dry-run` prints it for your machine. `{PRIVATE}` is a folder of the launch alone."
    yield ""
    yield f"    {shlex.join(plan.argv)}"
    yield ""
    rows = [f"| `{name}` | `{_cell(value)}` |" for name, value in sorted(plan.env.items())]
    rows += [f"| the file `{PRIVATE}/{name}` | gone at the end |" for name in plan.files]
    rows += [
        f"| the file `~/{each.path}` | in the sandbox's copy; without a sandbox in yours, removed at the end |"
        for each in plan.injected_files
    ]
    if rows:
        yield "| also set | to |"
        yield "|---|---|"
        yield from rows
        yield ""


def _traffic(agent: Agent) -> Iterator[str]:
    names = ", ".join(
        f"`{path}`" if path.is_absolute() else f"`~/{path}`" for path in agent.settings_paths({})
    )
    yield "## Model traffic"
    yield ""
    yield f"Its base URL for this run begins with `{GATEWAY}`, the console's gateway: that passes what the agent sends, and what its model answers, byte for byte ([launch.md](../launch.md#model-traffic))."
    yield f"Before that is set, Aileron looks for another address, provider or login of yours: in your environment, in the arguments, in the project's settings, in {names}."
    yield "What it finds there is left alone, and a sentence says what goes past Aileron and why. `--no-gateway` leaves all of it alone."
    yield ""


def _folders(agent: Agent) -> Iterator[str]:
    yield "## Your own folders of it"
    yield ""
    yield "In the sandbox it gets a copy that ends with the session. Only a credential comes back, and only if it still has the same shape; its values are the agent's word."
    yield ""
    yield "| folder | not copied in | comes back |"
    yield "|---|---|---|"
    for folder in agent.folders:
        left = ", ".join(f"`{name}`" for name in folder.leave_out) or "none"
        back = ", ".join(f"`{name}`" for name in folder.credentials) or "nothing"
        yield f"| `~/{folder.path}` | {left} | {back} |"
    yield ""
    names = ", ".join(f"`{name}`" for name in agent.env_names)
    yield f"From your environment it gets, beside language and terminal: {names}."
    yield ""


def _project(agent: Agent) -> Iterator[str]:
    yield "## Files of a project"
    yield ""
    if agent.project_files:
        names = ", ".join(f"`{name}`" for name in agent.project_files)
        yield f"It reads {names}. Where one of them touches the wiring, the launch asks you before it starts, once for exactly these bytes."
    else:
        yield "It reads no settings from a project."
    yield ""
    denied = ", ".join(f"`{word}`" for word in sorted(agent.denied_args))
    yield f"A project's `aileron.toml` may not pass {denied}, nor an option whose name speaks of approval, permission, trust or a sandbox."
    yield ""


def _undo(agent: Agent) -> Iterator[str]:
    yield "## How to undo"
    yield ""
    yield f"There is nothing to undo: start `{agent.program}` by its own name, and it is as it was."
    additions = agent.plan(PlanContext(relay="", launch_dir=PRIVATE, env={})).injected_files
    for each in additions:
        yield f"If a launch without a sandbox was killed, `~/{each.path.parent}` may still be there. The next launch removes it, or you do."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
