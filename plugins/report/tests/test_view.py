"""The live view: who gets an answer, and what a browser shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from attrs import frozen

from evalcore_report.view import pages
from evalcore_report.view.server import ViewServer
from plugins.report.tests import runs
from plugins.report.tests.browser import Browser


@frozen
class View:
    """A running view: where it is, and where its runs are."""

    url: str
    folder: Path


def serve(folder: Path) -> Iterator[View]:
    server = ViewServer(folder)
    url = server.listen()
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield View(url, folder)
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def view(sample: Path) -> Iterator[View]:
    yield from serve(sample.parent)


def get(view: View, path: str = "", **options: Any) -> httpx2.Response:
    return httpx2.get(view.url + path, timeout=60, **options)


# ── who gets an answer ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_address_is_on_this_machine_and_cannot_be_guessed(view: View) -> None:
    url = httpx2.URL(view.url)
    assert url.host == "127.0.0.1"
    assert len(bytes.fromhex(url.path.strip("/"))) == 32


def test_whoever_does_not_know_it_gets_nothing(view: View) -> None:
    base, token, _ = view.url.rsplit("/", 2)
    answers = [httpx2.get(base + path) for path in ("/", "/run/sample", f"/{'0' * 64}/", f"/{token[:-1]}/")]
    assert [a.status_code for a in answers] == [404] * 4
    assert all("sample" not in a.text for a in answers)


@pytest.mark.parametrize("headers, status", [
    ({"host": "evil.example"}, 421),
    ({"host": "127.0.0.1"}, 421),
    ({"origin": "https://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"sec-fetch-site": "same-origin"}, 200),
])  # fmt: skip
def test_no_other_page_gets_an_answer(view: View, headers: dict[str, str], status: int) -> None:
    assert get(view, headers=headers).status_code == status


def test_it_only_shows(view: View) -> None:
    assert [httpx2.request(method, view.url).status_code for method in ("POST", "PUT", "DELETE", "OPTIONS")] == [
        405
    ] * 4
    head = httpx2.head(view.url)
    assert (head.status_code, head.content) == (200, b"")


def test_every_answer_says_what_a_browser_may_do_with_it(view: View) -> None:
    headers = get(view).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"], headers["cache-control"]) == (
        "nosniff",
        "no-referrer",
        "no-store",
    )


@pytest.mark.parametrize("path", [
    "run/%2e%2e", "run/..%2f..%2fetc", "run/none", "run/sample/none", "run/sample/trial?id=none", "etc/passwd",
    "run/sample/side?a=1",
])  # fmt: skip
def test_what_is_not_there_is_not_there(view: View, path: str) -> None:
    answer = get(view, path)
    assert answer.status_code == 404
    assert "This cannot be shown" in answer.text


def test_a_broken_run_is_told_and_hides_no_other(tmp_path: Path, sample: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.toml").write_text("<script>")
    runs.sample(tmp_path / "sound", tasks=3)
    for view in serve(tmp_path):
        text = get(view).text
        assert (
            "cannot be read" in text
            and "/run/sound" in text
            and "<script>" not in text.split("<main")[1].split("</main")[0]
        )
        assert get(view, "run/broken").status_code == 500
        assert get(view, "run/sound/trials?from=x").status_code == 500


def test_one_run_can_be_viewed_alone(sample: Path) -> None:
    for view in serve(sample):
        assert get(view, "run/sample").status_code == 200


# ── what a browser shows ─────────────────────────────────────────────────────────────────────────────────────────────


def test_from_all_runs_to_one_trial_without_complaint_and_without_leaving_the_machine(
    window: Browser, view: View
) -> None:
    window.open(view.url)
    window.js("document.querySelector('#runs-table tbody a').click()")
    window.until("return document.querySelectorAll('svg.chart').length > 5")
    window.js("document.querySelector('#tasks-0 td a').click()")
    window.until("return document.querySelector('.steps')")
    assert "I will look it up." in window.js("return document.querySelector('.steps').innerText")
    assert window.complaints() == []
    asked = window.requests()
    assert len(asked) >= 3 and all(url.startswith(view.url) for url in asked)


def test_two_tries_side_by_side(window: Browser, view: View) -> None:
    window.open(view.url + "run/sample/trials?task=sum-003")
    window.js("document.querySelector('#trials-table tbody a').click()")
    window.until("return document.querySelector('.steps')")
    window.js("[...document.querySelectorAll('a')].find((a) => a.textContent === 'side by side').click()")
    window.until("return document.querySelectorAll('.sides > section').length === 2")
    heads = window.js("return [...document.querySelectorAll('.sides h2')].map((h) => h.textContent)")
    assert all(head.startswith("sum-003: ") for head in heads)
    window.size(360, 740, phone=True)
    assert window.js("return [document.documentElement.scrollWidth, window.innerWidth]") == [360, 360]


def test_transcripts_are_searched_as_text(window: Browser, tmp_path: Path) -> None:
    arm, bench = runs.agent("a"), runs.benchmark("sums", 3)
    said = ["nothing", 'a <b>"Quoted"</b> Ünïcode word', "nothing either"]
    pairs = [runs.trial("sums", f"t{i}", arm, 1, "pass", said=text) for i, text in enumerate(said)]
    runs.write(tmp_path / "run", runs.stamp([arm], [bench], 1, "run"), pairs)
    for view in serve(tmp_path):
        for wanted in ('<B>"quoted"', "Ünïcode", "t1"):
            window.open(view.url + "run/run/trials")
            window.js("document.querySelector('input[name=q]').focus()")
            window.press(*wanted, "\ue007")
            window.until("return document.querySelector('.hits')")
            assert window.js("return [...document.querySelectorAll('.hits a')].map((a) => a.textContent)") == [
                "t1, try 1"
            ]
        window.open(view.url + "run/run/trials?q=absent")
        assert "0 finds; 3 attempts looked through." in window.js("return document.querySelector('main').innerText")
        assert window.complaints() == []


def test_filters_hold_together(view: View) -> None:
    some = get(view, "run/sample/trials?outcome=fail&task=sum-00*").text
    assert "sum-00" in some and "sum-01" not in some.split("<tbody>")[1]
    assert ">passed<" not in some.split("<tbody>")[1]


def test_a_whole_name_means_that_task_alone(tmp_path: Path) -> None:
    arm, bench = runs.agent("a"), runs.benchmark("sums", 2)
    pairs = [runs.trial("sums", task, arm, 1, "pass") for task in ("t1", "t10")]
    runs.write(tmp_path / "run", runs.stamp([arm], [bench], 1, "run"), pairs)
    for view in serve(tmp_path):
        listed = {text: get(view, f"run/run/trials?task={text}").text.count(">t1") for text in ("t1", "t", "t1*")}
        assert listed == {"t1": 1, "t": 2, "t1*": 2}


def test_the_page_of_a_large_run_leads_to_its_trials_by_task_and_arm(
    window: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MOST_LINKS", 10)
    runs.sample(tmp_path / "run", tasks=4)
    for view in serve(tmp_path):
        window.open(view.url + "run/run")
        window.until("return document.querySelector('#tasks-0 td a')")
        assert window.js("return document.querySelectorAll('#tasks-0 td a').length") == 16
        window.js("document.querySelector('#tasks-0 td a').click()")
        window.until("return document.querySelector('#trials-table')")
        rows = window.js("return [...document.querySelectorAll('#trials-table tbody tr')].map((r) => r.innerText)")
        assert len(rows) == 3 and all("sum-000" in row and "model-a" in row for row in rows)


def test_a_page_that_takes_long_says_so_and_comes_by_itself(
    window: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = threading.Event()
    made = pages.Pages._report

    def slow(self: pages.Pages, run: Any, report: Any) -> bytes:
        ready.wait(60)
        return made(self, run, report)

    monkeypatch.setattr(pages.Pages, "_report", slow)
    runs.sample(tmp_path / "run", tasks=2)
    for view in serve(tmp_path):
        window.open(view.url + "run/run")
        assert window.js("return document.querySelector('h1').textContent") == "Reading 24 attempts …"
        ready.set()
        window.until("return document.querySelector('#verdict')")
        assert window.complaints() == []


def test_hostile_texts_are_texts_here_too(window: Browser, tmp_path: Path) -> None:
    runs.hostile(tmp_path / "run")
    for view in serve(tmp_path):
        for path in (
            "",
            "run/run",
            "run/run/trials",
            "run/run/trials?q=owned",
            "run/run/trials?q=%3Cscript%3E&task=%22%3E%3Cimg%20src=x%3E",
        ):
            window.open(view.url + path)
            assert window.js(
                "return [document.querySelectorAll('script').length, document.querySelectorAll('img').length]"
            ) == [1, 0]
            assert "owned" not in window.js("return document.title")
        window.open(view.url + "run/run/trials")
        window.js("document.querySelector('#trials-table tbody a').click()")
        window.until("return document.querySelector('.steps')")
        assert "<script>" in window.js("return document.querySelector('.steps').innerText")
        assert window.complaints() == []


def test_a_running_study_brings_its_page_up_to_date(window: Browser, tmp_path: Path) -> None:
    arm, bench = runs.agent("a"), runs.benchmark("sums", 4)
    run = runs.stamp([arm], [bench], 1, "run")
    trials = [runs.trial("sums", f"t{i}", arm, 1, "pass") for i in range(4)]
    path = runs.write(tmp_path / "run", run, trials[:2])
    for view in serve(tmp_path):
        window.open(view.url + "run/run")
        window.until("return document.querySelector('#verdict')")  # a page that is being made waits, and then comes
        assert "2 of 4 planned trials" in window.js("return document.querySelector('#verdict').innerText")
        window.until("return document.documentElement.dataset.connected === 'yes'")
        window.js("window.untouched = true")
        runs.append(path, run, trials[2:])
        window.until("return document.querySelectorAll('#tasks-0 tbody tr').length === 4")
        assert "4 of 4 trials graded" in window.js("return document.querySelector('#verdict').innerText")
        assert window.js("return window.untouched") is True  # brought up to date, not loaded anew
        assert window.js("return document.querySelectorAll('#tasks-0 th button').length") == 2
        assert window.complaints() == []


def test_a_new_run_shows_up_in_the_list(window: Browser, tmp_path: Path) -> None:
    for view in serve(tmp_path):
        window.open(view.url)
        assert "No run here yet" in window.js("return document.querySelector('main').innerText")
        window.until("return document.documentElement.dataset.connected === 'yes'")
        runs.sample(tmp_path / "fresh", tasks=2)
        assert (
            window.until("const a = document.querySelector('#runs-table tbody a'); return a && a.textContent")
            == "fresh"
        )
