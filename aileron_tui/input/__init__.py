"""From a key press to a command, and whether it may decide now."""
