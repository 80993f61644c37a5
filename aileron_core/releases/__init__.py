"""Published suites: read from a folder or an archive, checked by themselves, packed, signed and verified."""
