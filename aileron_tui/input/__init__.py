"""Turns a key press into a command, and judges whether it may decide now."""
