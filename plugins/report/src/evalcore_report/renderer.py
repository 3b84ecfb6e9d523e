"""The renderer `html`: a run as one file that opens offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evalcore.contracts import Services
from evalcore.engine.store import TraceStore, write_durably
from evalcore.errors import InfraError
from evalcore.plugins import Registry
from evalcore.report.load import load_report, no_collector
from evalcore.report.model import Report
from evalcore.values.descriptors import MetricInfo, RendererInfo
from evalcore.values.redaction import NOTHING, Redaction, RedactionRules, redaction, redaction_of_texts
from evalcore.values.trace import TraceReader
from evalcore_report.markup import Html, Markup
from evalcore_report.page import Shown, page
from evalcore_report.picks import KINDS, picks
from evalcore_report.tables import Links
from evalcore_report.transcript import Caps, transcript
from evalcore_report.trials import WORDS, Trial, read_trials

FILE: Final = "report.html"
CAPS: Final = Caps(text=4_000, trial=30_000)
TRANSCRIPTS_BYTES: Final = 1_500_000  # of all transcripts in a file


class HtmlPage:
    """Writes `report.html`. With `public`, what the datasets' terms or the rules withhold is not in it."""

    def __init__(self, services: Services, info: RendererInfo) -> None:
        self._services, self._info = services, info

    def render(
        self,
        run: Path,
        out: Path,
        grading: str | None = None,
        public: bool = False,
        rules: RedactionRules | None = None,
    ) -> Sequence[Path]:
        """Write the file below `out`. Raises ConfigError if there is no such run or grading, or a rule is broken."""
        with no_collector():
            report = load_report(run, grading, metrics_of(self._services))
            content = encode(run, report, rules or RedactionRules() if public or rules else None)
        out.mkdir(parents=True, exist_ok=True)
        path = out / FILE
        write_durably(path, content)
        return [path]


def metrics_of(services: object) -> list[tuple[MetricInfo, Any]]:
    """The metrics of plugins, where the services know of any."""
    registry = getattr(services, "registry", None)
    if not isinstance(registry, Registry):
        return []
    return [(info, registry.factory(info)(services, info)) for info in registry.all(MetricInfo).values()]


def encode(run: Path, report: Report, rules: RedactionRules | None) -> bytes:
    """The file of a run. With rules it is a copy to publish."""
    texts = NOTHING if rules is None else redaction_of_texts(rules)
    by_benchmark = redactions(report, rules)
    h = Html(None if texts.is_nothing else texts.text)
    chosen = picks(report)
    anchors = {attempt: f"t{number}" for number, attempt in enumerate(chosen)}
    content, kept = _transcripts(h, run, report, chosen, anchors, by_benchmark)
    links = {attempt: f"#{anchors[attempt]}" for attempt in kept}
    return page(h, report, Shown(Links(links.get), content, withheld=withheld(by_benchmark, rules)))


def redactions(report: Report, rules: RedactionRules | None) -> dict[str, Redaction]:
    """What each benchmark's trials are shown without."""
    datasets = {cell.benchmark.selector: cell.benchmark.dataset for cell in report.cells}
    if rules is None:
        return dict.fromkeys(datasets, NOTHING)
    return {selector: redaction(dataset, selector, rules) for selector, dataset in datasets.items()}


def withheld(by_benchmark: Mapping[str, Redaction], rules: RedactionRules | None) -> list[str]:
    """What a published copy says of itself."""
    if rules is None:
        return []
    parts = [
        f"Of {selector}, {' and '.join(sorted(r.withheld))} are withheld, with all that could quote them."
        for selector, r in by_benchmark.items()
        if r.withheld
    ]
    if rules.texts or rules.patterns:
        parts.append("Some texts were taken out.")
    return parts or ["Nothing had to be withheld."]


def _transcripts(
    h: Html, run: Path, report: Report, chosen: Mapping[str, str], anchors: Mapping[str, str],
    by_benchmark: Mapping[str, Redaction],
) -> tuple[Markup | None, list[str]]:  # fmt: skip
    """The section, and the attempts that are in it: as many of the chosen as fit."""
    found = {t.attempt.id: t for t in read_trials(run, report.grading, chosen)}
    labels = {cell.arm.arm.digest: cell.arm.arm.label for cell in report.cells}
    store, items, kept, size = TraceStore(run), [], [], 0
    try:
        for attempt, kind in chosen.items():
            if attempt not in found or size > TRANSCRIPTS_BYTES:
                continue
            trial = found[attempt]
            item = _item(h, trial, read_trace(store, trial), kind, anchors[attempt], labels, by_benchmark)
            size += len(item)
            items.append(item)
            kept.append(attempt)
    finally:
        store.close()
    if not items:
        return None, []
    total = sum(cell.trials for cell in report.cells)
    text = f"{len(items):,} of {total:,} trials: harms first, then those that flipped, then a sample of the others. "
    text += f"`evalcore view {run.parent.name or '.'}` shows every trial, and searches them."
    return h.join([h("h2", "Transcripts"), h("p", h.prose(text), class_="quiet"), *items]), kept


def _item(
    h: Html, trial: Trial, reader: TraceReader | None, kind: str, anchor: str, labels: Mapping[str, str],
    by_benchmark: Mapping[str, Redaction],
) -> Markup:  # fmt: skip
    key = trial.attempt.key
    word = WORDS.get(trial.outcome, trial.outcome)
    chips = [h("span", word, class_="chip")]
    if KINDS[kind] != word:
        chips.append(h("span", KINDS[kind], class_="chip"))
    title = f"{key.task} · {labels.get(key.arm, key.arm[:12])} · try {key.repeat}"
    content = transcript(h, trial, reader, by_benchmark.get(key.benchmark, NOTHING), CAPS)
    return h("details", h("summary", title, chips), content, id=anchor)


def read_trace(store: TraceStore, trial: Trial) -> TraceReader | None:
    """A trial's trace; None if it is gone or broken."""
    try:
        return store.of(trial.attempt)
    except InfraError:
        return None
