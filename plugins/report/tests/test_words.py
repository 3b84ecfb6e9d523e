"""What the first screen says of a comparison, by its verdict."""

from __future__ import annotations

import pytest
from attrs import evolve

from evalcore.report.analysis import ContrastResult
from evalcore.report.build import ReportBuilder
from evalcore.report.model import Report
from evalcore.stats.verdicts import VerdictWord
from evalcore_report.hero import headline
from evalcore_report.markup import Html, visible
from evalcore_report.words import whole_percent
from plugins.report.tests import runs

FOUND = ContrastResult(
    "new", "old", "d1", "d2", "sums", "pass@1", "share", True, (), "better", True, "why", "all of it in words",
    values=(0.68, 0.5), effect=0.18, low=0.04, high=0.31, settle="Buy 40 more tasks.", margin=0.05,
)  # fmt: skip


@pytest.fixture(scope="module")
def measured() -> Report:
    """A report of one arm with a graded trial."""
    arm, bench = runs.agent("new"), runs.benchmark("sums", 1)
    builder = ReportBuilder(runs.stamp([arm], [bench], 1, "run"))
    attempt, grading, _ = runs.trial("sums", "t", arm, 1, "pass")
    builder.add(attempt, grading)
    return builder.finish()


@pytest.mark.parametrize("verdict, title, lead", [
    ("better", "new solves more of sums than old (68 % against 50 % solved).",
     "The gap seen is +18 points, and everything from +4 to +31 fits the trials: no difference does not."),
    ("worse", "new solves less of sums than old", "no difference does not"),
    ("inconclusive", "These trials cannot say whether new or old is better", "chance alone does as much too often"),
    ("candidate", "new and old may differ on sums: a lead, and no finding yet", "test it in a study of its own"),
    ("equivalent", "new and old solve equally much of sums, to within 5 points", "The gap seen is +18 points"),
    ("non-inferior", "new is not worse than old on sums by 5 points or more", "The gap seen is +18 points"),
    ("negligible", "new and old differ on sums, by less than the 5 points", "The gap seen is +18 points"),
    ("refused", "new and old cannot be compared on sums.", "Why."),
])  # fmt: skip
def test_each_verdict_has_its_sentence(measured: Report, verdict: VerdictWord, title: str, lead: str) -> None:
    said, leads = headline(evolve(measured, contrasts=(evolve(FOUND, verdict=verdict),)))
    plain = said.replace("\N{NO-BREAK SPACE}", " ")
    assert plain.startswith(title)
    assert lead in leads[0]
    assert ("Buy 40 more tasks." in leads) == (verdict in ("inconclusive", "candidate"))


def test_an_interval_without_zero_is_no_verdict_yet(measured: Report) -> None:
    across = evolve(FOUND, verdict="inconclusive", low=-0.04)
    assert "it could be real, and it could be none" in headline(evolve(measured, contrasts=(across,)))[1][0]
    beside = evolve(FOUND, verdict="inconclusive")
    assert "chance alone does as much too often" in headline(evolve(measured, contrasts=(beside,)))[1][0]


def test_one_arm_alone_is_told_with_what_fits(measured: Report) -> None:
    said, leads = headline(measured)
    assert said == f"react × openai/new solved {whole_percent(1.0)} of sums."
    assert leads[0].startswith("That is what 1 trial showed; there is no interval:")


@pytest.mark.parametrize("rate, text", [(0.0, "0 %"), (0.001, "<1 %"), (0.5, "50 %"), (0.999, ">99 %"), (1.0, "100 %")])
def test_only_nothing_and_all_read_so(rate: float, text: str) -> None:
    assert whole_percent(rate).replace("\N{NO-BREAK SPACE}", " ") == text


def test_what_cannot_be_seen_is_shown() -> None:
    assert visible("a\x00b\x1b[1m\u202ec\u200bd\ud800\r\n\te\x7f") == "a␀b␛[1m⟦U+202E⟧c⟦U+200B⟧d⟦U+D800⟧\n\te␡"


def test_no_text_becomes_markup() -> None:
    h = Html()
    assert h("p", "<b>&\"'", title='"><x>') == '<p title="&quot;&gt;&lt;x&gt;">&lt;b&gt;&amp;&quot;&#x27;</p>'
    assert h("p", ["a", h("b", "c"), None, (x for x in "de")]) == "<p>a<b>c</b>de</p>"
    assert h.prose("run `x <y>` now") == "run <code>x &lt;y&gt;</code> now"
    assert h.prose("one ` alone") == "one ` alone"
    assert (
        Html(lambda text: text.replace("s", "*"))("p", "secret", title="so", class_="s")
        == '<p title="*o" class="s">*ecret</p>'
    )
