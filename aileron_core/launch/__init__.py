"""Starting an AI agent connected to the console and contained in a sandbox, and cleaning up after it."""
