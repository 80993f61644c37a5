"""A person's own MCP servers as connectors: a box of their own, pinned tools, one request for one yes."""
