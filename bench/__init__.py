"""Measurements: each script prints a ratio against a named peer or floor of the same run. None is a test."""
