"""What the screens are looked at and tested with: calls, a home and a small core."""
