"""The built-in tools: Read, Write, Edit, Bash, Glob and Grep, which run in sandboxes of the session that calls them."""
