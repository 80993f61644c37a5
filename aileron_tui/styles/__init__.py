"""Colour and style tokens, and the stylesheet."""
