"""Actions: what an agent may ask for, read from files (FACTS A, WIRE.md)."""
