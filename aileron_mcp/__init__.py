"""The MCP side of Aileron: a relay for stdio agents and the server that the console mounts."""
