"""Containing a program: what bubblewrap mounts, what the kernel is asked to forbid, the first program inside."""
