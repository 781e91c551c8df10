"""The lookups and table joins of a plan, and the checks on the rows they receive."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.base.call_sites import blamed
from slackwater.base.errors import refuse
from slackwater.plan.join_table import JoinTable
from slackwater.plan.lookup import LookUp
from slackwater.plan.plan import Plan, RowNode


def enrichments(plan: Plan) -> dict[str, LookUp | JoinTable]:
    """Return every lookup and every join with a table, by the name of its step."""
    roots = [source.rows for source in plan.sources] + [root for step in plan.steps for root in step.roots]
    return {node.step: op for root in roots for node, op in _found(root)}


def tables(plan: Plan) -> dict[str, JoinTable]:
    """Return every join with a table, by the name of its step."""
    return {step: op for step, op in enrichments(plan).items() if isinstance(op, JoinTable)}


def lookups(plan: Plan) -> dict[str, LookUp]:
    """Return every lookup, by the name of its step."""
    return {step: op for step, op in enrichments(plan).items() if isinstance(op, LookUp)}


def check_enrichments(plan: Plan) -> None:
    """Reject duplicate names, lookups on rows that have no place, and enriched retractions.

    Answers are stored by the place of the row. A retraction must repeat its row exactly, but a store or a table may
    have changed since.
    """
    names: dict[str, LookUp | JoinTable] = {}
    for source in plan.sources:
        for node, op in _found(source.rows):
            _check_name(node.step, op, names)
            if isinstance(op, LookUp) and not source.source.has_places:
                raise blamed(refuse("LOOKUP_WITHOUT_PLACES", step=node.step, source=source.source), op)
    for step in plan.steps:
        for root in step.roots:
            for node, op in _found(root):
                _check_name(node.step, op, names)
                if root is step.results and step.spec.emits == "retract":
                    raise blamed(refuse("ENRICHED_RETRACTIONS", step=node.step, before=step.name), op)


def _check_name(step: str, op: LookUp | JoinTable, names: dict[str, LookUp | JoinTable]) -> None:
    if names.setdefault(step, op) is not op:  # several branches of a union may share one
        raise blamed(refuse("ENRICHMENT_NAME_TWICE", step=step), op)


def _found(node: RowNode) -> Iterator[tuple[RowNode, LookUp | JoinTable]]:
    if isinstance(node.op, LookUp | JoinTable):
        yield node, node.op
    for child in node.children:
        yield from _found(child)
