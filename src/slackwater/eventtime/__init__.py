"""Event time: durations, the clock of a micro-batch, and how the watermark moves."""
