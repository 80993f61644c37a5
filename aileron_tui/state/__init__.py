"""What the console knows, updated by events of the core and by keys. No Textual, no I/O."""
