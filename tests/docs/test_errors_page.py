from __future__ import annotations

from slackwater.base.errors.catalogue import CATALOGUE
from tests.docs.errors_page import FAMILIES, FOLDER, files, folder


def test_pages_of_errors_are_current() -> None:
    written = {path: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert written == folder(), "run `python -m tests.docs.errors_page`"


def test_every_file_of_the_catalogue_has_one_page() -> None:
    assert sorted(family.file for family in FAMILIES) == sorted(files())


def test_every_code_is_in_one_family() -> None:
    assert sorted(code for family in FAMILIES for code in family.codes()) == list(CATALOGUE)
