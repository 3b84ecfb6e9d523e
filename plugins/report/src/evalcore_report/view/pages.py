"""What a request of the view gets: HTML, made from the runs as they are now."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote, quote_plus, urlencode

from evalcore.contracts import Metric
from evalcore.engine.store import TraceStore
from evalcore.errors import ConfigError, EvalcoreError, UnknownNameError
from evalcore.report.model import Cell, Report
from evalcore.report.words import plural, seconds
from evalcore.values.descriptors import MetricInfo
from evalcore.values.redaction import NOTHING
from evalcore.values.stamp import ArmStamp
from evalcore_report.document import document
from evalcore_report.markup import Child, Html, Markup
from evalcore_report.page import Shown, page
from evalcore_report.renderer import read_trace
from evalcore_report.tables import Links
from evalcore_report.transcript import Caps, transcript
from evalcore_report.trials import WORDS, Trial
from evalcore_report.view.kept import KeptPages
from evalcore_report.view.library import Library, Run
from evalcore_report.view.search import Found, search

Query: TypeAlias = Mapping[str, str]

PER_PAGE: Final = 200
WAIT_S: Final = 10.0  # that a page which waits for another hangs on before it asks again
LONG_NAME: Final = 40
MOST_LINKS: Final = 3_000  # to single trials, on one page
CAPS: Final = Caps(text=100_000, trial=4_000_000)
H: Final = Html()


class Pages:
    """Every page, by the path below the token."""

    def __init__(
        self,
        folder: Path,
        base: str,
        metrics: Sequence[tuple[MetricInfo, Metric]] = (),
        kept: KeptPages | None = None,
    ) -> None:
        self.library = Library(folder, self._report, metrics, kept, base.strip("/"))
        self._base = base

    @staticmethod
    def nowhere(folder: Path, metrics: Sequence[tuple[MetricInfo, Metric]], kept: KeptPages) -> Pages:
        """Pages that nobody is served: to keep some for a view that is to come."""
        return Pages(folder, f"/{secrets.token_hex(32)}", metrics, kept)

    def get(self, path: str, query: Query) -> tuple[str, bytes]:
        """(content type, content). Raises UnknownNameError for what is not there, EvalcoreError for what is broken."""
        parts = [part for part in path.split("/") if part]
        if not parts:
            return _html(self._index())
        if parts == ["version"]:
            return _text(self._index_mark())
        if parts[0] != "run" or len(parts) not in (2, 3):
            raise UnknownNameError("page", path)
        run = self.library.run(parts[1])
        what = parts[2] if len(parts) == 3 else ""
        if what == "version":
            return _text(self.library.mark_of_page(run, WAIT_S if query.get("wait") else 0.0))
        made = {"": self._run, "trials": self._trials, "trial": self._trial, "side": self._side}.get(what)
        if made is None:
            raise UnknownNameError("page", path)
        return _html(made(run, query))

    def trouble(self, error: EvalcoreError) -> bytes:
        """A page that says what is wrong."""
        parts = [
            H("h1", "This cannot be shown"),
            H("p", str(error)),
            H("p", H.prose(error.hint)) if error.hint else None,
        ]
        return self._page("trouble", H("main", parts, id="main"))

    # ── all runs ──

    def _index_mark(self) -> str:
        runs = list(self._runs())
        return hashlib.sha256("\n".join(r.mark if isinstance(r, Run) else str(r) for r in runs).encode()).hexdigest()[
            :16
        ]

    def _runs(self) -> Iterator[Run | tuple[str, EvalcoreError]]:
        for name in self.library.names():
            try:
                yield self.library.run(name)
            except EvalcoreError as error:
                yield name, error

    def _index(self) -> bytes:
        heads = ("run", "study", "when", "progress", "benchmarks", "configurations", "isolation")
        head = H("tr", [H("th", title, scope="col") for title in heads])
        rows = [self._index_row(found) if isinstance(found, Run) else _broken(*found) for found in self._runs()]
        table = H("table", H("caption", f"{plural(len(rows), 'run')} in {self.library.path}"), H("thead", head),
                  H("tbody", rows), data_sort=True, id="runs-table")  # fmt: skip
        box = H("div", table, class_="scroll", role="region", aria_label="runs", tabindex=0)
        empty = H("p", H.prose("No run here yet: `evalcore run SELECTOR` makes one, and it will show up by itself."))
        content = box if rows else empty
        mark = hashlib.sha256(content.encode()).hexdigest()[:16]
        main = H("main", H("h1", "Runs"), H("section", content, id="runs", data_part=mark), id="main", tabindex=-1)
        return self._page("runs", main, live=f"{self._base}/version")

    def _index_row(self, run: Run) -> Markup:
        stamp = run.stamp
        done = f"{run.attempts:,} attempts, {run.planned:,} trials planned"
        progress = H("td", H("span", "running", class_="live") if run.running else None, H("small", done),
                     data_v=run.attempts / max(1, run.planned))  # fmt: skip
        changed = datetime.fromtimestamp(run.changed, UTC).strftime("%Y-%m-%d %H:%M") if run.changed else "–"
        return H(
            "tr",
            H("th", H("a", run.name, href=self._run_url(run)), scope="row"),
            H("td", stamp.study_name),
            H("td", stamp.created[:16].replace("T", " "), H("small", f"last written {changed}")),
            progress,
            H("td", _some([b.selector for b in stamp.benchmarks])),
            H("td", _some([_arm_name(a) for a in stamp.arms if not a.control] or [_arm_name(a) for a in stamp.arms])),
            H("td", stamp.isolation),
        )

    # ── one run ──

    def _run_url(self, run: Run, what: str = "", **query: str | int) -> str:
        url = f"{self._base}/run/{quote(run.name, safe='')}" + (f"/{what}" if what else "")
        return f"{url}?{urlencode(query)}" if query else url

    def _nav(self, run: Run | None) -> Markup:
        links = [H("a", "all runs", href=self._base + "/")]
        if run is not None:
            links += [
                H("a", f"run {run.name}", href=self._run_url(run)),
                H("a", "trials", href=self._run_url(run, "trials")),
            ]
        return H("nav", H.join([H.join([link, " "]) for link in links]), aria_label="view")

    def _run(self, run: Run, query: Query) -> bytes:
        made = self.library.page(run)
        if made is not None:
            self.library.looked(run)
            return made
        text = f"Reading {plural(run.attempts, 'attempt')} …"
        main = H("main", H("h1", text, role="status"), id="main", tabindex=-1)
        return self._page(f"run {run.name}", main, run=run, live=self._run_url(run, "version", wait=1))

    def _report(self, run: Run, report: Report) -> bytes:
        """The page of a run; the library keeps it."""
        status = f"running: {run.attempts:,} attempts" if run.running else ""
        live, nav = self._run_url(run, "version"), self._nav(run)
        shown = Shown(self._links(run, sum(cell.trials for cell in report.cells)), nav=nav, live=live, status=status)
        return page(H, report, shown)

    def _links(self, run: Run, trials: int) -> Links:
        """From the table of tasks to trials: to each of them, or, where they are many, to those of a task and an arm.

        Relative to the page: the token in 13,620 addresses is a megabyte.
        """
        base = quote(run.name, safe="")
        if trials <= MOST_LINKS:
            return Links(lambda attempt: f"{base}/trial?id={quote(attempt, safe='')}")

        def cell(of: Cell, task: str) -> str:
            return f"{base}/trials?task={quote_plus(task)}&arm={of.arm.arm.digest[:12]}"

        return Links(lambda _: None, cell)

    def _trials(self, run: Run, query: Query) -> bytes:
        """A list of trials, by arm, task and outcome; with a text, those whose transcripts hold it."""
        trials = self.library.trials(run).values()
        exact = query.get("task", "") in {t.attempt.key.task for t in trials}
        chosen = [t for t in trials if _wanted(t, query, exact)]
        text, start = query.get("q", "").strip(), _whole(query.get("from", "0"))
        parts: list[Child] = [H("h1", f"Trials of {run.name}"), self._form(run, query)]
        if text:
            parts.append(self._hits(run, query, chosen, text, start))
        else:
            parts.append(self._list(run, query, chosen, start))
        return self._page(f"trials of {run.name}", H("main", parts, id="main", tabindex=-1), run=run)

    def _form(self, run: Run, query: Query) -> Markup:
        arms = {a.arm.digest: _arm_name(a) for a in run.stamp.arms}
        fields = [
            H("label", "Text in transcripts ", H("input", type="search", name="q", value=query.get("q", ""))),
            H("label", "Task (* is any text) ", H("input", type="search", name="task", value=query.get("task", ""))),
            H("label", "Outcome ", _select("outcome", WORDS, query.get("outcome", ""))),
            H("label", "Configuration ", _select("arm", arms, query.get("arm", ""))),
            H("button", "Show", type="submit"),
        ]  # fmt: skip
        return H("form", fields, class_="controls", method="get", action=self._run_url(run, "trials"), role="search")

    def _list(self, run: Run, query: Query, chosen: Sequence[Trial], start: int) -> Markup:
        rows = [self._row(run, trial) for trial in chosen[start : start + PER_PAGE]]
        heads = ("trial", "configuration", "outcome", "how the agent ended", "time", "tool calls")
        head = H("tr", [H("th", title, scope="col") for title in heads])
        caption = H(
            "caption",
            f"{plural(len(chosen), 'attempt')}, {start + 1:,} to {start + len(rows):,} shown" if rows else "none",
        )
        table = H("table", caption, H("thead", head), H("tbody", rows), data_sort=True, id="trials-table")
        box = H("div", table, class_="scroll", role="region", aria_label="trials", tabindex=0)
        return H.join([box, self._more(run, query, start + PER_PAGE if start + PER_PAGE < len(chosen) else None)])

    def _row(self, run: Run, trial: Trial) -> Markup:
        a = trial.attempt
        ended = a.void.kind if a.void else ": ".join(filter(None, (a.exit.kind, a.exit.limit))) if a.exit else "–"
        word = WORDS.get(trial.outcome, trial.outcome) + (", harm" if trial.harm else "")
        kind = "all" if trial.success else "nil" if trial.outcome in ("fail", "fabricated") else "none"
        cells = [
            H("th", self._link(run, trial), scope="row"),
            H("td", self._arm(run, trial)),
            H("td", word, class_=kind),
            H("td", ended),
            H("td", seconds(a.wall_s), class_="n", data_v=f"{a.wall_s:.6g}"),
            H("td", f"{a.tool_calls:,}", class_="n"),
        ]
        return H("tr", cells)

    def _hits(self, run: Run, query: Query, chosen: Sequence[Trial], text: str, start: int) -> Markup:
        store = TraceStore(run.path)
        try:
            found = search(store, chosen, text, start)
        finally:
            store.close()
        items = []
        for f in found.finds:
            about = f" {self._arm(run, f.trial)}, {WORDS.get(f.trial.outcome, f.trial.outcome)}"
            head = H("p", self._link(run, f.trial), H("span", about, class_="quiet small"))
            items.append(H("li", head, H("pre", f.before, H("mark", f.text), f.after), class_="step"))
        return H.join([_count(found, start), H("ol", items, class_="steps hits"), self._more(run, query, found.next)])

    def _more(self, run: Run, query: Query, start: int | None) -> Markup | None:
        if start is None:
            return None
        others = {name: value for name, value in query.items() if name != "from"}
        url = f"{self._run_url(run, 'trials')}?{urlencode({**others, 'from': start})}"
        return H("p", H("a", "Go on", href=url))

    # ── one trial, or two ──

    def _trial(self, run: Run, query: Query) -> bytes:
        trial = self._find(run, query.get("id", ""))
        others = H("ul", self._others(run, trial), class_="notes")
        parts = [*self._shown(run, trial, "h1"), H("h2", "Other tries at this task"), others]
        return self._page(trial.attempt.key.task, H("main", parts, id="main", tabindex=-1), run=run)

    def _side(self, run: Run, query: Query) -> bytes:
        sides = [self._find(run, query.get(name, "")) for name in ("a", "b")]
        shown = [
            H("section", self._shown(run, trial, "h2"), aria_label=f"side {i}") for i, trial in enumerate(sides, 1)
        ]
        parts = [H("h1", "Side by side"), H("div", shown, class_="sides")]
        return self._page("side by side", H("main", parts, id="main", tabindex=-1), run=run)

    def _find(self, run: Run, attempt: str) -> Trial:
        trials = self.library.trials(run)
        if attempt not in trials:
            raise UnknownNameError("trial", attempt)
        return trials[attempt]

    def _shown(self, run: Run, trial: Trial, heading: str) -> list[Markup]:
        key = trial.attempt.key
        store = TraceStore(run.path)
        try:
            content = transcript(H, trial, read_trace(store, trial), NOTHING, CAPS)
        finally:
            store.close()
        about = f"{self._arm(run, trial)} · {key.benchmark} · try {key.repeat}, attempt {trial.attempt.number}"
        word = WORDS.get(trial.outcome, trial.outcome)
        return [H(heading, f"{key.task}: {word}"), H("p", about, class_="quiet"), content]

    def _others(self, run: Run, trial: Trial) -> Iterator[Markup]:
        key = trial.attempt.key
        for other in self.library.trials(run).values():
            there = other.attempt.key
            if (there.benchmark, there.task) == (key.benchmark, key.task) and other is not trial:
                side = self._run_url(run, "side", a=trial.attempt.id, b=other.attempt.id)
                what = f" {self._arm(run, other)}, {WORDS.get(other.outcome, other.outcome)} · "
                yield H("li", self._link(run, other), what, H("a", "side by side", href=side))

    def _link(self, run: Run, trial: Trial) -> Markup:
        key = trial.attempt.key
        return H("a", f"{key.task}, try {key.repeat}", href=self._run_url(run, "trial", id=trial.attempt.id))

    def _arm(self, run: Run, trial: Trial) -> str:
        digest = trial.attempt.key.arm
        return next((_arm_name(a) for a in run.stamp.arms if a.arm.digest == digest), digest[:12])

    def _page(self, title: str, main: Markup, *, run: Run | None = None, live: str | None = "") -> bytes:
        theme = H("button", "Colours: auto", type="button", id="theme", hidden=True)
        head = H("header", H("strong", "evalcore"), self._nav(run), H("span", class_="spacer"), theme, class_="top")
        return document(H, title, head, main, live=live)


def _arm_name(stamp: ArmStamp) -> str:
    """An arm by its label, or by its handle where the label is long."""
    return stamp.arm.label if len(stamp.arm.label) <= LONG_NAME or not stamp.arm.handle else stamp.arm.handle


def _html(content: bytes) -> tuple[str, bytes]:
    return "text/html; charset=utf-8", content


def _text(content: str) -> tuple[str, bytes]:
    return "text/plain; charset=utf-8", content.encode()


def _broken(name: str, error: EvalcoreError) -> Markup:
    return H("tr", H("th", name, scope="row"), H("td", f"cannot be read: {error}", colspan=6))


def _some(names: Sequence[str], most: int = 4) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _wanted(trial: Trial, query: Query, exact: bool) -> bool:
    """Whether a list is to hold it. `exact`: the text for a task is a task's whole name."""
    task, outcome, arm = (query.get(name, "") for name in ("task", "outcome", "arm"))
    key = trial.attempt.key
    if outcome and trial.outcome != outcome:
        return False
    if arm and not key.arm.startswith(arm):
        return False
    return not task or key.task == task or (not exact and (task in key.task or fnmatchcase(key.task, task)))


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ConfigError(f"expected a number to go on from, got {text!r}")
    return int(text)


def _select(name: str, words: Mapping[str, str], chosen: str) -> Markup:
    options = [H("option", "any", value="")]
    options += [
        H("option", word, value=value, selected=bool(chosen) and value.startswith(chosen))
        for value, word in words.items()
    ]
    return H("select", options, name=name)


def _count(found: Found, start: int) -> Markup:
    where = f"{plural(found.seen, 'attempt')} looked through" + (f", from the {start + 1:,}th on" if start else "")
    return H("p", f"{plural(len(found.finds), 'find')}; {where}.", class_="quiet")
