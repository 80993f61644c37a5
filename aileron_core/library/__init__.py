"""What lies in a home and what of it a person accepted, by the digest of its bytes."""
