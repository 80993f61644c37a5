"""Augment mode: the session's actions as tools of its model, for agents that speak no MCP.

Imported only for a session that was opened with it; a gateway in its normal mode never is.
"""
