"""Series of a job by the minute: a healthy one, and what each incident makes of it.

The limits are those of the command, but for the time in which state grows: an hour and a half is enough to see it.
"""

from __future__ import annotations

from slackwater.observe.monitoring.thresholds import MINUTE_MS, Thresholds
from tests.observe.monitoring.promtool import Series

MINUTES = 160
AT = 60
"""The minute in which an incident begins."""
REST = MINUTES - AT - 1
LIMITS = Thresholds(state_over_ms=90 * MINUTE_MS)

PIPELINE = 'pipeline="shop"'
ROWS = f'slackwater_rows_total{{{PIPELINE},stream="orders"}}'
WATERMARK = f'slackwater_watermark_timestamp_seconds{{{PIPELINE},stream="orders"}}'
WATERMARK_LAG = f'slackwater_watermark_lag_seconds{{{PIPELINE},stream="orders"}}'
LAGS = [f'slackwater_partition_watermark_lag_seconds{{{PIPELINE},stream="orders",partition="{n}"}}' for n in (0, 1)]
HOLDS = [f'slackwater_partition_holds_watermark{{{PIPELINE},stream="orders",partition="{n}"}}' for n in (0, 1)]
GROWTH = f'slackwater_consumer_lag_growth{{{PIPELINE},stream="orders",partition="0"}}'
SLACK = f'slackwater_out_of_orderness_seconds{{{PIPELINE},stream="orders"}}'
LATENESS = f'slackwater_lateness_seconds{{{PIPELINE},stream="orders",quantile="0.99"}}'
STATE = f'slackwater_state_bytes{{{PIPELINE},step="per_minute"}}'
SINK = f'slackwater_sink_seconds{{{PIPELINE},sink="orders to files"}}'
BATCH = f'slackwater_batch_seconds{{{PIPELINE},phase="total"}}'
MALFORMED = f'slackwater_dead_letters_total{{{PIPELINE},stream="orders",reason="malformed"}}'
STARTS = f"slackwater_starts_total{{{PIPELINE}}}"
LAST = f"slackwater_last_batch_timestamp_seconds{{{PIPELINE}}}"
INFO = f'slackwater_info{{{PIPELINE},version="1"}}'

