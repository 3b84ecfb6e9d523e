"""`evalcore report RUN --format NAME`: the core's forms and the plugins', through one door."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

import pytest

from evalcore.datasets.cache import cache_root
from evalcore.errors import ToolkitError
from evalcore.plugins import load
from evalcore.toolkits.environment import ensure
from evalcore.values.descriptors import ToolkitInfo
from tests.integration.conftest import Called, Site
from tests.oracles import needs

Cli: TypeAlias = Callable[..., Called]

FORMS_ENTRY: Final = """
from evalcore.hookspecs import MetricInfo, RendererInfo, hookimpl

@hookimpl
def evalcore_renderers():
    return [RendererInfo(name, f"{name} (toy)", f"toy_forms_parts:{name.capitalize()}")
            for name in ("pair", "bug", "liar")]

@hookimpl
def evalcore_metrics():
    return [MetricInfo("score", "the mean score (toy)", "toy_forms_parts:Score")]
"""
FORMS_PARTS: Final = """
from pathlib import Path

class Pair:
    def __init__(self, services, info):
        pass

    def render(self, run, out):
        (out / "deep").mkdir(parents=True, exist_ok=True)
        files = [out / "a.txt", out / "deep" / "b.txt"]
        for file in files:
            file.write_text(run.name)
        return files

class Bug(Pair):
    def render(self, run, out):
        raise LookupError("tripped over \\x1b[31m")

class Liar(Pair):
    def render(self, run, out):
        return [out / "nothing"]

class Score:
    def __init__(self, services, info):
        pass

    def per_task(self, trials):
        return sum(t.grading.verdict.score or 0.0 for t in trials), float(len(trials))
"""
BOTH: Final = {"EVALCORE_PLUGINS": "toy-echo,toy-forms"}


@pytest.fixture
def forms_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The plugin `toy-forms`, with the renderers pair, bug and liar, and a metric."""
    site = Site(tmp_path / "forms-site")
    site.add("toy-forms", FORMS_ENTRY, toy_forms_parts=FORMS_PARTS)
    monkeypatch.syspath_prepend(site.folder)
    return site


@pytest.fixture
def ran(cli: Cli) -> Cli:
    """The program, with a run of the controls in `runs/r`."""
    assert cli("run", "toy-echo", "--name", "r", "--quiet").exit_code == 0
    return cli


def test_csv_of_a_run(ran: Cli) -> None:
    called = ran("report", "r", "--format", "csv")
    assert called.exit_code == 0 and called.stderr == ""
    rows = {(row["handle"], row["metric"]): row for row in csv.DictReader(io.StringIO(called.stdout))}
    card = json.loads(ran("report", "r", "--json").stdout)
    for cell in card["cells"]:
        for name, metric in cell["metrics"].items():
            row = rows[cell["arm"]["handle"], name]
            assert row["value"] == ("" if metric["value"] is None else repr(metric["value"]))
            assert row["reason"] == (metric["reason"] or "")
    assert (rows["oracle", "pass@1"]["value"], rows["noop", "pass@1"]["value"]) == ("1.0", "0.0")


def test_junit_of_a_run(ran: Cli) -> None:
    root = ET.fromstring(ran("report", "r", "--format", "junit").stdout)
    assert {s.get("name"): (s.get("tests"), s.get("failures"), s.get("skipped")) for s in root} == {
        "toy-echo.oracle": ("6", "0", "0"),
        "toy-echo.noop": ("6", "0", "6"),
    }


def test_junit_of_a_broken_grader_is_errors(cli: Cli) -> None:
    cli("run", "toy-echo@broken", "--name", "r", "--quiet")
    root = ET.fromstring(cli("report", "r", "--format", "junit").stdout)
    assert (root.get("tests"), root.get("errors")) == ("12", "12")
    (first, *_) = root.iter("error")
    assert first.get("message") == "1 of 1 trial not counted: the grader failed"
    assert "the toy grader is \N{REPLACEMENT CHARACTER}[31mbroken" in (first.text or "")


def test_markdown_of_a_run(ran: Cli) -> None:
    called = ran("report", "r", "--format", "markdown", "--out", "-")
    assert called.stdout.startswith("# Scorecard: ")
    assert "| oracle (ceiling)<br>isolation none | 100.0 % | 6 of 6 | 6 completed |" in called.stdout


def test_a_step_summary_is_appended_to_the_page_of_the_job(ran: Cli, tmp_path: Path) -> None:
    page = tmp_path / "summary"
    page.write_text("before")
    called = ran("report", "r", "--format", "github", GITHUB_STEP_SUMMARY=str(page))
    assert (called.stdout, called.stderr) == ("", f"appended to {page}\n")
    assert page.read_text().startswith("before\n### Scorecard: ") and "<details>" in page.read_text()
    whole = page.read_bytes()
    assert ran("report", "r", "--format", "github", "--out", "-", GITHUB_STEP_SUMMARY=str(page)).stdout.startswith(
        "###"
    )
    assert ran("report", "r", "--format", "csv", GITHUB_STEP_SUMMARY=str(page)).stdout != ""
    assert page.read_bytes() == whole


def test_a_step_summary_elsewhere_is_printed(ran: Cli) -> None:
    assert ran("report", "r", "--format", "github", GITHUB_STEP_SUMMARY="").stdout.startswith("### Scorecard: ")


