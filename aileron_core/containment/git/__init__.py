"""A git directory of the session's own in place of the person's, and the import of what is new in it."""
