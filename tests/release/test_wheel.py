"""The wheel: all of the package is in it, and it works where there is no checkout."""

from __future__ import annotations

import email
import tarfile
import zipfile
from pathlib import Path

import pytest

from slackwater.base.version import VERSION
from tests.release.built import ROOT, borrow_packages, build, command, empty_environment, install

PACKAGE = ROOT / "src" / "slackwater"
FILES = {
    path.relative_to(PACKAGE.parent).as_posix()
    for path in PACKAGE.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def python(dist: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the Python of an environment with the wheel and, borrowed, what it depends on."""
    python = empty_environment(tmp_path_factory.mktemp("environment"))
    borrow_packages(python)
    install(python, "--no-deps", "--no-index", dist[1])
    return python


def test_wheel_has_every_file_of_the_package_and_no_other(dist: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(dist[1]).namelist())
    assert {name for name in names if ".dist-info/" not in name} == FILES
    assert {"slackwater/py.typed", "slackwater/observe/page/static/index.html"} <= names


def test_wheel_has_metadata_readme_and_licence(dist: tuple[Path, Path]) -> None:
    wheel = zipfile.ZipFile(dist[1])
    [place] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(place))
    assert (metadata["Name"], metadata["Version"]) == ("slackwater", VERSION)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


def test_wheel_is_for_every_platform(dist: tuple[Path, Path]) -> None:
    assert dist[1].name == f"slackwater-{VERSION}-py3-none-any.whl"


def test_source_distribution_has_what_the_wheel_is_built_from(dist: tuple[Path, Path]) -> None:
    with tarfile.open(dist[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in FILES} | {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"} <= names
    assert not {name for name in names if "__pycache__" in name or name.startswith(("tests", ".venv"))}


def test_installed_package_is_the_wheel_and_not_the_checkout(python: Path, tmp_path: Path) -> None:
    place = command(python, "-c", "import slackwater; print(slackwater.__file__)", cwd=tmp_path)
    assert Path(place).is_relative_to(python.parents[1])
    assert command(python.with_name("slackwater"), "--version", cwd=tmp_path) == f"slackwater {VERSION}\n"


def test_page_and_alert_rules_come_with_the_wheel(python: Path, tmp_path: Path) -> None:
    command(python.with_name("slackwater"), "monitor", "generate", "--out", "monitoring", cwd=tmp_path)
    assert (tmp_path / "monitoring" / "slackwater.rules.yml").stat().st_size > 1_000
    script = "from slackwater.observe.page.app import static; print(static('index.html').status_code)"
    assert command(python, "-c", script, cwd=tmp_path) == "200\n"


def test_new_project_of_the_wheel_passes_its_own_test(python: Path, tmp_path: Path) -> None:
    command(python.with_name("slackwater"), "new", "shop", cwd=tmp_path)
    assert "4 passed" in command("make", "test", f"PYTHON={python}", cwd=tmp_path / "shop")
