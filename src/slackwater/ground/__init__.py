"""What every room stands on: durations and times, durable files, stable hashes, expressions, signals, jars."""
