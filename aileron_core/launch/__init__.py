"""Starting an agent: prepared to the console, contained, and gone without a trace."""
