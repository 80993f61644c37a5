"""Action files: parsed, checked, and their problems reported by line and column."""
