"""Delta Lake: its connector, and what is read of a table besides its rows."""
