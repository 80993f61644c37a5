"""A session's own copy of the project's git directory, and the checked import of what the agent committed."""
