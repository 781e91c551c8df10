"""The embedded log: an append-only folder of files, so that everything runs without a server."""
