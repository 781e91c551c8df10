"""KEYED: the keyed steps of one stage, run for one key group in one batch."""
