"""Headless core of Aileron: gate, consent, preview, sandbox host, audit."""
