"""The core's forms of a report as parts: each writes one file of the one report. A grading may be named by its digest.

The work is done in `evalcore.report`; what a form looks like is said there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from evalcore.contracts import Services
from evalcore.engine.store import write_durably
from evalcore.plugins import Registry
from evalcore.report import junit, markdown, tabular
from evalcore.report.load import load_report
from evalcore.report.model import Report
from evalcore.values.descriptors import MetricInfo, RendererInfo

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


class _OneFile(ABC):
    """A form that is one file, named `file`."""

    file: ClassVar[str]

    def __init__(self, services: Services, info: RendererInfo) -> None:
        self._services = services

    def render(self, run: Path, out: Path, grading: str | None = None) -> Sequence[Path]:
        """Write the file below `out`. Raises ConfigError if there is no such run or grading."""
        report = load_report(run, grading, self._metrics())
        out.mkdir(parents=True, exist_ok=True)
        path = out / self.file
        write_durably(path, self.encode(report, run))
        return [path]

    @abstractmethod
    def encode(self, report: Report, run: Path) -> bytes:
        """What is in the file."""

    def _metrics(self) -> list[tuple[MetricInfo, Any]]:
        """Those of plugins, where the services know of any."""
        registry = getattr(self._services, "registry", None)
        if not isinstance(registry, Registry):
            return []
        return [(info, registry.factory(info)(self._services, info)) for info in registry.all(MetricInfo).values()]


class MarkdownPage(_OneFile):
    """The whole report to read in a browser or an editor."""

    file = "report.md"

    def encode(self, report: Report, run: Path) -> bytes:
        """See `report.markdown`."""
        return markdown.page(report).encode()


class CsvTable(_OneFile):
    """Every number of the report for a spreadsheet or a dataframe."""

    file = "report.csv"

    def encode(self, report: Report, run: Path) -> bytes:
        """See `report.tabular`."""
        return tabular.encode(report)


class JUnitXml(_OneFile):
    """Every task's outcome for the test page of a CI system."""

    file = "junit.xml"

    def encode(self, report: Report, run: Path) -> bytes:
        """See `report.junit`."""
        return junit.encode(report, junit.read_trials(run, report.grading))


class GitHubSummary(_OneFile):
    """The report on the page of a GitHub Actions job."""

    file = "summary.md"
    appends_to = STEP_SUMMARY  # the variable that names the file to append to, where it is set and no other is named

    def encode(self, report: Report, run: Path) -> bytes:
        """See `report.markdown`."""
        return markdown.summary(report).encode()
