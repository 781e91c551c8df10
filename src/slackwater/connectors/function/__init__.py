"""A user's own function as a lookup store."""
