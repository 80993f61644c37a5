"""The home folder and its one database."""
