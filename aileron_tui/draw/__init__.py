"""Turns values into lines of text with roles: no Textual, no clock, no I/O."""
