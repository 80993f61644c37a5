"""Actions: what an agent may ask for, read from files."""