HEALTHY: Series = {
    ROWS: f"0+100x{MINUTES}",
    WATERMARK: f"0+60x{MINUTES}",
    WATERMARK_LAG: f"15x{MINUTES}",
    LAGS[0]: f"15x{MINUTES}",
    LAGS[1]: f"12x{MINUTES}",
    HOLDS[0]: f"1x{MINUTES}",
    HOLDS[1]: f"0x{MINUTES}",
    GROWTH: "5 -5 " * (MINUTES // 2),
    SLACK: f"10x{MINUTES}",
    LATENESS: f"4x{MINUTES}",
    STATE: "2e8+1e6x19 " * (MINUTES // 20),
    SINK: f"0.2x{MINUTES}",
    BATCH: f"1x{MINUTES}",
    MALFORMED: f"0x20 3x{MINUTES}",
    STARTS: f"5x{MINUTES}",
    LAST: f"0+60x{MINUTES}",
    INFO: f"1x{MINUTES}",
}


def then(before: str, after: str) -> str:
    """Return values that change when the incident begins; both are written for one sample, or with a slope."""
    return f"{before}x{AT} {after}x{REST}"


def ending(series: Series) -> dict[str, str]:
    """Return series that end when the incident begins, as those of a process that is gone."""
    return {name: f"{values.rpartition('x')[0]}x{AT}" for name, values in series.items() if "x" in values}


STALLED = {
    WATERMARK: then("0+60", "3600"),
    WATERMARK_LAG: then("15", "15+60"),
    LAGS[1]: then("12", "15+60"),
    HOLDS[0]: then("1", "0"),
    HOLDS[1]: then("0", "1"),
    STATE: then("2e8", "2e8+4e6"),
}
NEVER_BEGAN = {
    **dict.fromkeys((WATERMARK, WATERMARK_LAG, LAGS[1]), "_"),
    HOLDS[0]: f"0x{MINUTES}",
    HOLDS[1]: f"1x{MINUTES}",
}
AHEAD = {
    # An hour ahead: the watermark stands until the clock has caught up.
    WATERMARK: f"0+60x{AT} 7200x59 7200+60x{REST}",
    WATERMARK_LAG: f"15x{AT} -3585+60x59 15x{REST}",
    **dict.fromkeys(LAGS, f"15x{AT} -3585+60x59 15x{REST}"),
    LATENESS: f"4x{AT} 3600-60x59 4x{REST}",
}
AHEAD_AND_GUARDED = {
    f'slackwater_dead_letters_total{{{PIPELINE},stream="orders",reason="ahead_of_clock"}}': f"_x{AT} 5+5x{REST}"
}
BURST = {f'slackwater_dead_letters_total{{{PIPELINE},stream="orders",reason="wrong_type"}}': f"_x{AT} 500x{REST}"}
BURST_OF_RESULTS = {
    f'slackwater_dead_letters_total{{{PIPELINE},stream="per_minute",reason="failed"}}': f"_x{AT} 500x{REST}"
}
CRASHES = {
    **{name: values for name, values in ending(HEALTHY).items() if name not in (INFO, ROWS)},
    STATE: f"2e8x{AT}",
    GROWTH: f"0x{AT}",
    # Each start is seen for a minute, from another host every time, and dies in its first batch.
    **{
        f'slackwater_starts_total{{{PIPELINE},instance="{n}"}}': f"_x{AT + 3 * n} {6 + n} " + f"_x{MINUTES}"
        for n in range(5)
    },
    ROWS: f"0+100x{AT} " + "0 _ _ " * 5 + f"0x{REST}",
    INFO: f"1x{AT} " + "1 _ _ " * 5 + f"1x{REST}",
}

INCIDENTS: dict[str, tuple[str, Series]] = {
    "a partition that sends nothing": ("SlackwaterWatermarkStalled", STALLED),
    "a partition that never had a record": ("SlackwaterWatermarkStalled", NEVER_BEGAN),
    "a sink that is slow": ("SlackwaterSinkSlow", {SINK: then("0.2", "60"), BATCH: then("1", "61")}),
    "a sink that lets records pile up": (
        "SlackwaterSinkSlow",
        {SINK: then("0.2", "3"), BATCH: then("1", "4"), GROWTH: then("0", "50")},
    ),
    "state that leaks": ("SlackwaterStateGrows", {STATE: f"2e8+2e6x{MINUTES}"}),
    "a clock that runs ahead": ("SlackwaterClockAhead", AHEAD),
    "a clock that runs ahead of max_ahead": ("SlackwaterClockAhead", AHEAD_AND_GUARDED),
    "a burst of bad bytes": ("SlackwaterDeadLetters", BURST),
    "results that cannot be written": ("SlackwaterDeadLetters", BURST_OF_RESULTS),
    "a crash loop": ("SlackwaterCrashLoop", CRASHES),
    "a crash loop on one host": ("SlackwaterCrashLoop", {STARTS: f"5x{AT} 6x2 7x2 8x2 9x{REST}"}),
    "rows later than is allowed for": ("SlackwaterLatenessAboveAllowance", {LATENESS: then("4", "30")}),
    "a job that hangs": (
        "SlackwaterNoBatch",
        {LAST: then("0+60", "3600"), ROWS: then("0+100", "6000"), WATERMARK: then("0+60", "3600")},
    ),
}
"""The alert that each makes fire, and the series in which it differs from a healthy job."""

GONE = {**ending(HEALTHY), STATE: f"2e8x{AT}", GROWTH: f"0x{AT}"}
"""A job that ends; only rules of a pipeline with a name can miss it."""

HARMLESS: dict[str, Series] = {
    "a healthy job": {},
    "a night without events": {
        ROWS: then("0+100", "6000"),
        WATERMARK: then("0+60", "3600"),
        WATERMARK_LAG: then("15", "15+60"),
    },
    "old rows that are read again": {WATERMARK_LAG: f"864000x{MINUTES}", **dict.fromkeys(LAGS, f"864000x{MINUTES}")},
    "state that has doubled once": {STATE: then("2e8", "4e8")},
    "state that grows and is small": {STATE: f"2e5+1e3x{MINUTES}"},
    "one batch with old rows": {LATENESS: f"4x{AT} 86400 4x{REST}"},
    "two starts": {STARTS: f"5x{AT} 6x5 7x{REST}"},
    "a dead letter now and then": {MALFORMED: "0x20 1x30 2x30 3x30 4x60"},
    "a sink that is slow once": {SINK: f"0.2x{AT} 60 0.2x{REST}"},
    "a first batch with a dead letter": {
        **{name: f"_x{AT} {values}" for name, values in HEALTHY.items() if name not in (LAST, WATERMARK, INFO)},
        ROWS: f"_x{AT} 10000x{REST}",
        MALFORMED: f"_x{AT} 5x{REST}",
    },
}
