"""Action files: parsed, checked, and what is wrong with one told by line and column."""
