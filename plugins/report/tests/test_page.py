"""The page of a run as a reader's browser shows it: its words, its numbers, its manners."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evalcore.engine.services import LocalServices
from evalcore.plugins import load
from evalcore.report.load import load_report
from evalcore.report.words import percent
from evalcore.values.descriptors import RendererInfo
from evalcore.values.redaction import MARK, RedactionRules
from evalcore.values.task import Dataset
from evalcore_report.charts import Named
from evalcore_report.figures import by_cluster
from evalcore_report.renderer import HtmlPage, encode
from evalcore_report.words import whole_percent
from plugins.report.tests import runs
from plugins.report.tests.browser import ENTER, TAB, Browser

FOCUS = "const e = document.activeElement; return [e.tagName, e.id, e.textContent.slice(0, 40)]"
CONTRAST = """
const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => channel(Number(v)));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") return colour;
  }
};
const ratio = (e) => {
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
return Object.fromEntries(arguments[0].map((s) => [s, document.querySelector(s)])
  .filter(([, e]) => e).map(([s, e]) => [s, ratio(e)]));
"""
TEXTS = (
    "h1", ".lead", ".chip", ".chip.warn", ".quiet", "a", "td", "td small", "td.all", "td.mix", "td.nil", "thead th",
    ".arm .say", "summary",
)  # fmt: skip
ROWS = "return [...document.querySelectorAll('#tasks-0 tbody tr')]"


def write(run: Path, folder: Path, **options: Any) -> Path:
    """The page of a run, as a file."""
    info = load(only=("report",)).get(RendererInfo, "format", "html")
    (path,) = HtmlPage(LocalServices(load(only=()), run), info).render(run, folder, **options)
    return path


@pytest.fixture(scope="module")
def page(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(sample, tmp_path_factory.mktemp("page"))


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_sentence_says_what_came_out_and_the_next_how_far_it_goes(
    window: Browser, page: Path, sample: Path
) -> None:
    report = load_report(sample)
    agents = [c for c in report.cells if not c.arm.control]
    best = max(agents, key=lambda c: c.metrics["pass@1"].value or 0)
    window.open(page.as_uri())
    rate = best.metrics["pass@1"].value
    assert rate is not None
    assert (
        window.js("return document.querySelector('h1').textContent")
        == f"{best.arm.arm.label} solved the most of sums: {whole_percent(rate)}."
    )
    assert "No comparison was declared before this run" in window.js(
        "return document.querySelector('.lead').textContent"
    )


def test_every_number_of_the_table_is_the_report_s_with_isolation_and_provenance_beside_it(
    window: Browser, page: Path, sample: Path
) -> None:
    window.open(page.as_uri())
    rows = window.js(
        "return [...document.querySelectorAll('#numbers-0 tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"
    )
    cells = load_report(sample).cells
    assert len(rows) == len(cells) == 4
    for row, cell in zip(rows, cells, strict=True):
        metric = cell.metrics["pass@1"]
        assert metric.value is not None and metric.low is not None and metric.high is not None
        assert "isolation none, live" in row[0]
        assert row[1].split("\n") == [percent(metric.value), f"{100 * metric.low:.1f}–{100 * metric.high:.1f} %"]
        assert row[2].startswith(f"{cell.graded} of {cell.planned}")


def test_a_task_s_cell_says_how_many_of_its_tries_were_solved(window: Browser, page: Path, sample: Path) -> None:
    window.open(page.as_uri())
    table = window.js(ROWS + ".map((r) => [...r.cells].map((c) => c.firstChild.textContent))")
    first = load_report(sample).cells[0]
    for row in first.detail.tasks:
        graded, solved = row.counts
        assert [r[1] for r in table if r[0] == row.task] == [f"{solved}/{graded}" if graded else "no result"]


def test_only_controls_are_no_measurement(tmp_path: Path) -> None:
    oracle, bench = runs.control("oracle"), runs.benchmark("sums", 1)
    run = runs.write(
        tmp_path / "run", runs.stamp([oracle], [bench], 1, "run"), [runs.trial("sums", "a", oracle, 1, "pass")]
    )
    text = encode(run, load_report(run), None).decode()
    assert "<h1>No agent was measured: only the controls ran.</h1>" in text
    assert "The oracle solved every task." in text


def test_a_run_that_has_not_begun_has_a_page(tmp_path: Path) -> None:
    run = runs.write(tmp_path / "run", runs.stamp([runs.agent("a")], [runs.benchmark("sums", 3)], 2, "run"), [])
    text = encode(run, load_report(run), None).decode()
    assert "<h1>Nothing has been graded yet.</h1>" in text
    assert "0 of 6 planned trials have run" in text


# ── what it does not do ──────────────────────────────────────────────────────────────────────────────────────────────


def test_it_opens_from_a_file_without_complaint_and_asks_nothing_of_any_network(window: Browser, page: Path) -> None:
    window.open(page.as_uri())
    assert window.js("return document.querySelectorAll('svg.chart').length") >= 6
    assert window.complaints() == []
    assert window.requests() == []


def test_hostile_texts_are_texts(window: Browser, tmp_path: Path) -> None:
    path = write(runs.hostile(tmp_path / "run"), tmp_path)
    window.open(path.as_uri())
    assert window.js("return document.title") == "sample: run · evalcore"
    counted = "return ['script', 'img', 'iframe', 'object', 'link'].map((n) => document.querySelectorAll(n).length)"
    assert window.js(counted) == [1, 0, 0, 0, 0]
    shown = window.js("return document.body.textContent")
    assert "<script>document.title='owned'</script>" in shown
    assert "␛[31mred␇⟦U+202E⟧evil" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", shown)
    assert window.complaints() == []
    assert window.requests() == []


def test_no_script_but_ours_would_run(window: Browser, page: Path) -> None:
    window.open(page.as_uri())
    window.js("const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)")
    window.js("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned = 1\">')")
    assert window.js("return window.owned") is None
    assert len([c for c in window.complaints() if "Content Security Policy" in c]) >= 2


# ── light and dark, phone and keyboard ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_the_contrast_that_people_need(window: Browser, page: Path, scheme: str) -> None:
    window.colours(scheme)
    window.open(page.as_uri())
    ratios = window.js(CONTRAST, TEXTS)
    assert len(ratios) >= 12
    assert {what: round(ratio, 2) for what, ratio in ratios.items() if ratio < 4.5} == {}


def test_it_follows_the_system_s_colours_until_the_reader_chooses(window: Browser, page: Path) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    window.open(page.as_uri())
    light = window.js(ground)
    window.colours("dark")
    dark = window.js(ground)
    assert light != dark
    window.js("document.getElementById('theme').click()")
    assert window.js("return document.getElementById('theme').textContent") == "Colours: light"
    assert window.js(ground) == light
    window.js("localStorage.removeItem('evalcore-theme')")


def test_a_phone_never_scrolls_sideways(window: Browser, page: Path, tmp_path: Path) -> None:
    for path in (page, write(runs.hostile(tmp_path / "run"), tmp_path)):
        window.size(360, 740, phone=True)
        window.open(path.as_uri())
        window.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert window.js("return [document.documentElement.scrollWidth, window.innerWidth]") == [360, 360]


def test_the_keyboard_reaches_the_results_and_sorts_a_table(window: Browser, page: Path) -> None:
    window.open(page.as_uri())
    window.press(TAB)
    assert window.js(FOCUS) == ["A", "", "Skip to the results"]
    window.press(ENTER)
    assert window.js("return location.hash") == "#main"
    window.until(
        "return new Promise((done) => setTimeout(() => done(true), 200))"
    )  # all that a change of hash sets off
    assert window.js("return document.activeElement.id") == "main"
    window.js("document.querySelector('#tasks-0 th button').focus()")
    window.press(TAB)
    window.press(ENTER)
    assert (
        window.js("return document.querySelectorAll('#tasks-0 thead th')[1].getAttribute('aria-sort')") == "ascending"
    )
    shares = "return [...document.querySelectorAll('#tasks-0 tbody tr')].map((r) => Number(r.cells[1].dataset.v))"
    assert window.js(shares) == sorted(window.js(shares))
    window.press(ENTER)
    assert (
        window.js("return document.querySelectorAll('#tasks-0 thead th')[1].getAttribute('aria-sort')") == "descending"
    )
    assert window.js(shares) == sorted(window.js(shares), reverse=True)


def test_tasks_are_found_by_name_and_by_what_is_worth_a_look(window: Browser, page: Path) -> None:
    window.open(page.as_uri())
    window.js("document.querySelector('.controls input').focus()")
    window.press(*"003")
    visible = ROWS + ".filter((r) => !r.hidden).map((r) => r.cells[0].textContent)"
    assert window.js(visible) == ["sum-003"]
    assert window.js("return document.querySelector('.controls output').textContent") == "1 of 24 shown"
    window.js(
        "const [find, show] = document.querySelectorAll('.controls input, .controls select');"
        "find.value = ''; show.value = 'differ'; show.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    rows = ROWS + ".filter((r) => !r.hidden).map((r) => [...r.cells].slice(1).map((c) => c.dataset.v))"
    found = window.js(rows)
    assert 0 < len(found) < 25 and all(len({v for v in row if v}) > 1 for row in found)


def test_a_link_to_a_trial_opens_its_transcript(window: Browser, page: Path) -> None:
    window.open(page.as_uri())
    window.js("document.querySelector('#tasks-0 td a').click()")
    opened = window.until(
        "return document.querySelectorAll('details[open]').length && document.querySelector('details[open]').innerText"
    )
    assert "I will look it up." in opened and "The answer is 4." in opened
    assert window.js(FOCUS)[0] == "SUMMARY"


class Outline(HTMLParser):
    """What a screen reader goes by."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_a_screen_reader_finds_its_way(page: Path) -> None:
    outline = Outline(page.read_text("utf-8"))
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert outline.all("html")[0]["lang"] == "en"
    assert len(outline.all("h1")) == len(outline.all("main")) == 1
    assert all(a.get("role") == "img" and a.get("aria-label") for a in outline.all("svg"))
    assert len(outline.all("table")) == len(outline.all("caption")) == 3
    assert all(a.get("scope") in ("col", "row") for a in outline.all("th"))
    targets = {f"#{i}" for i in ids}
    assert all(a["href"] in targets for a in outline.all("a"))


# ── a copy to publish ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_public_copy_leaves_out_what_the_dataset_s_terms_forbid(tmp_path: Path) -> None:
    closed = Dataset("GUARDED", "v1", "2026-03-01", "own terms", "made up", withhold=("questions", "answers"))
    arm, bench = runs.agent("a"), runs.benchmark("sums", 1, dataset=closed)
    one = runs.trial("sums", "t", arm, 1, "fail", question="QUESTION", said="SAID", result="RESULT", answer="ANSWER")
    run = runs.write(tmp_path / "run", runs.stamp([arm], [bench], 1, "run"), [one])
    private = write(run, tmp_path / "private").read_text("utf-8")
    public = write(run, tmp_path / "public", public=True).read_text("utf-8")
    secrets = ("QUESTION", "SAID", "RESULT", "ANSWER", "expected")
    assert [text in private for text in secrets] == [True] * 5
    assert [text in public for text in secrets] == [False] * 5
    assert MARK in public and "answers and questions are withheld" in public
    assert "calls search" in public  # the shape stays


def test_a_user_s_rules_hold_everywhere_on_the_page(sample: Path, tmp_path: Path) -> None:
    rules = RedactionRules(texts=("model-a",), patterns=("sum-00[0-9]",))
    text = write(sample, tmp_path, public=True, rules=rules).read_text("utf-8")
    assert "model-a" not in text and not re.search("sum-00[0-9]", text)
    assert "model-b" in text and "sum-010" in text
    assert "Some texts were taken out." in text


def test_a_copy_from_which_nothing_had_to_go_says_so(sample: Path, tmp_path: Path) -> None:
    assert "Nothing had to be withheld." in write(sample, tmp_path, public=True).read_text("utf-8")


def test_few_clusters_are_named_with_what_each_arm_solved(tmp_path: Path) -> None:
    arms = [runs.agent("a"), runs.agent("b")]
    clusters = {f"t{i}": f"topic-{i % 3}" for i in range(9)}
    bench = evolve(runs.benchmark("sums", 9, cluster_of=clusters), clusters=3)
    run = runs.stamp(arms, [bench], 1, "r")
    solved = {"a": {"topic-0", "topic-1"}, "b": {"topic-1"}}
    pairs = [
        runs.trial("sums", task, arm, 1, "pass" if cluster in solved[arm.arm.handle] else "fail")
        for arm in arms
        for task, cluster in clusters.items()
    ]
    report = load_report(runs.write(tmp_path / "r", run, pairs))
    named = [Named(cell, cell.arm.arm.handle, i) for i, cell in enumerate(report.cells)]
    assert [(s["cluster"], s["name"], s["share"], s["n"]) for s in by_cluster(named)] == [
        ("topic-1", "a", 1.0, 3),
        ("topic-1", "b", 1.0, 3),
        ("topic-0", "a", 1.0, 3),
        ("topic-0", "b", 0.0, 3),
        ("topic-2", "a", 0.0, 3),
        ("topic-2", "b", 0.0, 3),
    ]
    text = encode(tmp_path / "r", report, None).decode()
    assert "Difficulty by cluster" in text and ">topic-2<" in text and "Difficulty of the" not in text


def test_many_clusters_or_tasks_of_their_own_are_counted_by_how_hard_they_are(tmp_path: Path) -> None:
    report = load_report(runs.sample(tmp_path / "r"))
    text = encode(tmp_path / "r", report, None).decode()
    assert "Difficulty of the tasks" in text and "Difficulty by cluster" not in text


def test_what_is_written_in_a_picture_is_not_rounded(tmp_path: Path) -> None:
    arms = [runs.agent("a"), runs.agent("b")]
    run = runs.stamp(arms, [runs.benchmark("sums", 3)], 1, "r")
    pairs = [
        runs.trial("sums", f"t{i}", arm, 1, "pass", cost=0.004 * (n + 1))
        for n, arm in enumerate(arms)
        for i in range(3)
    ]
    report = load_report(runs.write(tmp_path / "r", run, pairs))
    picture = encode(tmp_path / "r", report, None).decode().split("Accuracy and cost</h3>")[1].split("</svg>")[0]
    ticks = re.findall(r">\$([0-9.]+)<", picture)
    assert len(ticks) > 3 and len(set(ticks)) == len(ticks)
    assert "0.002" in ticks
