"""The engine: FRONT, KEYED, OUTPUTS and the next clock, what survives a restart, and the engine in memory."""
