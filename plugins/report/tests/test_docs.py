"""What docs/reports.md shows is true."""

from __future__ import annotations

import re
import tomllib

from evalcore.values.convert import structure
from evalcore.values.redaction import RedactionRules, redaction
from evalcore.values.task import Dataset
from evalcore_report.picks import MOST
from evalcore_report.renderer import TRANSCRIPTS_BYTES
from tests.oracles import ROOT

PAGE = (ROOT / "docs" / "reports.md").read_text("utf-8")


def test_the_rules_of_the_page_are_rules() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    rules = structure(tomllib.loads(block), RedactionRules)
    found = redaction(Dataset("d", "1", "2026-01-01", "x", "y"), "bfcl-simple-python", rules)
    assert found.withheld == {"answers", "questions"}
    assert found.text("project nightingale, 555-0123") == "[withheld], [withheld]"


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    assert f"up to {MOST} and {TRANSCRIPTS_BYTES / 1e6:g} MB" in PAGE


def test_its_pictures_are_there_and_small() -> None:
    pictures = [ROOT / "docs" / name for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)]
    assert len(pictures) >= 3
    sizes = [picture.stat().st_size for picture in pictures]
    assert max(sizes) < 200_000 and sum(sizes) < 1_000_000
