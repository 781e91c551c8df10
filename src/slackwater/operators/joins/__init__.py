"""Stream joins: rows of two streams matched by key and time, window, or version."""
