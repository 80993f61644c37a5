"""The audit: a hash chain of records, written, read and verified."""
