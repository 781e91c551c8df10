"""The engine gives what the slow reference model gives, for made-up windows, triggers, switches and streams."""

from __future__ import annotations

from hypothesis import given

from slackwater.testing.conformance import check
from slackwater.testing.replays import depends_on_batches
from tests.conformance.generated_cases import ALIGNED, SESSIONS, Case, cases, expected, judged_last
from tests.conformance.generated_dedup import dedup_cases


def problems(case: Case, *replays: str) -> str:
    return "\n".join(check(case, "memory", replays))  # type: ignore[arg-type]  # names of replays


@given(cases(ALIGNED))
def test_aligned_windows_show_what_the_model_shows(case: Case) -> None:
    assert not problems(expected(case), "whole")


@given(cases(SESSIONS, most_rows=1))
def test_sessions_fed_one_row_a_batch_show_what_the_model_shows(case: Case) -> None:
    assert not problems(expected(case), "whole")


def has_event_time_panes(case: Case) -> bool:
    return (case["params"]["trigger"] or {}).get("type") == "continuous_event_time"


# Where rows of one batch first begin sessions and then join them, the model takes the earliest start of
# event-time panes among them, so it depends on their order; the engine takes the first row to arrive.
@given(cases(SESSIONS).filter(lambda case: not has_event_time_panes(case)))
def test_sessions_show_what_the_model_shows_when_old_rows_come_last(case: Case) -> None:
    assert not problems(expected(judged_last(case)), "whole")


@given(cases(ALIGNED).filter(lambda case: not depends_on_batches(case)))
def test_aligned_windows_do_not_depend_on_the_batches(case: Case) -> None:
    assert not problems(expected(case), "rows", "random")


@given(cases(SESSIONS).filter(lambda case: not depends_on_batches(case)))
def test_sessions_fed_row_by_row_show_what_the_model_shows(case: Case) -> None:
    assert not problems(expected(case), "rows")


@given(dedup_cases())
def test_deduplication_shows_what_the_model_shows_however_its_rows_are_cut_into_batches(case: Case) -> None:
    assert not problems(case, "whole", "rows", "random")