@pytest.mark.parametrize("form, file", [("csv", "report.csv"), ("markdown", "report.md"), ("junit", "junit.xml")])
def test_a_form_goes_to_the_file_or_folder_that_is_named(ran: Cli, tmp_path: Path, form: str, file: str) -> None:
    printed = ran("report", "r", "--format", form).stdout
    assert ran("report", "r", "--format", form, "--out", "new/x").stdout == "new/x\n"
    assert ran("report", "r", "--format", form, "--out", "folder/").stdout == f"folder/{file}\n"
    for written in ("new/x", f"folder/{file}"):
        assert (tmp_path / written).read_text("utf-8") == printed


@pytest.mark.parametrize("out, file", [("x.csv", "x.csv"), ("folder", "folder/report.csv")])
def test_a_file_that_exists_is_kept_unless_forced(ran: Cli, tmp_path: Path, out: str, file: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / file).write_text("mine")
    called = ran("report", "r", "--format", "csv", "--out", out)
    assert called.exit_code == 2
    assert called.stderr == f"error: {file} exists already\nhint: --force replaces it; --out names another place\n"
    assert (tmp_path / file).read_text() == "mine"
    assert ran("report", "r", "--format", "csv", "--out", out, "--force").exit_code == 0
    assert (tmp_path / file).read_text().startswith('"run",')


def test_a_form_that_does_not_exist(ran: Cli) -> None:
    called = ran("report", "r", "--format", "cvs")
    assert called.exit_code == 2 and called.stdout == ""
    assert called.stderr.startswith("error: unknown format 'cvs'; did you mean 'csv'?\n")


@pytest.mark.parametrize("arguments", [["--out", "x"], ["--force"], ["--format", "csv", "--json"]])
def test_options_that_do_not_go_together(ran: Cli, arguments: list[str]) -> None:
    assert ran("report", "r", *arguments).exit_code == 2


def test_a_run_that_is_not_there(cli: Cli) -> None:
    called = cli("report", "nope", "--format", "csv")
    assert called.exit_code == 2 and "no run at runs/nope" in called.stderr


def test_another_grading_in_another_form(ran: Cli, tmp_path: Path, forms_site: Site) -> None:
    gradings = tmp_path / "runs" / "r" / "gradings"
    (own,) = gradings.iterdir()
    (gradings / "0123456789abcdef.jsonl").write_bytes(own.read_bytes().replace(b'"pass"', b'"fail"'))
    root = ET.fromstring(ran("report", "r", "--format", "junit", "--grading", "0123").stdout)
    assert (root.get("failures"), root.get("skipped")) == ("6", "6")
    assert ran("report", "r", "--format", "csv", "--grading", "zzz").exit_code == 2
    called = ran("report", "r", "--format", "pair", "--grading", "0123", "--out", "x", **BOTH)
    assert called.exit_code == 2
    assert "pair writes a run by its own grading only" in called.stderr


def test_a_plugins_form_of_several_files_needs_a_folder(ran: Cli, tmp_path: Path, forms_site: Site) -> None:
    called = ran("report", "r", "--format", "pair", **BOTH)
    assert called.exit_code == 2
    assert "pair writes 2 files: they need a folder" in called.stderr
    assert ran("report", "r", "--format", "pair", "--out", "x", **BOTH).stdout == "x/a.txt\nx/deep/b.txt\n"
    assert (tmp_path / "x" / "deep" / "b.txt").read_text() == "r"
    called = ran("report", "r", "--format", "pair", "--out", "x", **BOTH)
    assert called.exit_code == 2 and "x/a.txt exists already, and 1 more" in called.stderr
    assert ran("report", "r", "--format", "pair", "--out", "x", "--force", **BOTH).exit_code == 0


@pytest.mark.parametrize("form, says", [("bug", "failed: LookupError: tripped over"), ("liar", "not the files that")])
def test_a_plugins_form_with_a_bug_is_blamed(ran: Cli, forms_site: Site, form: str, says: str) -> None:
    called = ran("report", "r", "--format", form, "--out", "x", **BOTH)
    assert called.exit_code == 2
    assert f"the renderer {form} " in called.stderr and says in called.stderr and "\x1b" not in called.stderr


def test_a_plugins_metric_is_in_the_cores_forms(ran: Cli, forms_site: Site) -> None:
    rows = list(csv.DictReader(io.StringIO(ran("report", "r", "--format", "csv", **BOTH).stdout)))
    assert [row["value"] for row in rows if row["metric"] == "score"] == ["1.0", "0.0"]


def test_forms_are_listed(cli: Cli) -> None:
    assert {row.split()[0] for row in cli("list", "renderers").stdout.splitlines()[1:] if row} >= {
        *("markdown", "csv", "junit", "github")
    }


def test_bfcls_result_files_by_the_same_door(cli: Cli, tmp_path: Path) -> None:
    infos = load(only=("bfcl",)).all(ToolkitInfo) if _installed("bfcl") else {}
    if not infos:
        needs("the plugin bfcl; pip install -e plugins/bfcl")
    try:
        asyncio.run(ensure(infos["bfcl"].spec, install=False))
    except ToolkitError as error:
        needs(f"the toolkit of BFCL; `evalcore setup bfcl` installs it ({error.message})")
    real = {"EVALCORE_PLUGINS": "bfcl", "EVALCORE_CACHE": str(cache_root())}
    assert cli("run", "bfcl-simple-python", "--limit", "2", "--name", "b", "--quiet", **real).exit_code == 0
    called = cli("report", "b", "--format", "bfcl-results", "--out", "export", **real)
    assert called.exit_code == 0, called.stderr
    files = called.stdout.splitlines()
    assert files[0] == "export/evalcore.json" and len(files) == 3
    assert len((tmp_path / files[1]).read_text().splitlines()) == 2


def _installed(plugin: str) -> bool:
    from evalcore.plugins import discover

    return any(ref.name == plugin for ref in discover())
