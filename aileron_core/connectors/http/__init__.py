"""The one way out for connectors: HTTP to listed hosts, at addresses that were checked."""
