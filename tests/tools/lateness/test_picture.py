from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.base.durations import render_ms
from slackwater.base.errors import RunError
from slackwater.eventtime.measured_lateness import LatenessSketch
from slackwater.tools.lateness import LatenessReport, MeasuredStream, make_report
from slackwater.tools.lateness.picture import check_picture, draw, write_picture

NEWEST = 1_767_225_600_000
SVG = "{http://www.w3.org/2000/svg}"


def report_of(*streams: dict[str, list[int]], now: int | None = None, target: float = 0.99) -> LatenessReport:
    """Return a report on streams, each of partitions whose rows are late by so much."""
    found = []
    for place, parts in enumerate(streams):
        stream = MeasuredStream(name=f"s{place}", first_ms=NEWEST, last_ms=NEWEST, out_of_orderness_ms=now)
        for name, late in parts.items():
            stream.sketches[name] = LatenessSketch.empty()
            stream.sketches[name].observe(NEWEST - np.array(late, np.int64), NEWEST)
            stream.records += len(late)
        found.append(stream)
    return make_report(found, target=target)


def parsed(report: LatenessReport) -> ET.Element:
    return ET.fromstring(draw(report))  # noqa: S314  our own text


def texts(root: ET.Element) -> list[str]:
    return [str(text.text) for text in root.iter(f"{SVG}text")]


def points(root: ET.Element, kind: str) -> list[tuple[float, float]]:
    """Return the corners of a curve."""
    [path] = [path.get("d", "") for path in root.iter(f"{SVG}path") if path.get("class") == kind]
    begin = re.match(r"M([\d.]+),([\d.]+)", path)
    assert begin is not None
    corners = [(float(begin[1]), float(begin[2]))]
    return corners + [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path)]


@given(
    st.lists(st.one_of(st.just(0), st.integers(0, 200), st.integers(0, 10**12)), min_size=1, max_size=60),
    st.none() | st.integers(0, 10**9),
    st.sampled_from([0.5, 0.99, 1.0]),
)
def test_picture_is_well_formed_and_marks_what_is_recommended(late: list[int], now: int | None, target: float) -> None:
    report = report_of({"0": late}, now=now, target=target)
    root = parsed(report)
    best = render_ms(report.streams[0].recommended.out_of_orderness_ms)
    assert any(text.startswith(f'recommended: out_of_orderness="{best}", ') for text in texts(root))
    assert best in str(root.findtext(f"{SVG}desc"))
    for element in root.iter():
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy"):
            assert 0 <= float(element.get(name, 0)) <= 820


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=60))
def test_curve_goes_right_and_down_and_ends_at_the_foot(late: list[int]) -> None:
    root = parsed(report_of({"0": late}))
    corners = points(root, "curve")
    assert corners == sorted(corners)
    assert [y for _, y in corners] == sorted(y for _, y in corners)
    foot = max(float(line.get("y2", 0)) for line in root.iter(f"{SVG}line"))
    assert corners[-1][1] == foot or max(late) == 0


def test_curve_passes_through_the_dot_of_what_is_recommended() -> None:
    dice = np.random.default_rng(3)
    root = parsed(report_of({"0": dice.lognormal(9, 2, 50_000).astype(int).tolist()}))
    [dot] = list(root.iter(f"{SVG}circle"))
    x, y = float(dot.get("cx", 0)), float(dot.get("cy", 0))
    corners = points(root, "curve")
    left = max(corner for corner in corners if corner[0] <= x + 0.1)
    right = min(corner for corner in corners if corner[0] >= x - 0.1)
    assert left[1] - 2 <= y <= right[1] + 2


def test_curve_stands_where_the_labels_of_the_axes_say() -> None:
    root = parsed(report_of({"0": [0] * 900 + [10_000] * 100}))
    labels = {text.text: text for text in root.iter(f"{SVG}text")}
    (_, first_y), (drop_x, last_y) = points(root, "curve")
    assert first_y == pytest.approx(float(labels["10 %"].get("y", 0)) - 4, abs=0.1)
    assert last_y == pytest.approx(float(labels["0"].get("y", 0)) - 4, abs=0.1)
    assert drop_x == pytest.approx(float(labels["10s"].get("x", 0)), abs=0.1)
    top = min(float(line.get("y1", 0)) for line in root.iter(f"{SVG}line"))
    assert float(labels["100 %"].get("y", 0)) - 4 == top


def test_what_the_pipeline_has_now_is_marked_unless_it_is_what_is_recommended() -> None:
    late = {"0": [0] * 50 + [1_000] * 50}
    assert any(text.startswith("now: 5s, ") for text in texts(parsed(report_of(late, now=5_000))))
    assert not any(text.startswith("now: ") for text in texts(parsed(report_of(late, now=1_000))))


def test_partition_that_is_far_worse_has_a_curve_of_its_own() -> None:
    root = parsed(report_of({"a": [0] * 500, "b & co": [90_000] * 500}))
    assert "dashed: partition b & co" in texts(root)
    assert points(root, "part")[0][1] < points(root, "curve")[0][1]


def test_every_stream_has_a_panel() -> None:
    root = parsed(report_of({"0": [0, 5]}, {"0": [0, 7]}))
    titles = [text for text in texts(root) if text.endswith(": events behind the watermark")]
    assert titles == ["s0: events behind the watermark", "s1: events behind the watermark"]
    assert [group.get("transform") for group in root.iter(f"{SVG}g")] == ["translate(0 0)", "translate(0 442)"]


def test_picture_follows_light_and_dark() -> None:
    style = str(parsed(report_of({"0": [1]})).findtext(f"{SVG}style"))
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    used = set(re.findall(r'class="(\w+)"', draw(report_of({"0": [1_000] * 200, "1": [90_000] * 200}, now=5))))
    assert used
    assert all(f".{name} {{" in light and f".{name} {{" in dark for name in used)


def test_names_that_xml_cannot_hold_do_not_break_the_picture() -> None:
    report = report_of({"a": [0] * 500, "\x01<\udcff>": [90_000] * 500})
    assert "dashed: partition \ufffd<\ufffd>" in texts(parsed(report))


def test_picture_is_written_as_svg(tmp_path: Path) -> None:
    report = report_of({"0": [1, 2]})
    write_picture(report, tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").read_text() == draw(report)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a"])
def test_picture_of_another_kind_is_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"\[LATENESS_PICTURE\].*written as SVG; got `.*`; give .* ends in \.svg"
    ) as caught:
        check_picture(tmp_path / name)
    assert f"`rsvg-convert {tmp_path}/a.svg -o {tmp_path}/a.png`" in str(caught.value)


def test_picture_in_a_folder_that_does_not_exist_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"\[LATENESS_PICTURE_UNWRITTEN\].*there is no folder .*nowhere"):
        check_picture(tmp_path / "nowhere" / "a.svg")


def test_picture_that_cannot_be_written_is_reported_with_the_cause(tmp_path: Path) -> None:
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(RunError, match=r"\[LATENESS_PICTURE_UNWRITTEN\].*Is a directory"):
        write_picture(report_of({"0": [1]}), tmp_path / "a.svg")
