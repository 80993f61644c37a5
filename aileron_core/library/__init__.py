"""The files of a home, and which of them a person accepted, by the digest of their bytes."""
