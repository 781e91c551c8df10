"""Deduplication: one row for each key, and the others in a separate output."""
