"""Which calls of the built-in tools run without a person, are asked, or are denied. Pure."""
