"""The console without a screen, line by line."""
