"""Checking a plan: every rule is applied, and its findings are matched with the pipeline's reasons to accept them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slackwater.base.errors import near_miss, refuse
from slackwater.observe.checker.facts import Facts
from slackwater.observe.checker.findings import Finding, Findings
from slackwater.observe.checker.rule import SEVERITIES
from slackwater.observe.checker.rules import RULES
from slackwater.plan.plan import Plan


def check_plan(plan: Plan, *, facts: Facts | None = None, accept: Mapping[str, str] | None = None) -> Findings:
    """Return the findings of all rules in a plan, by severity and then by code."""
    known, reasons = facts or Facts(), accept or {}
    found = [
        Finding(
            code=rule.code,
            severity=rule.severity,
            where=where,
            what=what,
            why=rule.why,
            fix=rule.fix,
            accepted=reasons.get(rule.code),
        )
        for rule in sorted(RULES, key=lambda rule: (SEVERITIES.index(rule.severity), rule.code))
        for where, what in rule.look(plan, known)
    ]
    return Findings(pipeline=plan.name, all=tuple(found))


def checked_accept(accept: Any, *, pipeline: str) -> dict[str, str]:  # noqa: ANN401  anything a user may pass
    """Return the reasons by code; reject unknown codes, and codes without a reason."""
    if not isinstance(accept, Mapping):
        raise refuse("ACCEPT_KIND", pipeline=pipeline, got=repr(accept))
    known = [rule.code for rule in RULES]
    for code, reason in accept.items():
        if code not in known:
            raise refuse("ACCEPT_CODE", pipeline=pipeline, got=repr(code), hint=near_miss(str(code), known))
        if not isinstance(reason, str) or not reason.strip():
            raise refuse("ACCEPT_REASON", pipeline=pipeline, rule=code, got=repr(reason))
    return dict(accept)
