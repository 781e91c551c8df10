"""Delta tables as a source: what is in the table, then every commit that adds rows."""
