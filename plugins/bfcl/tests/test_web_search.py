"""Web search, with a server of our own in the place of the web: who has the key, what is fetched, whose fault it is."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from evalcore.engine.store import TraceStore, read_attempts
from evalcore.errors import ConfigError, FatalInfraError, InfraError
from evalcore.values.json import JSONObject
from evalcore_bfcl import bridge, web
from evalcore_bfcl.web import KEY, Web
from plugins.bfcl.tests.rig import REACT, carry_out, run, study, trials, write_playbook

SECRET: Final = "serp-key-0123456789"
FOUND: Final = {"organic_results": [{"title": "T", "link": "https://example.org", "snippet": "S"}]}
PAGE: Final = "<html><body><script>x</script><h1>Tea</h1><p>Oolong &amp; more</p></body></html>"


class Server(BaseHTTPRequestHandler):
    """Searches and pages; the first answers are those in `first`."""

    asked: ClassVar[list[str]] = []
    first: ClassVar[list[tuple[int, str]]] = []

    def do_GET(self) -> None:
        Server.asked.append(self.path)
        path = urlsplit(self.path).path
        status, text = Server.first.pop(0) if Server.first else (200, json.dumps(FOUND) if path == "/search" else PAGE)
        if path == "/moved":
            status = 302
        if path == "/absent":
            status = 404
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/page")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the server is."""
    monkeypatch.setattr(Server, "asked", [])
    monkeypatch.setattr(Server, "first", [])
    monkeypatch.setattr(web, "PAUSES_S", (0.0, 0.0))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def asked(address: str, method: str, params: JSONObject, *, private: bool = True) -> Any:
    async def work() -> Any:
        there = Web(SECRET, search=f"{address}/search", private=private)
        try:
            return await there.answer(method, params)
        finally:
            await there.close()

    return asyncio.run(work())


class TestSearches:
    def test_the_key_is_added_here(self, address: str) -> None:
        assert asked(address, "web.search", {"engine": "duckduckgo", "q": "tea", "kl": None}) == FOUND
        (path,) = Server.asked
        query = parse_qs(urlsplit(path).query)
        assert query == {
            "engine": ["duckduckgo"],
            "q": ["tea"],
            "api_key": [SECRET],
            "source": ["python"],
            "output": ["json"],
        }

    @pytest.mark.parametrize("answer", [(429, "{}"), (503, "{}"), (500, "no json"), (200, '{"error": "429 Too Many"}')])
    def test_a_provider_that_is_busy_is_asked_again(self, address: str, answer: tuple[int, str]) -> None:
        Server.first[:] = [answer]
        assert asked(address, "web.search", {"q": "tea"}) == FOUND
        assert len(Server.asked) == 2

    def test_one_that_stays_so_is_infrastructure(self, address: str) -> None:
        Server.first[:] = [(429, "{}")] * 3
        with pytest.raises(InfraError, match="SerpApi does not answer: status 429"):
            asked(address, "web.search", {"q": "tea"})

    def test_a_refused_key_stops_the_run_and_is_not_told(self, address: str) -> None:
        Server.first[:] = [(401, json.dumps({"error": f"Invalid API key {SECRET}"}))]
        with pytest.raises(FatalInfraError) as refused:
            asked(address, "web.search", {"q": "tea"})
        assert SECRET not in refused.value.message and refused.value.hint == f"check {KEY}"

    def test_an_answer_without_results_is_upstreams_to_read(self, address: str) -> None:
        Server.first[:] = [(200, '{"error": "no results"}')]
        assert asked(address, "web.search", {"q": "tea"}) == {"error": "no results"}


