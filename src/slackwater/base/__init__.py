"""The foundation of all rooms: durations and times, durable files, stable hashes, expressions, signals, jars."""
