"""The documentation as a site: complete, without dead links, and useful without a network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser import browser, found
from tests.conftest import Needs
from tests.docs.pages import ROOT
from tests.docs.site import build


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder


def small(folder: Path, pages: dict[str, str], nav: list[str]) -> Path:
    """Return our configuration for other pages."""
    own = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(
        own[: own.index("\nnav:")] + "\nnav:\n" + "".join(f"  - {page}\n" for page in nav)
    )
    (folder / "docs").mkdir()
    for name, text in pages.items():
        (folder / "docs" / name).write_text(text)
    return folder / "mkdocs.yml"


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    html = [page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html") for page in pages]
    assert [str(page) for page in html if not (site / page).exists()] == []


def test_build_fails_on_dead_links_and_forgotten_pages(tmp_path: Path) -> None:
    pages = {
        "README.md": "# Home\n\n[No page](gone.md), [no anchor](#gone), [no anchor there](time.md#gone)\n",
        "time.md": "# Time\n",
        "forgotten.md": "# Forgotten\n",
    }
    built = build(tmp_path / "site", config=small(tmp_path, pages, ["README.md", "time.md"]))
    assert built.returncode != 0
    assert "contains a link 'gone.md', but the target is not found" in built.stderr
    assert "contains a link '#gone', but there is no such anchor" in built.stderr
    assert "contains a link 'time.md#gone', but the doc 'time.md' does not contain an anchor" in built.stderr
    assert re.search(r"not included in the \"nav\".*\n.*forgotten.md", built.stderr)


def test_links_open_files(site: Path) -> None:
    """A link to a folder shows its list of files when the site is opened from the file system."""
    folders = {
        f"{page.relative_to(site)}: {link}"
        for page in site.rglob("*.html")
        for link in re.findall(r'\bhref="([^"#?]*)', page.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:|//", link) and link and (page.parent / link).is_dir()
    }
    assert sorted(folders) == []


def test_site_loads_nothing_from_the_network(site: Path) -> None:
    html = "".join(page.read_text(encoding="utf-8") for page in site.rglob("*.html"))
    styles = "".join(page.read_text(encoding="utf-8") for page in site.rglob("*.css"))
    assert re.findall(r"<(?:script|img|iframe)[^>]*src=.?(?:https?:)?//[^>]*>", html) == []
    assert re.findall(r"<link[^>]*href=.?(?:https?:)?//[^>]*>", html) == []
    assert re.findall(r"(?:url\(|@import)[\"' ]*(?:https?:)?//[^)]*", styles) == []


def test_search_works_from_a_file(site: Path, needs: Needs) -> None:
    program = found()
    needs(program, "the site is tried in Chromium")
    with browser(str(program)) as opened:
        for page in ("index.html", "reference/errors/joins.html"):
            tab = opened()
            tab.open(f"{(site / page).as_uri()}?q=BATCH_INPUT_CHANGED")
            tab.until("document.querySelector('.md-search-result__link[href*=\"#batch_input_changed\"]') !== null")
            assert tab.trouble == []
