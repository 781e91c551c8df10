"""Files as a sink and as a table."""
