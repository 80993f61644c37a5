"""The terminal itself: what comes from it, what goes to it, and other programs in it."""
