"""The home folder: its layout, whose it is, and where its console listens."""
