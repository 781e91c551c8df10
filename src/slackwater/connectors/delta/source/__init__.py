"""Delta tables as a source: the current rows, then every commit that adds rows."""
