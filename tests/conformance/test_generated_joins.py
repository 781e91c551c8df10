"""Joins give what the slow reference model gives, for made-up bounds, kinds and streams."""

from __future__ import annotations

from hypothesis import given

from slackwater.testing.conformance import check
from slackwater.testing.replays import depends_on_batches
from tests.conformance.generated_cases import Case
from tests.conformance.generated_joins import expected, interval_joins, temporal_joins


def problems(case: Case, *replays: str) -> str:
    return "\n".join(check(case, "memory", replays))  # type: ignore[arg-type]  # names of replays


@given(interval_joins())
def test_an_interval_join_shows_what_the_model_shows(case: Case) -> None:
    assert not problems(expected(case), "whole")


@given(interval_joins().filter(lambda case: not depends_on_batches(case)))
def test_an_interval_join_does_not_depend_on_the_batches(case: Case) -> None:
    assert not problems(expected(case), "rows", "random")


@given(temporal_joins())
def test_an_as_of_join_shows_what_the_model_shows_in_any_batches(case: Case) -> None:
    assert not problems(expected(case), "whole", "rows", "random")
