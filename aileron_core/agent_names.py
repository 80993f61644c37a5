"""The names of the agents that can be launched; a module of its own, since every command's start imports it."""

AGENT_NAMES = ("codex", "claude", "opencode", "goose", "pi", "gemini")
