"""The sandbox of a launched agent: bubblewrap, Landlock scopes, an empty keyring (THREATS 5)."""
