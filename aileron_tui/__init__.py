"""The Textual console and the `aileron` command."""
