from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.durations import duration_ms, render_ms
from slackwater.base.errors import DefinitionError, RunError
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.tools.lateness import LatenessReport, MeasuredStream, StreamReport, make_report, percent, report_text
from slackwater.tools.lateness.ladder import COARSE_MS, ROUND_MS, round_down_ms, round_up_ms, rungs, shorten_ms
from slackwater.tools.lateness.report import QUANTILES

NEWEST = 1_767_225_600_000
LATE = st.lists(st.one_of(st.just(0), st.integers(0, 5_000), st.integers(0, 10**8)), min_size=1, max_size=150)
TARGETS = st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0])


def sketch_of(late_by: Sequence[int]) -> LatenessSketch:
    """Return the sketch of rows that are late by so much, behind one that is the newest."""
    sketch = LatenessSketch.empty()
    sketch.observe(NEWEST - np.array(late_by, np.int64), NEWEST)
    return sketch


def measured(late_by: Sequence[int] | Mapping[str, Sequence[int]], **facts: object) -> MeasuredStream:
    parts = late_by if isinstance(late_by, Mapping) else {"0": late_by}
    sketches = {name: sketch_of(values) for name, values in parts.items()}
    number = sum(sketch.count for sketch in sketches.values())
    known = {"records": number, "first_ms": NEWEST - 10**6, "last_ms": NEWEST, **facts}
    return MeasuredStream(name="orders", sketches=sketches, **known)  # type: ignore[arg-type]


def stream_of(stream: MeasuredStream, target: float = 0.99) -> StreamReport:
    [found] = make_report([stream], target=target).streams
    return found


@given(LATE, TARGETS)
def test_what_is_recommended_leaves_no_more_behind_than_the_target_allows(late: list[int], target: float) -> None:
    best = stream_of(measured(late), target).recommended
    assert sum(value > best.out_of_orderness_ms for value in late) <= (1 - target) * len(late) + 1e-9
    assert best.share_behind <= 1 - target + 1e-9


@given(LATE, TARGETS)
def test_what_is_recommended_is_the_shortest_round_duration_that_will_do(late: list[int], target: float) -> None:
    exact = sorted(late)[math.ceil(target * len(late)) - 1]
    assert stream_of(measured(late), target).recommended.out_of_orderness_ms == round_up_ms(exact)


@given(LATE)
def test_rows_behind_a_round_duration_are_counted_exactly(late: list[int]) -> None:
    sketch = sketch_of(late)
    for step in ROUND_MS:
        assert sketch.rows_later_than(step) == sum(value > step for value in late)


@given(LATE)
def test_shares_of_the_table_are_those_of_the_rows(late: list[int]) -> None:
    for row in stream_of(measured(late)).candidates:
        slack = 0.0157 * row.out_of_orderness_ms
        least, most = (sum(value > row.out_of_orderness_ms + by for value in late) for by in (slack, -slack))
        assert least <= row.rows_behind + 0.5
        assert row.rows_behind - 0.5 <= most
        assert row.share_behind * len(late) == pytest.approx(row.rows_behind, abs=0.5)


@given(LATE, st.integers(0, 10**7))
def test_table_rises_from_nothing_to_the_maximum_and_has_every_label_once(late: list[int], now: int) -> None:
    rows = stream_of(measured(late, out_of_orderness_ms=now)).candidates
    steps = [row.out_of_orderness_ms for row in rows]
    assert steps == sorted(set(steps))
    assert steps[0] == 0
    assert steps[-1] >= max(late)
    labels = Counter(label for row in rows for label in row.labels)
    assert labels == Counter(["recommended", "now", "p50", "p90", "p99", "p99.9", "max"])


@given(LATE)
def test_row_with_the_label_of_a_quantile_leaves_no_more_than_that_behind(late: list[int]) -> None:
    stream = stream_of(measured(late))
    for row in stream.candidates:
        for label in row.labels:
            if label in QUANTILES:
                behind = sum(value > row.out_of_orderness_ms for value in late)
                assert behind <= (1 - QUANTILES[label]) * len(late) + 1e-9, label
                assert row.share_behind <= 1 - QUANTILES[label] + 1e-9, label


def test_p99_of_150_events_is_not_the_148th_of_them() -> None:
    stream = stream_of(measured([0] * 147 + [1_000, 2_000, 3_000]))
    assert stream.quantiles_ms["p99"] == 2_000
    [row] = [row for row in stream.candidates if "p99" in row.labels]
    assert (row.out_of_orderness_ms, row.rows_behind) == (2_000, 1)


