"""What survives a restart: the manifest, the clocks, the delivery marks and the lock."""
