"""Outgoing HTTP of connectors: only to listed hosts, at addresses that were checked."""
