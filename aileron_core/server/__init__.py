"""HTTP for agents: loopback TCP and the home's Unix socket."""
