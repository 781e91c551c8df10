"""Imports point one way: from what users call down to what it stands on, never back.

The table gives each module, or everything below a package, its level. A module may import from its own
level or a lower one. Imports inside functions and those for types alone count as well: both make one
module depend on another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "slackwater"

LEVELS = {
    "slackwater.cli": 90,
    "slackwater.__main__": 90,
    "slackwater.demo": 88,  # written with the public names, as a user would
    "slackwater.__init__": 85,
    "slackwater.testing": 80,
    "slackwater.lateness_report": 78,
    "slackwater.lateness_picture": 79,
    "slackwater.pipeline": 75,
    "slackwater.runtime": 70,
    "slackwater.explain": 65,
    "slackwater.planner": 60,
    "slackwater.unread": 58,
    "slackwater.engine": 40,
    "slackwater.plan": 35,
    "slackwater.streams": 35,
    "slackwater.delta": 15,
    "slackwater.kafka": 15,
    "slackwater.kafka.exporting": 32,
    "slackwater.kafka.playing": 32,
    "slackwater.bridge": 33,
    "slackwater.dead_letters": 33,
    "slackwater.log_writer": 30,
    "slackwater.operators": 30,
    "slackwater.sinks": 25,
    "slackwater.sources": 25,
    "slackwater.aggregates": 20,
    "slackwater.formats": 20,
    "slackwater.row_schemas": 20,
    "slackwater.rowops": 20,
    "slackwater.triggers": 20,
    "slackwater.windows": 20,
    "slackwater.engine.stable_hash": 10,
    "slackwater.eventtime": 10,
    "slackwater.expressions": 10,
    "slackwater.jars": 10,
    "slackwater.secrets": 5,
    "slackwater.stopping": 5,
    "slackwater.local_folders": 10,
    "slackwater.crash_points": 0,
    "slackwater.spark_settings": 0,
    "slackwater.stored": 0,
    "slackwater.catalogue": 0,
    "slackwater.errors": 0,
}


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


def module_name(path: Path, *, root: Path = PACKAGE) -> str:
    """Return a file's dotted name; a package is its folder, the top package `slackwater.__init__`."""
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    if parts[-1] == "__init__" and len(parts) > 2:
        parts.pop()
    return ".".join(parts)


def known_modules() -> dict[str, Path]:
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(source: str, *, package: str, modules: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and module of each import of Slackwater's own, wherever in the source it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            # `from slackwater import errors` names a module, `from slackwater import stream` a thing in one.
            whole = [f"{base}.{alias.name}" for alias in node.names]
            names = list(dict.fromkeys(name if name in modules else base for name in whole))
        else:
            continue
        for name in names:
            if name == "slackwater":
                yield node.lineno, "slackwater.__init__"
            elif name.startswith("slackwater."):
                yield node.lineno, name


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


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_imports_only_from_its_own_level_or_below(module: str) -> None:
    path = MODULES[module]
    package = ".".join(["slackwater", *path.relative_to(PACKAGE).parent.parts])
    found = upward_imports(path.read_text(encoding="utf-8"), module=module, package=package, modules=frozenset(MODULES))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", sorted(name for name in LEVELS if name.count(".") > 1))
def test_package_above_a_low_module_imports_nothing_higher(name: str) -> None:
    """Importing `engine.stable_hash` runs `engine/__init__.py` first, so that file counts as low, too."""
    package = name.rpartition(".")[0]
    path = MODULES.get(package)
    if path is None:
        return
    found = upward_imports(path.read_text(encoding="utf-8"), module=name, package=package, modules=frozenset(MODULES))
    assert not found, "\n".join(found)


KNOWN = frozenset({"slackwater.errors", "slackwater.engine.state", "slackwater.windows.assign"})


@pytest.mark.parametrize(
    "source",
    [
        "import slackwater",
        "from slackwater import stream",
        "import slackwater.engine.state",
        "from slackwater.engine import state",
        "from slackwater.engine.state import merge",
        "from ..engine.state import merge",
        "from ..engine import state",
        "def late():\n    from slackwater.engine.state import merge",
        "if TYPE_CHECKING:\n    from slackwater.engine.state import State",
    ],
)
def test_an_import_that_points_up_is_found_however_it_is_written(source: str) -> None:
    found = upward_imports(source, module="slackwater.windows.assign", package="slackwater.windows", modules=KNOWN)
    assert len(found) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import polars as pl",
        "from slackwater import errors",
        "from slackwater.errors import refuse",
        "from slackwater.eventtime.durations import to_ms",
        "from . import definitions",
        "from .definitions import Tumbling",
        "from ..errors import refuse",
    ],
)
def test_an_import_that_points_down_or_sideways_is_allowed(source: str) -> None:
    found = upward_imports(source, module="slackwater.windows.assign", package="slackwater.windows", modules=KNOWN)
    assert not found


def test_a_module_without_a_level_is_refused_with_words_on_what_to_do() -> None:
    with pytest.raises(UnknownModuleError, match=r"give `slackwater\.tides` one in LEVELS"):
        level_of("slackwater.tides.moon")