class TestPages:
    def test_a_page_is_its_text_after_redirections(self, address: str) -> None:
        assert asked(address, "web.fetch", {"url": f"{address}/moved", "headers": {"User-Agent": "u"}}) == {
            "text": PAGE
        }
        assert Server.asked == ["/moved", "/page"]

    def test_a_page_that_is_not_there_says_so(self, address: str) -> None:
        found = asked(address, "web.fetch", {"url": f"{address}/absent"})
        assert found["failure"] == f"404 Client Error: Not Found for url: {address}/absent"

    @pytest.mark.parametrize(
        "url, why",
        [
            ("http://127.0.0.1:1/x", "is not on the public internet"),
            ("http://localhost/x", "is not on the public internet"),
            ("http://[::1]/x", "is not on the public internet"),
            ("http://169.254.169.254/latest/meta-data", "is not on the public internet"),
            ("http://10.0.0.1/", "is not on the public internet"),
            ("http://0x7f000001/", "is not on the public internet"),
            ("file:///etc/passwd", "is no address of a web page"),
            ("http:///x", "is no address of a web page"),
            ("http://[x", "Invalid"),
        ],
    )
    def test_nothing_inside_the_users_network_is_fetched_for_an_agent(self, url: str, why: str) -> None:
        assert why in asked("http://127.0.0.1:1", "web.fetch", {"url": url}, private=False)["unreachable"]

    def test_a_server_that_is_not_there_is_an_answer(self) -> None:
        assert "unreachable" in asked("", "web.fetch", {"url": "http://127.0.0.1:1/x"})

    def test_a_page_without_end_is_cut_off(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web, "PAGE", 10)
        assert "larger than 10 bytes" in asked(address, "web.fetch", {"url": f"{address}/page"})["unreachable"]

    def test_nothing_else_is_answered(self) -> None:
        with pytest.raises(InfraError, match="nothing that is answered"):
            asked("", "web.run", {})


@pytest.mark.usefixtures("agentic")
class TestThroughTheRig:
    def test_the_worker_searches_and_reads_by_the_host(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(KEY, SECRET)
        monkeypatch.setattr(bridge, "Web", lambda key: Web(key, search=f"{address}/search", private=True))

        def call(name: str, **arguments: object) -> dict[str, Any]:
            return {"tool_calls": [{"name": name, "arguments": arguments}]}

        said = [
            call("search_engine_query", keywords="oolong"),
            call("fetch_url_content", url=f"{address}/page", mode="truncate"),
            call("fetch_url_content", url=f"{address}/absent"),
            call("fetch_url_content", url="ftp://example.org"),
            {"text": "{'answer': 'Zhang Yiming'}"},
        ]
        write_playbook(tmp_path, [{"match": {"call": n}} | reply for n, reply in enumerate(said, 1)])
        path = run(study(("bfcl-web-search-base",), REACT, limit=1), tmp_path)
        (trial,) = trials(path).values()
        assert (trial.verdict.outcome, trial.attempt.exit and trial.attempt.exit.kind) == ("pass", "completed")
        (attempt,) = read_attempts(path)
        results = [_text(event) for event in TraceStore(path).read(attempt.trace).events("tool.result")]
        assert results[0] == "[{'title': 'T', 'href': 'https://example.org', 'body': 'S'}]"
        assert json.loads(results[1]) == {"content": "Tea\nOolong & more"}
        assert "404 Client Error" in json.loads(results[2])["error"]
        assert results[3] == "Error during execution: Invalid URL: ftp://example.org"
        assert any(SECRET in asked for asked in Server.asked)
        assert not [f for f in path.rglob("*") if f.is_file() and SECRET.encode() in f.read_bytes()]

    def test_without_the_key_an_agent_is_refused_by_the_variables_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(KEY, raising=False)
        write_playbook(tmp_path, [{"text": "No."}])
        with pytest.raises(ConfigError, match=f"bfcl-web-search-base cannot run here: {KEY} is not set"):
            run(study(("bfcl-web-search-base",), REACT, limit=1), tmp_path)
        assert not (tmp_path / "r").exists()

    def test_a_provider_that_fails_voids_the_attempt(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(KEY, SECRET)
        monkeypatch.setattr(bridge, "Web", lambda key: Web(key, search=f"{address}/search", private=True))
        Server.first[:] = [(401, "{}")]
        call = {"name": "search_engine_query", "arguments": {"keywords": "tea"}}
        write_playbook(tmp_path, [{"match": {"call": 1}, "tool_calls": [call]}, {"text": "No."}])
        _, end = asyncio.run(carry_out(study(("bfcl-web-search-base",), REACT, limit=1), tmp_path))
        assert end.reason == "fatal"
        (attempt,) = read_attempts(tmp_path / "r")
        assert attempt.void is not None and "SerpApi refuses the key" in attempt.void.message


def _text(event: JSONObject) -> str:
    (part,) = cast("list[JSONObject]", event["content"])
    return str(part["text"])
