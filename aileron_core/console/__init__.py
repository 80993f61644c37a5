"""Where the rooms of the core are put together, and the port that front ends hold."""
