"""The checker: predicts from a pipeline's definition what will go wrong when it runs."""

from slackwater.checker.checking import check_plan, checked_accept
from slackwater.checker.facts import Facts, facts_of_run, facts_of_topics, master_cores
from slackwater.checker.findings import Finding, Findings

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
