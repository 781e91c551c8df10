"""Reading the state of keyed steps while a job runs or rests: sizes, largest keys, and what is held of one key."""
