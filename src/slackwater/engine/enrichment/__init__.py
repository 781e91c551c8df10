"""Columns from outside a stream: lookups and tables, and the answers and versions that a replay reuses."""
