"""Compiling definitions into a plan: row functions and their schemas, the planner, column pruning, `explain`."""
