"""Stream joins: rows of two streams that meet by key and time, window, or version."""
