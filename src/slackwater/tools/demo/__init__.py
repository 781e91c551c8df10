"""The demo: a live stream with late, broken and future records, and an account of every record."""
