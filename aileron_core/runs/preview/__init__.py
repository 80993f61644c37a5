"""Previews: what is asked of a service before a person decides, and how its answer is shown."""
