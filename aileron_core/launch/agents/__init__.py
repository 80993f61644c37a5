"""The supported agents, one module each: how to start it, and what of it Aileron controls."""

from collections.abc import Mapping

from aileron_core.launch.agents.claude import CLAUDE
from aileron_core.launch.agents.codex import CODEX
from aileron_core.launch.agents.gemini import GEMINI
from aileron_core.launch.agents.goose import GOOSE
from aileron_core.launch.agents.opencode import OPENCODE
from aileron_core.launch.agents.pi import PI
from aileron_core.launch.plan import Agent

AGENTS: Mapping[str, Agent] = {
    agent.name: agent for agent in (CODEX, CLAUDE, OPENCODE, GOOSE, PI, GEMINI)
}
"""By the name that a person types."""
