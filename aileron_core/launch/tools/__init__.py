"""The two workers of a session's built-in tools: their sandboxes, made before the agent starts, and what they are asked."""
