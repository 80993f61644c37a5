"""Running ops. Only the gate imports this room."""
