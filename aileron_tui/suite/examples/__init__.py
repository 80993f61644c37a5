"""Examples that run: a connector of our own, its actions, and a mailbox that speaks Gmail's API."""
