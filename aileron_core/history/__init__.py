"""Stores what a person saw when they decided, sealed to a public key for the day and erased with that key."""
