"""Memory of the driver as a sink, for tests and notebooks."""
