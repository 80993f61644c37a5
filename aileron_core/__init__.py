"""Headless core of Aileron: gate, consent, preview, sandbox host, audit."""

__version__ = "0.1.0"
