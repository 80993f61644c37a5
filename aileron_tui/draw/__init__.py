"""From values to lines of text with roles: no Textual, no clock, no I/O."""
