"""The contracts of sources, sinks, lookups and tables, exactly-once delivery, and one folder for each system."""
