"""A git folder of a session's own in place of the person's, and the way back of what is new in it."""
