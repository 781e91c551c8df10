"""The rules, one file for each aspect of a pipeline."""

from __future__ import annotations

from typing import Final

from slackwater.observe.checker.rule import Rule
from slackwater.observe.checker.rules import code, outputs, running, state, time

RULES: Final[tuple[Rule, ...]] = (*time.RULES, *state.RULES, *code.RULES, *outputs.RULES, *running.RULES)
assert len({rule.code for rule in RULES}) == len(RULES), "a code is in two rules"
