"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape


def facts_table(caption: str, facts: Mapping[str, str], *, links: Mapping[str, str] | None = None) -> str:
    """Return an HTML table with a line for each fact, then one for each link."""
    lines = [f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items()]
    for name, address in (links or {}).items():
        place = escape(address)
        lines.append(f'<tr><th>{escape(name)}</th><td><a href="{place}" target="_blank">{place}</a></td></tr>')
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def rows_table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table with a head and rows of text."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ["".join(f"<td>{escape(text)}</td>" for text in row) for row in rows]
    return f"<table><caption>{escape(caption)}</caption><tr>{top}</tr>{''.join(f'<tr>{x}</tr>' for x in lines)}</table>"
