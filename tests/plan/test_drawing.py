"""The plan as a drawing: well-formed, complete, in order, whatever it is called."""

from __future__ import annotations

import json
import runpy
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.base.stored import shaped
from slackwater.plan.boxes import Arrow, graph_of
from slackwater.plan.described import PlanText, describe
from slackwater.plan.drawing import draw
from slackwater.plan.layout import Size, lay_out, layers_of
from slackwater.tools.cli.main import app
from tests.docs.pages import ROOT

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = ["purchases.py", "sessions.py", "fraud/pipeline.py"]


def example(name: str) -> sw.Pipeline:
    pipeline: sw.Pipeline = runpy.run_path(str(ROOT / "examples" / name))["pipeline"]
    return pipeline


def titles(svg: str, kind: str) -> list[str]:
    """Return the first line of the title of each box of a kind."""
    boxes = ET.fromstring(svg).iter(f"{SVG}g")  # noqa: S314  our own
    found = [box.find(f"{SVG}title") for box in boxes if box.get("class") == kind]
    return [(title.text or "").split("\n")[0] for title in found if title is not None]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_source_step_and_sink_is_drawn_once(name: str) -> None:
    pipeline = example(name)
    plan, svg = pipeline.plan(), pipeline.svg()
    assert titles(svg, "source") == [f"source {source.name}" for source in plan.sources]
    assert Counter(titles(svg, "step")) == Counter(f"step {step.name}" for step in plan.steps)
    shown = [output for output in plan.outputs if output.kind in ("rows", "results")]
    assert Counter(titles(svg, "sink")) == Counter(f"sink {output.name}" for output in shown for _ in output.sinks)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_sink_is_named_with_its_promise(name: str) -> None:
    pipeline = example(name)
    spoken = [box.spoken for box in graph_of(describe(pipeline.plan())).boxes.values()]
    for output in describe(pipeline.plan()).outputs:
        for sink in output.sinks:
            assert any(sink.sink in text and sink.promise in text for text in spoken)


def test_layers_of_the_fraud_example_stand_in_order() -> None:
    graph = graph_of(describe(example("fraud/pipeline.py").plan()))
    sizes = {name: Size(100, 50) for name in graph.boxes}
    layers = lay_out(sizes, graph.arrows).layers
    functions = [[name for name in layer if not name.startswith("functions")] for layer in layers]
    assert functions == [
        ["source payments"],
        [],
        ["step velocity", "step tested"],
        [],
        ["step decisions"],
        [],
        ["sink decisions.rows 0"],
    ]


def test_layer_is_the_longest_way() -> None:
    arrows = [Arrow("a", "d"), Arrow("a", "b"), Arrow("b", "c"), Arrow("c", "d")]
    assert layers_of(["a", "b", "c", "d"], arrows) == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_boxes_of_a_layer_never_overlap_and_arrows_do_not_cross_without_need() -> None:
    names = [*"abcdef"]
    arrows = [Arrow("a", "f"), Arrow("b", "e"), Arrow("c", "d")]
    layout = lay_out({name: Size(80, 30 + 10 * at) for at, name in enumerate(names)}, arrows)
    assert layout.layers == [["a", "b", "c"], ["f", "e", "d"]]
    for layer in layout.layers:
        for above, below in pairwise(layer):
            assert layout.places[above].y + layout.places[above].height < layout.places[below].y


def test_hostile_texts_are_escaped_and_shortened_with_all_of_them_in_the_title() -> None:
    wicked = "</title><script>alert('x')</script>&\x00\ud800\"" + "x" * 300
    source = sw.testing.rows_source({"k": pl.String(), "t": pl.Datetime("us", "UTC")})
    stream = sw.stream("rows", source).where(pl.col("k") != wicked.replace("\ud800", "").replace("\x00", ""))
    pipeline = sw.Pipeline("p", stream.to(sw.sinks.files("/out/<b>&amp;")), stream.dead_letters.drop())
    svg = pipeline.svg()
    root = ET.fromstring(svg)  # noqa: S314  our own
    assert "<script" not in svg
    assert not list(root.iter(f"{SVG}script"))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert any(text.endswith("…") for text in texts)
    assert max(map(len, texts)) < 80
    assert any("x" * 250 in (title.text or "") for title in root.iter(f"{SVG}title"))


