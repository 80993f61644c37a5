"""`make demo`: the main job live. A real home, a real console, a real MCP client, a mail service of ours."""