@given(LATE)
def test_histogram_has_every_event_once(late: list[int]) -> None:
    bins = stream_of(measured(late)).histogram
    assert sum(row.rows for row in bins) == len(late)
    assert sum(row.share for row in bins) == pytest.approx(1)
    assert bins[0].rows == late.count(0)
    edges = [row.up_to_ms for row in bins]
    assert edges == sorted(set(edges))
    assert edges[-1] >= max(late)


def test_histogram_keeps_an_empty_bin_between_two_that_are_not() -> None:
    bins = stream_of(measured([0, 0, 7, 40_000])).histogram
    assert [(row.up_to_ms, row.rows) for row in bins] == [
        (0, 2),
        (10, 1),
        (100, 0),
        (1_000, 0),
        (10_000, 0),
        (45_000, 1),
    ]


def test_quantiles_and_maximum_are_those_of_all_partitions_together() -> None:
    stream = stream_of(measured({"0": [0] * 60, "1": [100] * 30 + [5_000] * 9 + [60_000]}))
    assert (stream.quantiles_ms["p50"], stream.quantiles_ms["p90"]) == (0, 100)
    assert [stream.quantiles_ms[name] for name in ("p99", "p99.9")] == [5_000, 60_000]
    assert stream.max_ms == 60_000


def test_events_in_order_need_no_out_of_orderness() -> None:
    stream = stream_of(measured([0] * 2_000))
    assert (stream.recommended.out_of_orderness_ms, stream.recommended.share_behind) == (0, 0)
    assert [row.rows for row in stream.histogram] == [2_000]
    assert 'out_of_orderness="0s"' in report_text(make_report([measured([0] * 2_000)]))
    assert stream.remarks == ()


def test_partition_that_is_far_worse_is_named_with_what_would_do_without_it() -> None:
    stream = stream_of(measured({"a": [900] * 2_000, "b": [1_000] * 2_000, "c": [400_000] * 2_000}))
    assert [part.name for part in stream.partitions if part.is_far_worse] == ["c"]
    [remark] = stream.remarks
    assert remark.startswith("Partition c is far later than the others: 99 % of its events are within 6m40s, ")
    assert remark.endswith("Without it, 1s would be enough.")


def test_partitions_that_are_about_alike_are_not_remarked_on() -> None:
    assert stream_of(measured({"a": [900] * 2_000, "b": [3_000] * 2_000})).remarks == ()
    assert stream_of(measured({"a": [0] * 2_000, "b": [80_000] * 2_000, "c": [90_000] * 2_000})).remarks == ()


def test_only_the_worst_partitions_are_listed_one_by_one() -> None:
    many = {f"{place}": [0] * 200 for place in range(20)} | {f"bad{place}": [60_000] * 200 for place in range(5)}
    said = stream_of(measured(many)).remarks
    assert [words.split()[0] for words in said] == ["Partition"] * 3 + ["So"]
    assert said[-1] == "So are 2 more partitions."


def test_few_events_are_called_few() -> None:
    [remark] = stream_of(measured([0, 0, 0, 70_000])).remarks
    assert remark.startswith("4 events are few for a target of 99 %: the recommendation depends on the 1 latest")


def test_clock_that_runs_ahead_is_suspected() -> None:
    said = stream_of(measured([0, *[10**10] * 2_000])).remarks
    assert any("a clock that runs ahead causes this. Exclude its events with max_ahead" in words for words in said)


def test_lateness_beyond_the_longest_duration_is_out_of_reach() -> None:
    stream = stream_of(measured([200 * 365 * 86_400_000] * 2_000))
    assert stream.recommended.out_of_orderness_ms == ROUND_MS[-1]
    assert stream.recommended.share_behind == 1
    assert any(words.startswith("The target is out of reach: ") for words in stream.remarks)


def test_times_in_seconds_are_suspected() -> None:
    said = stream_of(measured([0] * 2_000, first_ms=1_767_225_600, last_ms=1_767_225_700)).remarks
    assert said == ("All event times are close to 1970: are they in seconds? Whole numbers are read as milliseconds.",)


@pytest.mark.parametrize("target", [0, -0.1, 1.01, 99, True, float("nan")])
def test_target_that_is_no_share_is_refused(target: float) -> None:
    with pytest.raises(DefinitionError, match=r"\[LATENESS_TARGET\] the target is the share of events .* got "):
        make_report([measured([0])], target=target)


