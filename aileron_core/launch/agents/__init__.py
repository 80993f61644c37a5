"""The supported agents, one module each: how to start it, and what of it Aileron controls."""

from collections.abc import Mapping

from aileron_core.launch.agents.claude import CLAUDE
from aileron_core.launch.agents.codex import CODEX
from aileron_core.launch.agents.gemini import GEMINI
from aileron_core.launch.agents.goose import GOOSE
from aileron_core.launch.agents.opencode import OPENCODE
from aileron_core.launch.agents.pi import PI
from aileron_core.launch.plan import Agent
from aileron_core.settings import AGENT_NAMES

_ALL: tuple[Agent, ...] = (CODEX, CLAUDE, OPENCODE, GOOSE, PI, GEMINI)
_BY_NAME = {agent.name: agent for agent in _ALL}

AGENTS: Mapping[str, Agent] = {name: _BY_NAME[name] for name in AGENT_NAMES}
"""By the name that a person types."""
