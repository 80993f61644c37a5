"""A run's life: its states, its row, and what a person's yes covers."""
