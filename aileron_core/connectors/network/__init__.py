"""The network of a sandbox that reaches listed hosts only: its resolver, and connections by the name in TLS."""
