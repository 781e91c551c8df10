"""Patterns: rows of one key that follow each other in event time, and expected rows that did not arrive."""

from slackwater.operators.patterns.definitions import Pattern, absent, sequence, times
from slackwater.operators.patterns.steps import PatternStep, RowsOfStep, step

__all__ = ["Pattern", "PatternStep", "RowsOfStep", "absent", "sequence", "step", "times"]
