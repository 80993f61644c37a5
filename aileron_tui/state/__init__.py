"""What the console knows: fed by events of the core and by keys. No Textual, no I/O."""
