"""Seeing what a job does: metrics, monitoring, the live page, the checker, and reading of state."""
