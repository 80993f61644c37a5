"""The core's side of the console: intents carried out, events published, objects mapped to view models."""
