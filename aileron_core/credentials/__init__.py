"""Accounts that a person bound: what is added to a connector's requests, and to which."""
