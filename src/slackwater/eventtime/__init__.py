"""Event time: the clock of a batch, watermarks, idleness, step times, and how late rows are."""
