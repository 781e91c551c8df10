"""Imports point one way: from what users call down to what it stands on, never back.

The table gives each module, or everything below a package, its level. A module may import from its own
level or a lower one. Imports inside functions and those for types alone count as well: both make one
module depend on another.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGE, imports_of, known_modules

FOLDERS = {
    "base": ["base.errors", "base.secrets", "base"],
    "formats": ["formats"],
    "eventtime": ["eventtime"],
    "operators": [
        "operators.aggregates",
        "operators.state",
        "operators.identity operators.late_rows operators.step operators.whole_rows operators",
        "operators.windows",
        "operators.patterns",
        "operators.deduplication",
        "operators.process",
        "operators.joins",
    ],
    "connectors": [
        "connectors",
        "connectors.console connectors.dataframe connectors.function connectors.memory",
        "connectors.files connectors.log",
        "connectors.delta connectors.http connectors.kafka connectors.postgres connectors.redis",
        "connectors.mqtt",
        "connectors.table",
    ],
    "plan": ["plan plan.streams"],
    "engine": [
        "engine",
        "engine.enrichment",
        "engine.alignment engine.batch_stats engine.next_clock engine.row_context engine.step_times",
        "engine.dead_letters",
        "engine.front",
        "engine.keyed",
        "engine.checkpoint",
        "engine.outputs",
        "engine.memory",
    ],
    "observe": [
        "observe.metrics",
        "observe.monitoring",
        "observe.page",
        "observe.state_reading",
        "observe.checker",
        "observe",
    ],
    "spark": ["spark"],
    "pipeline": ["pipeline"],
    "facades": ["sources sinks lookups windows kafka"],
    "testing": ["testing"],
    "package": ["__init__"],
    "tools": ["tools.dead_letters", "tools.lateness", "tools.simulator", "tools.demo", "tools.cli tools __main__"],
}
"""The folders from the lowest to the highest, and inside each the order of its parts; parts on one line may import each
other, and what is not named belongs to the longest name above it."""
ROOMS = [room for rooms in FOLDERS.values() for room in rooms]
"""From the lowest to the highest; names on one line may import each other."""
LEVELS = {f"slackwater.{name}": level for level, room in enumerate(ROOMS) for name in room.split()}


class UnknownModuleError(AssertionError):
    """A module that the table does not place."""


def level_of(module: str) -> int:
    """Return the level of the longest entry that is `module` or a package above it."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        level = LEVELS.get(".".join(parts[:length]))
        if level is not None:
            return level
    raise UnknownModuleError(
        f"`{module}` has no level; give `{'.'.join(parts[:2])}` one in LEVELS of {Path(__file__).name}: "
        "above everything it imports, below everything that imports it"
    )


def upward_imports(source: str, *, module: str, package: str, modules: frozenset[str]) -> list[str]:
    """Return a sentence for each import in `source` that points to a higher level than `module` is on."""
    own = level_of(module)
    return [
        f"{module}, line {line}: imports {target} (level {level_of(target)}) from level {own}; "
        "move what is needed down, or hand it in as an argument"
        for line, target in imports_of(source, package=package, modules=modules)
        if level_of(target) > own
    ]


MODULES = known_modules()


def test_every_module_imports_only_from_its_own_level_or_below() -> None:
    found = []
    for module, path in MODULES.items():
        package = ".".join(["slackwater", *path.relative_to(PACKAGE).parent.parts])
        source = path.read_text(encoding="utf-8")
        found += upward_imports(source, module=module, package=package, modules=frozenset(MODULES))
    assert not found, "\n".join(found)


CORE = ("eventtime", "operators.state", "operators.step", "connectors", "plan", "engine")


@pytest.mark.parametrize("room", CORE)
def test_core_knows_no_windows_and_no_aggregates(room: str) -> None:
    """They ask the step: a window is one kind of it."""
    for module, path in MODULES.items():
        if f"{module}.".startswith(f"slackwater.{room}.") and not module.startswith("slackwater.plan.streams"):
            source = path.read_text(encoding="utf-8")
            names = [name for _, name in imports_of(source, package=module, modules=frozenset(MODULES))]
            known = [
                name
                for name in names
                if name.startswith(("slackwater.operators.windows", "slackwater.operators.aggregates"))
            ]
            assert not known, f"{module} imports {known}"
            texts = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
            assert not {"window_start", "window_end", "pane_index"} & texts, f"{module} names a column of windows"


KNOWN = frozenset({"slackwater.base.errors", "slackwater.spark.state", "slackwater.operators.windows.aligned"})


@pytest.mark.parametrize(
    "source",
    [
        "import slackwater",
        "from slackwater import stream",
        "import slackwater.spark.state",
        "from slackwater.spark import state",
        "importlib.import_module('slackwater.spark.state')",
        "import_module('slackwater.spark.state').merge()",
        "import_module(f'slackwater.spark.{name}')",
        "__import__('slackwater.spark.state')",
        "from slackwater.spark.state import merge",
        "from ...spark.state import merge",
        "from ...spark import state",
        "def late():\n    from slackwater.spark.state import merge",
        "if TYPE_CHECKING:\n    from slackwater.spark.state import State",
    ],
)
def test_an_import_that_points_up_is_found_however_it_is_written(source: str) -> None:
    found = upward_imports(
        source, module="slackwater.operators.windows.aligned", package="slackwater.operators.windows", modules=KNOWN
    )
    assert len(found) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import polars as pl",
        "from slackwater.base import errors",
        "from slackwater.base.errors import refuse",
        "from slackwater.base.durations import to_ms",
        "from . import definitions",
        "from .definitions import Tumbling",
        "from ...base.errors import refuse",
    ],
)
def test_an_import_that_points_down_or_sideways_is_allowed(source: str) -> None:
    found = upward_imports(
        source, module="slackwater.operators.windows.aligned", package="slackwater.operators.windows", modules=KNOWN
    )
    assert not found


def test_a_module_without_a_level_is_refused_with_words_on_what_to_do() -> None:
    with pytest.raises(UnknownModuleError, match=r"give `slackwater\.tides` one in LEVELS"):
        level_of("slackwater.tides.moon")
