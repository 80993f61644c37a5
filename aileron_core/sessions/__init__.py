"""Launched agents: their tokens and how long they live."""
