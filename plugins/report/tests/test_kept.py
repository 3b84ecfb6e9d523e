"""Pages of whole runs that are kept in the user's cache: when one is used, and when it is made again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from attrs import evolve

from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_stamp
from evalcore.errors import ConfigError
from evalcore.plugins import load
from evalcore_report.plugin import evalcore_run_finished
from evalcore_report.renderer import metrics_of
from evalcore_report.view.ahead import keep_page
from evalcore_report.view.kept import KeptPages, kept_pages
from evalcore_report.view.pages import Pages
from plugins.report.tests import runs

ONE, OTHER = "1" * 64, "2" * 64


@pytest.fixture
def kept(tmp_path: Path) -> KeptPages:
    folder = tmp_path / "pages"
    folder.mkdir()
    return KeptPages(folder, "code")


@pytest.fixture
def run(tmp_path: Path, sample: Path) -> Path:
    return Path(shutil.copytree(sample, tmp_path / "runs" / "sample"))


def shown(run: Path, kept: KeptPages, token: str = ONE) -> bytes:
    """The page as a view that has just been started gives it."""
    pages = Pages(run.parent, f"/{token}", (), kept)
    try:
        found = pages.library.page(pages.library.run(run.name), 60)
        assert found is not None
        return found
    finally:
        pages.library.close()


def files(kept: KeptPages) -> list[Path]:
    return sorted(kept.folder.iterdir())


def test_the_next_view_shows_the_same_page_without_making_it(
    run: Path, kept: KeptPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shown(run, kept)
    monkeypatch.setattr("evalcore_report.view.library.load_report", None)  # cannot be called
    assert shown(run, kept, OTHER) == first.replace(ONE.encode(), OTHER.encode())
    assert OTHER.encode() in shown(run, kept, OTHER)


def test_a_view_reads_kept_pages_before_it_gives_its_address(run: Path, kept: KeptPages) -> None:
    pages = Pages(run.parent, f"/{ONE}", (), kept)
    assert not pages.library.kept_ahead()
    shown(run, kept)
    assert pages.library.kept_ahead()
    with (run / "attempts.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert not pages.library.kept_ahead()
    pages.library.close()


def test_no_token_is_kept(run: Path, kept: KeptPages) -> None:
    shown(run, kept)
    (file,) = files(kept)
    assert ONE.encode() not in file.read_bytes() and file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["attempts.jsonl", "run.toml", "looks.jsonl"])
def test_other_content_is_another_page(run: Path, kept: KeptPages, name: str) -> None:
    stamp, before = read_stamp(run), kept.key(run, "sample", read_stamp(run))
    assert kept.key(run, "sample", stamp) == before
    with (run / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert kept.key(run, "sample", stamp) not in (None, before)


def test_a_grading_another_run_of_the_plan_and_other_code_make_another_page(run: Path, kept: KeptPages) -> None:
    stamp = read_stamp(run)
    keys = [kept.key(run, "sample", stamp), evolve(kept, code="other").key(run, "sample", stamp)]
    (run / "gradings" / "0.jsonl").write_text("\n")
    keys.append(kept.key(run, "sample", stamp))
    shutil.copytree(run, run.parent / "again")
    keys.append(kept.key(run, "sample", stamp))
    assert None not in keys and len(set(keys)) == 4


def test_a_page_that_was_changed_is_made_again(run: Path, kept: KeptPages) -> None:
    shown(run, kept)
    (file,) = files(kept)
    file.write_bytes(file.read_bytes().replace(b"<h1", b"<h1 id=planted"))
    assert b"planted" in file.read_bytes()
    made = shown(run, kept)
    assert b"planted" not in made and b"</html>" in made


def test_a_link_in_its_place_is_not_followed(run: Path, kept: KeptPages, tmp_path: Path) -> None:
    shown(run, kept)
    (file,) = files(kept)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert kept.read(file.name, ONE) is None


def test_a_run_that_is_not_whole_is_not_kept(tmp_path: Path, kept: KeptPages) -> None:
    part = runs.sample(tmp_path / "runs" / "part")
    lines = (part / "attempts.jsonl").read_bytes().splitlines(keepends=True)
    (part / "attempts.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    shown(part, kept)
    assert files(kept) == []


def test_without_a_cache_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "file"))
    assert kept_pages() is None
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    made = kept_pages()
    assert made is not None and made.folder.stat().st_mode & 0o077 == 0


def test_the_page_of_a_large_run_is_made_when_the_run_ends(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    at_exit: list[Any] = []
    monkeypatch.setattr(
        "evalcore_report.view.ahead.atexit.register", lambda work, *given: at_exit.append((work, given))
    )
    evalcore_run_finished(run)
    assert at_exit == []  # small: a second, when somebody asks
    monkeypatch.setattr("evalcore_report.view.ahead.MANY", 24)
    evalcore_run_finished(run)
    ((work, given),) = at_exit
    work(*given)
    made = kept_pages(metrics_of(LocalServices(load(), run)))
    assert made is not None and len(files(made)) == 1
    monkeypatch.setattr("evalcore_report.view.library.load_report", None)  # cannot be called
    assert b'class="chart"' in shown(run, made)


def test_what_goes_wrong_with_a_page_that_nobody_asked_for_is_nobodys_trouble(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    for error in (KeyboardInterrupt, ConfigError("gone"), OSError("full")):
        monkeypatch.setattr("evalcore_report.view.ahead._keep_page", Mock(side_effect=error))
        keep_page(run)
