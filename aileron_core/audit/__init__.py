"""The record of everything: made as a chain, kept, read and verified."""
