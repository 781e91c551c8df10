"""The checker: predicts from a pipeline's definition what will go wrong when it runs."""

from slackwater.observe.checker.checking import check_plan, checked_accept
from slackwater.observe.checker.facts import Facts, facts_of_run, facts_of_topics, master_cores
from slackwater.observe.checker.findings import Finding, Findings

__all__ = [
    "Facts",
    "Finding",
    "Findings",
    "check_plan",
    "checked_accept",
    "facts_of_run",
    "facts_of_topics",
    "master_cores",
]
