"""Patterns: rows of one key that follow each other in event time, and rows that should have come and did not."""

from slackwater.patterns.definitions import Pattern, absent, sequence, times
from slackwater.patterns.steps import PatternStep, RowsOfStep, step

__all__ = ["Pattern", "PatternStep", "RowsOfStep", "absent", "sequence", "step", "times"]
