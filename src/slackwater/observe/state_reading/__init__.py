"""Reading the state of keyed steps, whether or not a job is running: sizes, largest keys, and the state of one key."""
