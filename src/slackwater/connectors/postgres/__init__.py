"""Postgres as a sink, a lookup store and a table."""
