"""The installed command: pages written where they are wanted, and the view from its first line to Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

EVALCORE = str(Path(sys.executable).with_name("evalcore"))


def evalcore(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EVALCORE, *words], cwd=folder, env=dict(os.environ), check=False, capture_output=True, text=True, timeout=110
    )


@pytest.fixture
def folder(sample: Path, tmp_path: Path) -> Path:
    """A folder with `runs/sample` in it, to write to."""
    shutil.copytree(sample, tmp_path / "runs" / "sample")
    return tmp_path


def test_the_page_lies_in_the_run_s_folder_and_is_made_anew(folder: Path) -> None:
    page = folder / "runs" / "sample" / "report.html"
    for was_there in (False, True):
        done = evalcore("report", "sample", "--html", folder=folder)
        assert ("was there and is replaced" in done.stderr) == was_there
        assert (done.returncode, done.stdout.strip()) == (0, "runs/sample/report.html"), done.stderr
        assert page.read_bytes().startswith(b"<!doctype html>")
        page.write_text("stale")


def test_or_where_it_is_wanted_and_there_it_replaces_nothing_unasked(folder: Path) -> None:
    words = ("report", "sample", "--html", "page.html", "--public")
    assert evalcore(*words, folder=folder).returncode == 0
    assert "Nothing had to be withheld." in (folder / "page.html").read_text("utf-8")
    again = evalcore(*words, folder=folder)
    assert again.returncode == 2 and "--force replaces it" in again.stderr
    assert evalcore(*words, "--force", folder=folder).returncode == 0


def test_rules_come_from_a_file_and_are_read_strictly(folder: Path) -> None:
    rules = folder / "rules.toml"
    rules.write_text('texts = ["model-a"]\nwithhold = ["answers"]\n')
    done = evalcore("report", "sample", "--html", "page.html", "--redact", "rules.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "page.html").read_text("utf-8")
    assert "model-a" not in text and "The answer is 4." not in text and "[withheld]" in text
    rules.write_text('withhold = ["question"]\npatterns = 3\n')
    broken = evalcore("report", "sample", "--html", "--redact", "rules.toml", folder=folder)
    assert broken.returncode == 2
    assert "$.withhold[0]" in broken.stderr and "$.patterns" in broken.stderr and "Traceback" not in broken.stderr


def test_a_trace_is_shown_by_the_same_rules(folder: Path) -> None:
    (folder / "rules.toml").write_text('withhold = ["answers"]\n')
    words = ("trace", "sample", "sum-003/model-a/1")
    plain = evalcore(*words, folder=folder).stdout
    public = evalcore(*words, "--public", "--redact", "rules.toml", folder=folder).stdout
    assert "The answer is 4." in plain and "I will look it up." in plain
    assert "The answer is 4." not in public and "I will look it up." not in public
    assert "What is the answer to sum-003?" in public and "search" in public and "[withheld]" in public
    refused = evalcore("trace", "sample", "--public", folder=folder)
    assert refused.returncode == 2 and "about one trial" in refused.stderr


@pytest.mark.parametrize("words, told", [
    (("--html", "--json"), "--json is a form of its own"),
    (("--html", "--format", "csv"), "not with --format"),
    (("--public",), "about a --format or --html"),
    (("--format", "csv", "--public"), "csv cannot leave anything out"),
    (("--html", "a.html", "--out", "b.html"), "not with --out beside a file"),
])  # fmt: skip
def test_what_makes_no_sense_together_is_told(folder: Path, words: tuple[str, ...], told: str) -> None:
    done = evalcore("report", "sample", *words, folder=folder)
    assert done.returncode == 2
    assert told in done.stderr and "Traceback" not in done.stderr


def test_the_view_answers_at_the_address_that_it_prints_until_it_is_interrupted(folder: Path) -> None:
    server = subprocess.Popen(
        [EVALCORE, "view"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        assert "/run/sample" in httpx2.get(url, timeout=60).text
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == "open this address; Ctrl-C ends the view\n"
    finally:
        server.kill()
        server.wait()
        for stream in (server.stdout, server.stderr):
            if stream is not None:
                stream.close()


def test_a_view_of_nothing_says_what_would_be_right(tmp_path: Path) -> None:
    done = evalcore("view", folder=tmp_path)
    assert done.returncode == 2
    assert "no directory runs" in done.stderr and "evalcore run" in done.stderr


def test_a_port_that_is_taken_is_told(folder: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = evalcore("view", "--port", str(taken.getsockname()[1]), folder=folder)
    assert done.returncode == 4
    assert "cannot listen on port" in done.stderr and "Traceback" not in done.stderr