def test_report_on_no_event_says_what_was_found_instead() -> None:
    lost = MeasuredStream(name="orders", records=7, left_out=Counter(malformed=5, no_event_time=1), filtered=1)
    lost.examples["malformed"] = "it ends early"
    words = (
        r"\[LATENESS_NO_EVENTS\] .*stream `orders` has no event in 7 records "
        r"\(5 malformed, 1 no_event_time, 1 filtered\), for example: it ends early"
    )
    with pytest.raises(RunError, match=words):
        make_report([lost])


def test_stream_without_events_beside_one_with_events_is_unmeasured() -> None:
    report = make_report([measured([0]), MeasuredStream(name="empty")], unmeasured={"other": "has no time"})
    assert report.unmeasured == {"other": "has no time", "empty": "holds no records"}
    assert "Stream empty is not measured: it holds no records." in report_text(report)


def report_of_everything() -> LatenessReport:
    late = {"0": [0] * 900 + [2_000] * 100, "1": [0] * 500 + [300_000] * 500}
    return make_report([measured(late, out_of_orderness_ms=5_000, records=2_003, left_out=Counter(malformed=3))])


def test_json_holds_the_whole_report() -> None:
    found = json.loads(report_of_everything().to_json())
    assert found["target"] == 0.99
    [stream] = found["streams"]
    assert (stream["name"], stream["records"], stream["events"], stream["left_out"]) == (
        "orders",
        2_003,
        2_000,
        {"malformed": 3},
    )
    assert stream["recommended"]["labels"][0] == "recommended"
    assert stream["configured"] == {
        "out_of_orderness_ms": 5_000,
        "share_behind": 0.25,
        "rows_behind": 500,
        "labels": ["now"],
    }
    assert [part["name"] for part in stream["partitions"]] == ["1", "0"]
    assert {"histogram", "candidates", "quantiles_ms", "max_ms", "remarks"} <= set(stream)
    assert "sketches" not in stream


def test_text_says_all_that_matters_in_a_hundred_columns() -> None:
    text = report_text(report_of_everything())
    assert max(map(len, text.splitlines())) <= 100
    for words in (
        "orders: 2,000 events in 2 partitions, ",
        "not measured, of 2,003 records: 3 malformed",
        "p50 0s",
        "max 5m",
        'Recommended: out_of_orderness="5m" for a target of 99 %: no event falls behind the watermark.',
        "Currently, it is 5s: 25.0 % of the events (500) fall behind the watermark.",
        "! Partition 1 is far later",
    ):
        assert words in " ".join(text.split())


def test_text_shows_the_worst_partitions_and_counts_the_rest() -> None:
    text = report_text(make_report([measured({f"p{place}": [place] for place in range(13)})]))
    assert "p12" in text
    assert "… and 3 more, none of them worse" in text


@pytest.mark.parametrize(
    "share, words",
    [
        (0, "0 %"),
        (1, "100.0 %"),
        (0.4321, "43.2 %"),
        (0.0431, "4.3 %"),
        (0.00431, "0.43 %"),
        (0.000431, "0.043 %"),
        (0.000001, "<0.001 %"),
    ],
)
def test_share_has_two_digits_that_matter(share: float, words: str) -> None:
    assert percent(share) == words


def test_round_durations_rise_and_can_be_written_in_a_pipeline() -> None:
    for steps in (ROUND_MS, COARSE_MS):
        assert list(steps) == sorted(set(steps))
        assert all(duration_ms(render_ms(step), what="step") == step for step in steps)


@given(st.integers(0, 10**16))
def test_rounding_up_gives_the_next_round_duration(milliseconds: int) -> None:
    rounded = round_up_ms(milliseconds)
    assert rounded == min((step for step in (0, *ROUND_MS) if step >= milliseconds), default=ROUND_MS[-1])


@given(st.integers(1, 10**16))
def test_rounding_down_gives_the_round_duration_before(milliseconds: int) -> None:
    assert round_down_ms(milliseconds) == max(step for step in ROUND_MS if step <= milliseconds)


@given(st.integers(0, 10**13))
def test_shortened_duration_is_not_shorter_and_at_most_two_units(milliseconds: int) -> None:
    short = shorten_ms(milliseconds)
    assert milliseconds <= short <= milliseconds * 1.05
    assert sum(sign.isalpha() for sign in render_ms(short).replace("ms", "m")) <= 2


@given(st.integers(1, 10**11), st.integers(0, 10**12), st.integers(2, 12))
def test_rungs_rise_and_are_not_too_many(least: int, most: int, at_most: int) -> None:
    found = rungs(least, most, at_most=at_most)
    assert len(found) <= at_most
    assert found == sorted(set(found))
    assert found[-1] == round_up_ms(most)
