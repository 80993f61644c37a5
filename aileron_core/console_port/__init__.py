"""What front ends hold of the core: events come back, commands go over."""