def test_texts_that_xml_cannot_hold_are_written_as_escapes() -> None:
    described = describe(example("purchases.py").plan())
    changed = json.loads(described.to_json())
    changed["sources"][0]["source"] = "a\x00b\ud800c\x1b]]>"
    svg = draw(shaped(changed, PlanText))
    ET.fromstring(svg)  # noqa: S314  our own
    svg.encode()


@pytest.mark.parametrize("name", EXAMPLES)
def test_plan_as_json_comes_back_as_it_was(name: str) -> None:
    pipeline = example(name)
    described = describe(pipeline.plan())
    assert shaped(json.loads(pipeline.explain("json")), PlanText) == described


def test_form_that_there_is_not_is_refused() -> None:
    with pytest.raises(sw.DefinitionError) as refused:
        example("purchases.py").explain("yaml")  # type: ignore[arg-type]
    assert refused.value.code == "EXPLAIN_FORM"


def test_notebook_shows_the_drawing() -> None:
    pipeline = example("purchases.py")
    assert pipeline._repr_html_() == pipeline.svg()


def test_drawing_follows_the_readers_dark_mode_and_speaks() -> None:
    svg = example("purchases.py").svg()
    assert "prefers-color-scheme: dark" in svg
    assert 'role="img" aria-label="plan of purchases"' in svg
    assert 'aria-label="step per_minute, key: user, window: tumbling 1m' in svg


def test_command_draws_into_a_file(tmp_path: Path) -> None:
    file, picture = str(ROOT / "examples" / "purchases.py"), tmp_path / "plan.svg"
    done = CliRunner().invoke(app, ["explain", file, "--svg", str(picture)])
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"wrote the plan of purchases to {picture}\n"
    assert picture.read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.parametrize("place", ["plan.png", "nowhere/plan.svg"])
def test_drawing_that_cannot_be_written_is_an_error(place: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["explain", str(ROOT / "examples" / "purchases.py"), "--svg", str(tmp_path / place)])
    assert isinstance(done.exception, sw.RunError)
    assert done.exception.code == "EXPLAIN_PICTURE"


def test_command_prints_json() -> None:
    done = CliRunner().invoke(app, ["explain", str(ROOT / "examples" / "purchases.py"), "--json"])
    assert json.loads(done.stdout)["pipeline"] == "purchases"


def test_name_and_key_groups_are_one_text_so_that_neither_covers_the_other() -> None:
    root = ET.fromstring(example("fraud/pipeline.py").svg())  # noqa: S314  our own
    [head] = [text for text in root.iter(f"{SVG}text") if text.get("class") == "head"]
    [about] = head.iter(f"{SVG}tspan")
    assert about.get("x") is None
    assert about.text == "16 key groups"


def test_types_are_short_and_readable() -> None:
    shown = example("fraud/pipeline.py").svg()
    assert "Struct(" not in shown
    assert "list of {at, amount}" in shown


@pytest.mark.parametrize("name", EXAMPLES)
def test_upright_drawing_has_the_same_boxes_below_each_other(name: str) -> None:
    plan = describe(example(name).plan())
    usual, upright = draw(plan), draw(plan, is_upright=True)
    for kind in ("source", "functions", "step", "sink"):
        assert titles(usual, kind) == titles(upright, kind)
    assert size_of(upright)[0] < size_of(usual)[0]
    boxes = [[float(box.get(part, "0")) for part in ("x", "y", "width", "height")] for box in drawn_boxes(upright)]
    for at, (x, y, width, height) in enumerate(boxes):
        for other_x, other_y, other_width, other_height in boxes[:at]:
            apart = x >= other_x + other_width or other_x >= x + width
            assert apart or y >= other_y + other_height or other_y >= y + height, "no box covers another"


def size_of(svg: str) -> tuple[float, float]:
    root = ET.fromstring(svg)  # noqa: S314  our own
    return float(root.get("width", "0")), float(root.get("height", "0"))


def drawn_boxes(svg: str) -> list[ET.Element]:
    return [each for each in ET.fromstring(svg).iter(f"{SVG}rect") if each.get("class") == "box"]  # noqa: S314  our own
