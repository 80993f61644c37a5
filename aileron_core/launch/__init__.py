"""Starting an agent: wired to the console, contained, and gone without a trace."""
