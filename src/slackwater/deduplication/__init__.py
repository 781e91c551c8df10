"""Deduplication: one row for each key, and the others as an output of their own."""
