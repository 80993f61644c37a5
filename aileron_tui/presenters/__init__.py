"""Pure drawing and state: no Textual, no clock, no I/O. Widgets only paint what these return."""
