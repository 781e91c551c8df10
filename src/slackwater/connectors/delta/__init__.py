"""Delta Lake as a source, a sink and a table."""
