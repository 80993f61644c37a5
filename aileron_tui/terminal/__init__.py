"""The terminal: its input, its output, and other programs that run in it."""
