"""Chains of joins, deduplication, patterns, processes and windows against brute force, in several batchings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.property.mixed_runs import in_any_batches, with_late_rows


@given(st.data())
def test_mixed_chains_show_what_the_model_says_in_any_batches(data: st.DataObject) -> None:
    in_any_batches(data)


@given(st.data())
def test_mixed_chains_show_what_the_model_says_of_the_rows_that_are_not_late(data: st.DataObject) -> None:
    with_late_rows(data)
