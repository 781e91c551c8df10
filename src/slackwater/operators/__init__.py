"""Keyed steps: their contract and state, and one folder for each kind."""
