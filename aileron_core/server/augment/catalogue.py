"""Our tools beside an agent's own, each under a name that only one of them has. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from aileron_core.actions.arguments import input_schema
from aileron_core.actions.model import Action, is_builtin
from aileron_core.models.neutral import Tool
from aileron_core.server.tool_results import builtin_tools

OUR_PREFIX = "aileron_"
AGENT_PREFIX = "agent_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Our tools in one request: what the model is told, and what each name there means."""

    tools: tuple[Tool, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Our tool's name at the model -> its own."""
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    """An agent's tool's own name -> its name at the model."""
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The other way round."""

    def shown(self, name: str) -> str | None:
        """Return the agent's name for a tool of the model's; None for one of ours."""
        if name in self.names:
            return None
        return self.own_names.get(name, name)

    def is_ours(self, name: str) -> bool:
        return name in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Our tools as a conversation got them at its beginning: they stay the same, so that prompt caches hold."""

    tools: tuple[Tool, ...] = ()
    actions: Mapping[str, str] = field(default_factory=dict[str, str])
    """A tool's own name -> its action; the two tools that are no actions are not in it."""

    @classmethod
    def of(cls, actions: Iterable[Action], is_tool: Callable[[str, str], bool]) -> "Catalogue":
        """Make it from a session's actions, of which `[mcp] tools` says which are tools."""
        listed = [
            action
            for action in actions
            if is_builtin(action.name) or is_tool(action.name, action.tool_name)
        ]
        tools = [
            Tool(
                name=action.tool_name,
                description=action.description,
                schema={**input_schema(action)},
            )
            for action in listed
        ]
        tools += [
            Tool(name=each["name"], description=each["description"], schema=each["inputSchema"])
            for each in builtin_tools()
        ]
        return cls(tools=tuple(tools), actions={action.tool_name: action.name for action in listed})

    def offer(self, agent_names: Iterable[str], *, kept: Iterable[str] = ()) -> Offer:
        """Return our tools beside those that an agent names itself.

        An agent's tool that begins with our prefix gets another name, so that ours can always have it.

        Args:
            kept: names of the agent's that cannot be changed.
        """
        fixed = set(kept)
        agents = set(agent_names)
        own_names: dict[str, str] = {}
        taken = set(agents)
        for name in sorted(agents):
            if name.startswith(OUR_PREFIX) and name not in fixed:
                there = _free(AGENT_PREFIX, name, taken)
                taken.add(there)
                own_names[there] = name
        renamed = {own: there for there, own in own_names.items()}
        taken = {renamed.get(name, name) for name in agents}
        tools: list[Tool] = []
        names: dict[str, str] = {}
        for tool in self.tools:
            name = tool.name if tool.name not in taken else _free(OUR_PREFIX, tool.name, taken)
            taken.add(name)
            names[name] = tool.name
            tools.append(tool if name == tool.name else replace(tool, name=name))
        return Offer(tools=tuple(tools), names=names, renamed=renamed, own_names=own_names)


def _free(prefix: str, name: str, taken: set[str]) -> str:
    while (name := f"{prefix}{name}") in taken:
        pass
    return name
