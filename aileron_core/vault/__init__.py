"""Secrets under a passphrase: the vault's file, its lock, and the keys that are derived from it."""
