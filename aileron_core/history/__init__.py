"""What a person saw when they decided, on disk: sealed to the public key of a day, erased with the day's key."""
