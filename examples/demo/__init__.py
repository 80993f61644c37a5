"""What `aileron demo` plays: scenes, and the agents in them, which are real MCP clients over `aileron-mcp`."""
