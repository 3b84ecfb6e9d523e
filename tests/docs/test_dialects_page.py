from __future__ import annotations

from collections.abc import Mapping

import pytest

from evalcore.wires.gateway.dialects.fields import DIALECTS, PARTS, TABLE, Row
from tests.oracles import ROOT

PAGE = ROOT / "docs" / "dialects.md"
WORDS = {"openai-chat": "Chat Completions", "openai-responses": "Responses", "anthropic-messages": "Messages"}


def rows(source: str, table: Mapping[str, Row], what: str) -> str:
    """One table of the page, from the table in the code."""
    others = [dialect for dialect in DIALECTS if dialect != source]
    lines = [f"| {what} | to {WORDS[others[0]]} | to {WORDS[others[1]]} | |", "|---|---|---|---|"]
    for row in table.values():
        name = row.field if row.field.startswith("every") else ", ".join(f"`{f}`" for f in row.field.split(", "))
        lines.append(f"| {name} | {row.to[others[0]]} | {row.to[others[1]]} | {row.note} |")
    return "\n".join(lines).replace("|  |", "| |") + "\n"


@pytest.mark.parametrize("source", DIALECTS)
def test_the_page_shows_the_tables_that_the_translation_goes_by(source: str) -> None:
    page = PAGE.read_text()
    assert rows(source, TABLE[source], "field") in page
    assert rows(source, PARTS[source], "in the conversation") in page
