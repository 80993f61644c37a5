"""The agents that `aileron launch` knows: one module each."""

from collections.abc import Mapping

from aileron_core.launch.agents.claude import CLAUDE
from aileron_core.launch.agents.codex import CODEX
from aileron_core.launch.agents.gemini import GEMINI
from aileron_core.launch.agents.goose import GOOSE
from aileron_core.launch.agents.opencode import OPENCODE
from aileron_core.launch.agents.pi import PI
from aileron_core.launch.plan import Agent

_ALL: tuple[Agent, ...] = (CODEX, CLAUDE, OPENCODE, GOOSE, PI, GEMINI)

AGENTS: Mapping[str, Agent] = {agent.name: agent for agent in _ALL}
"""By the name that a person types."""
