"""Widgets that paint lines and report what was painted."""
