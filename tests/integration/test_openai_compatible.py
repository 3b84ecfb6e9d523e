"""The provider `openai-compatible` and its kin against a server of the test's own: answers, retries, faults, keys."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from attrs import define, field

from evalcore.builtin import evalcore_models, openai_compatible, provider_http
from evalcore.builtin.openai_compatible import OpenAICompatibleProvider
from evalcore.builtin.provider_http import is_local
from evalcore.contracts import CallContext
from evalcore.engine.plan import close_plan, make_plan
from evalcore.engine.run import RunOptions, regrade, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore.errors import AgentError, ConfigError, FatalInfraError, InfraError
from evalcore.plugins import PluginRef, Registry, load
from evalcore.testing import toy
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.study import Study
from evalcore.values.trial import TrialKey
from evalcore.wires.gateway import retries
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.recorder import AttemptRecorder
from tests.integration.wire_rig import on_loop, said

KEY: Final = "sk-test-0123456789abcdefghij"
HELLO: Final[JSONObject] = {"model": "asked", "messages": [{"role": "user", "content": "hello ü"}]}
Reply = tuple[int, Mapping[str, str], bytes]


# ── a server ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@define
class Server:
    """Answers each request with the next of its replies; the last one for ever. Bytes go out as they are."""

    replies: list[Reply | bytes | None]
    url: str = ""
    asked: list[tuple[str, Mapping[str, str], Any]] = field(factory=list)

    connections: set[asyncio.Task[Any]] = field(factory=set)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None
        self.connections.add(own)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
                body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
                self.asked.append((first, headers, body))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if reply is None:
                    await asyncio.sleep(600)
                elif isinstance(reply, bytes):
                    writer.write(reply)
                    break
                else:
                    status, more, data = reply
                    sent = "".join(f"{k}: {v}\r\n" for k, v in more.items())
                    writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n{sent}\r\n".encode() + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            writer.close()
            self.connections.discard(own)


def good(text: str = "hi", **more: JSONValue) -> Reply:
    return 200, {}, json.dumps({**said(text), **more}).encode()


def bad(status: int, message: str = "", headers: Mapping[str, str] | None = None, **more: JSONValue) -> Reply:
    return status, headers or {}, json.dumps({"error": {"message": message, **more}}).encode()


@asynccontextmanager
async def serving(*replies: Reply | bytes | None) -> AsyncIterator[Server]:
    server = Server(list(replies))
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        for connection in tuple(server.connections):
            connection.cancel()
        await asyncio.gather(*server.connections, return_exceptions=True)


# ── a provider ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Services:
    """A clock that only notes how long it was to wait, and what was to be hidden."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.hidden: list[str] = []
        self.random = Random(1)
        self.clock: Any = self
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds

    def hide(self, secret: str) -> None:
        self.hidden.append(secret)


def provider(services: Services, name: str = "openai-compatible", **environ: str) -> OpenAICompatibleProvider:
    info = next(m for m in evalcore_models() if m.name == name)
    made: OpenAICompatibleProvider = getattr(openai_compatible, info.factory.partition(":")[2])(services, info, environ)
    return made


def context(url: str | None = None) -> CallContext:
    settings: JSONObject = {} if url is None else {"base_url": url}
    return CallContext(TrialKey("b", "t", "a", 1), 1, "agent", 1, 0, settings)


async def ask(server: Server, body: JSONObject = HELLO, services: Services | None = None, **environ: str) -> JSONObject:
    """One completion."""
    services = services or Services()
    made = provider(services, **environ)
    events = AttemptRecorder(services.clock)
    try:
        upstream = Upstream("openai-compatible", made, services.clock, services.random)
        return await upstream.ask("served/name", body, context(server.url), events)
    finally:
        await made.close()


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_an_answer_comes_back_whole_with_every_digit() -> None:
    calls: JSONValue = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 5.0}'}}]
    reply = {**said("\ud800 \U0001f600", tool_calls=calls), "odd": [2**70, 5.0, 1e-7, None]}
    async with serving((200, {}, json.dumps(reply).encode())) as server:
        answer = await ask(server)
    assert repr(answer) == repr(reply)


@on_loop
async def test_the_request_names_the_servers_model_and_carries_the_body_as_it_is() -> None:
    body: JSONObject = {**HELLO, "temperature": 0.5, "unknown": {"kept": 2**70}, "stream": True, "stream_options": {}}
    async with serving(good()) as server:
        await ask(server, body, OPENAI_COMPATIBLE_API_KEY=KEY)
    ((line, headers, sent),) = server.asked
    assert line == "POST /v1/chat/completions HTTP/1.1"
    assert headers["authorization"] == f"Bearer {KEY}" and headers["user-agent"].startswith("evalcore/")
    assert sent == {**HELLO, "model": "served/name", "temperature": 0.5, "unknown": {"kept": 2**70}}


@on_loop
async def test_the_bound_on_output_has_the_servers_own_name() -> None:
    async with serving(good()) as server:
        await ask(server, {**HELLO, "max_tokens": 5, "max_output_tokens": 7})
        openai = provider(Services(), "openai")
        await openai.complete("m", {**HELLO, "max_tokens": 5, "max_output_tokens": 7}, context(server.url))
        await openai.close()
    assert [{k: v for k, v in sent.items() if "max" in k} for _, _, sent in server.asked] == [
        {"max_tokens": 7},
        {"max_completion_tokens": 7},
    ]


@on_loop
async def test_a_local_server_needs_no_key_and_connections_are_used_again() -> None:
    async with serving(good()) as server:
        made = provider(Services())
        for _ in range(3):
            await made.complete("m", HELLO, context(server.url + "/"))
        await made.close()
    assert ["authorization" in headers for _, headers, _ in server.asked] == [False] * 3


# ── tried again ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "first",
    [
        bad(500, "oops"),
        bad(503),
        bad(529, "overloaded"),
        bad(408),
        bad(429, "slow down"),
        (200, {}, b"<html>"),
        (200, {}, b'{"choices": []}'),
        (200, {}, b'{"error": {"message": "upstream died", "code": 502}}'),
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"a":',
        b"nonsense\r\n\r\n",
    ],
)
@on_loop
async def test_a_transient_failure_is_tried_again(first: Reply | bytes) -> None:
    services = Services()
    async with serving(first, good("at last")) as server:
        answer: Any = await ask(server, services=services)
    assert answer["choices"][0]["message"]["content"] == "at last"
    assert len(server.asked) == 2
    assert len(services.waits) == 1 and 0.25 <= services.waits[0] <= 0.5


@on_loop
async def test_after_the_last_try_it_is_infrastructure() -> None:
    services = Services()
    async with serving(bad(500, "oops")) as server:
        with pytest.raises(InfraError, match=r"HTTP 500: oops \(after 5 tries\)") as failed:
            await ask(server, services=services)
    assert not isinstance(failed.value, FatalInfraError)
    assert len(server.asked) == 5
    assert all(low <= wait <= 2 * low for wait, low in zip(services.waits, (0.25, 0.5, 1, 2), strict=True))


@pytest.mark.parametrize(
    "asked, waited",
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "86400"}, retries.MAX_WAIT_S),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "nan"}, 0),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
    ],
)
@on_loop
async def test_a_server_may_say_how_long_to_wait_within_bounds(asked: Mapping[str, str], waited: float) -> None:
    services = Services()
    async with serving(bad(429, headers=asked), good()) as server:
        await ask(server, services=services)
    assert sum(services.waits) == waited


@on_loop
async def test_a_date_to_wait_for_is_understood_and_nonsense_is_not() -> None:
    services = Services()
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    replies = (bad(503, headers={"Retry-After": then}), bad(503, headers={"Retry-After": "soon"}), good())
    async with serving(*replies) as server:
        await ask(server, services=services)
    assert 20 < services.waits[0] <= 30
    assert services.waits[1] <= 1


@on_loop
async def test_no_try_begins_after_the_time_for_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "RETRY_S", 100.0)
    services = Services()
    async with serving(bad(429, headers={"Retry-After": "60"})) as server:
        with pytest.raises(InfraError, match="after 2 tries"):
            await ask(server, services=services)
    assert services.waits == [60]


@on_loop
async def test_nobody_at_the_address_is_infrastructure() -> None:
    async with serving(good()) as server:
        pass
    with pytest.raises(InfraError, match=r"127\.0\.0\.1:\d+/v1: Connect"):
        await ask(server)


@pytest.mark.parametrize("bound", ["SILENCE_S", "WHOLE_S"])
@on_loop
async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(provider_http, bound, 0.05)
    monkeypatch.setattr(retries, "TRIES", 2)
    async with serving(None) as server:
        with pytest.raises(InfraError, match=r"no answer in time .*after 2 tries"):
            await ask(server)
    assert len(server.asked) == 2


@on_loop
async def test_a_huge_answer_is_not_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_http, "MAX_BYTES", 1 << 20)
    packed = 200, {"Content-Encoding": "gzip"}, gzip.compress(b" " * (8 << 20))
    async with serving((200, {}, b" " * (2 << 20)), packed) as server:
        for _ in range(2):
            with pytest.raises(InfraError, match="larger than 1 MiB"):
                await ask(server)
    assert len(server.asked) == 2


# ── whose fault ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "reply",
    [bad(401, f"wrong key {KEY}"), bad(402), bad(403, "not for you"), bad(429, "no credit", type="insufficient_quota")],
)
@on_loop
async def test_a_refused_key_ends_the_run_and_names_the_variable(reply: Reply) -> None:
    async with serving(reply) as server:
        with pytest.raises(FatalInfraError, match="OPENAI_COMPATIBLE_API_KEY") as failed:
            await ask(server, OPENAI_COMPATIBLE_API_KEY=KEY)
        assert KEY not in str(failed.value) and KEY not in str(failed.value.hint)
    assert len(server.asked) == 1


@on_loop
async def test_a_server_that_wants_a_key_is_told_from_one_that_refuses_it() -> None:
    async with serving(bad(401)) as server:
        with pytest.raises(FatalInfraError, match="wants a key in OPENAI_COMPATIBLE_API_KEY"):
            await ask(server)


@pytest.mark.parametrize(
    "reply, code, param",
    [
        (bad(400, "too long", code="context_length_exceeded", param="messages"), "context_length_exceeded", "messages"),
        (bad(422, "no such role"), None, None),
        (bad(413, "too much"), None, None),
        (bad(400, "temperature must be 1 for this model"), None, "temperature"),
        (bad(400, "too many", param="max_completion_tokens"), None, "max_output_tokens"),
        ((400, {}, b'{"error": "a text"}'), None, None),
        ((400, {}, b'{"detail": "fast"}'), None, None),
        ((400, {}, b"\xff plain"), None, None),
    ],
)
@on_loop
async def test_a_refused_request_is_the_agents_and_says_why(reply: Reply, code: str | None, param: str | None) -> None:
    async with serving(reply) as server:
        with pytest.raises(RefusedRequest) as refused:
            await ask(server)
    assert isinstance(refused.value, AgentError)
    assert (refused.value.status, refused.value.code, refused.value.param) == (reply[0], code, param)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "reply",
    [
        bad(404, "no such model"),
        bad(400, "no", code="model_not_found"),
        bad(405),
        (301, {"Location": "http://127.0.0.1:1/"}, b""),
        (418, {}, b"tea"),
    ],
)
@on_loop
async def test_a_wrong_name_or_address_ends_the_run(reply: Reply) -> None:
    async with serving(reply) as server:
        with pytest.raises(FatalInfraError, match="cannot serve 'served/name'"):
            await ask(server)
    assert len(server.asked) == 1


# ── addresses and keys ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name, url, environ, fault",
    [
        ("openai", None, {}, "openai needs a key"),
        ("openrouter", None, {"OPENAI_API_KEY": KEY}, "openrouter needs a key"),
        ("openai-compatible", None, {}, "needs the address of its server"),
        ("openai-compatible", "https://example.org/v1", {"OPENAI_API_KEY": KEY}, "openai-compatible needs a key"),
        ("openai", "https://evil.example/v1", {"OPENAI_API_KEY": KEY}, "its key is sent nowhere else"),
        ("openai", "http://api.openai.com/v1", {"OPENAI_API_KEY": KEY}, "its key is sent nowhere else"),
        ("openai", "https://api.openai.com.evil.example/v1", {"OPENAI_API_KEY": KEY}, "its key is sent nowhere else"),
        ("openai-compatible", "ftp://127.0.0.1/v1", {}, "is no address"),
        ("openai-compatible", "127.0.0.1:8000/v1", {}, "is no address"),
        ("openai-compatible", "http://127.0.0.1:99999/v1", {}, "is no address"),
        ("openai-compatible", "http://127.0.0.1/v1?x=1", {}, "is no address"),
        ("openai-compatible", "http://me:pass@127.0.0.1/v1", {}, "would be stored"),
        ("openai", None, {"OPENAI_API_KEY": "sk-abcdefgh\nij"}, "holds what no key is made of"),
    ],
)
def test_what_cannot_work_is_told_before_a_run(name: str, url: str | None, environ: dict[str, str], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as wrong:
        provider(Services(), name, **environ).check("m", {} if url is None else {"base_url": url})
    assert "pass@" not in str(wrong.value) and "sk-" not in str(wrong.value)
    if "needs a key" in fault:
        assert wrong.value.hint is not None and "_API_KEY" in wrong.value.hint


@pytest.mark.parametrize(
    "name, variable", [("openai", "OPENAI_API_KEY"), ("openrouter", "OPENROUTER_API_KEY"), ("google", "GOOGLE_API_KEY")]
)
def test_a_key_that_is_there_is_hidden(name: str, variable: str) -> None:
    services = Services()
    provider(services, name, **{variable: f" {KEY}\n"}).check("m", {})
    assert services.hidden == [KEY]


@on_loop
async def test_a_named_services_key_is_not_sent_to_this_machine_either() -> None:
    async with serving(good()) as server:
        made = provider(Services(), "openai", OPENAI_API_KEY=KEY)
        await made.complete("m", HELLO, context(server.url))
        await made.close()
    assert "authorization" not in server.asked[0][1]


@pytest.mark.parametrize("host, local", [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True),
    ("a.localhost", True), ("localhost.evil.example", False), ("10.0.0.1", False), ("0.0.0.0", False)])  # fmt: skip
def test_only_this_machine_is_local(host: str, local: bool) -> None:
    assert is_local(host) is local


# ── in a run ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def registry() -> Registry:
    found = load(only=())
    found.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    return found


def study(url: str | None, model: str = "openai-compatible/local", **axes: JSONValue) -> Study:
    arm: JSONObject = {"harness": "react", "model": model, **axes}
    return Study(
        name="served", benchmarks=("toy-weather:2",), arms={"a": arm if url is None else {**arm, "base_url": url}}
    )


async def carry_out(what: Study, folder: Path) -> RunEnd:
    found = registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(what, found, services, "r")
        end = await start(plan, folder / "r", found, services, RunOptions(concurrency=1))
        await close_plan(plan)
        return end
    finally:
        await services.close()


@on_loop
async def test_a_run_against_a_local_server_is_scored(tmp_path: Path) -> None:
    function: JSONObject = {"name": "get_weather", "arguments": '{"city":"Bern"}'}
    calls: JSONValue = [{"id": "c", "type": "function", "function": function}]
    replies = [(200, {}, json.dumps(said(None, tool_calls=calls)).encode()), good("It is 10 degrees in Bern.")]
    async with serving(*replies) as server:
        assert await carry_out(study(server.url, temperature=0.0, max_output_tokens=50), tmp_path) == RunEnd("done")
    verdicts = {g.attempt: g.verdict.outcome for g in read_gradings(tmp_path / "r", read_stamp(tmp_path / "r").grading)}
    assert sorted(verdicts.values()) == ["fail", "pass"]  # the other city's weather is another
    assert all(sent["temperature"] == 0.0 and sent["max_tokens"] == 50 for _, _, sent in server.asked)
    assert all("base_url" not in sent for _, _, sent in server.asked)
    first = next(read_attempts(tmp_path / "r"))
    assert first.usage["agent"].calls == 2 and first.usage["agent"].input == 20


@pytest.mark.parametrize("reply", [bad(401, f"you sent {KEY}"), good(f"your key is {KEY}")])
@on_loop
async def test_no_key_is_in_the_runs_directory(reply: Reply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    async with serving(reply) as server:
        end = await carry_out(study(server.url), tmp_path)
    assert KEY in str(server.asked)
    assert (end.reason, KEY in str(end.error)) == ("fatal" if reply[0] == 401 else "done", False)
    files = [f for f in (tmp_path / "r").rglob("*") if f.is_file()]
    assert files and not [f for f in files if KEY.encode() in _unpacked(f)]


def _unpacked(file: Path) -> bytes:
    import zstandard

    data = file.read_bytes()
    if file.suffix != ".zst":
        return data
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        return reader.read()


@on_loop
async def test_an_arms_parameter_that_is_refused_stops_the_run_and_scores_nobody(tmp_path: Path) -> None:
    async with serving(bad(400, "Unsupported parameter: 'reasoning_effort'")) as server:
        end = await carry_out(study(server.url, reasoning_effort="low"), tmp_path)
    assert end.reason == "fatal" and "reasoning_effort" in str(end.error)
    assert [a.exit for a in read_attempts(tmp_path / "r")] == [None]


@on_loop
async def test_a_missing_key_is_told_when_planning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError) as wrong:
        await carry_out(study(None, "openai/gpt-x"), tmp_path)
    assert [str(f) for f in wrong.value.faults] == [
        "arm 'a': openai needs a key (set OPENAI_API_KEY in the environment)"
    ]
    assert not (tmp_path / "r").exists()


@on_loop
async def test_base_url_is_an_axis_of_these_providers_alone(tmp_path: Path) -> None:
    (tmp_path / "play.toml").write_text('[[reply]]\ntext = "x"\n')
    with pytest.raises(ConfigError) as wrong:
        await carry_out(study("http://127.0.0.1:1/v1", "scripted/play.toml"), tmp_path)
    assert "provider 'scripted' does not take it" in str(wrong.value.faults[0])
    assert "openai-compatible" in str(wrong.value.faults[0].hint)


@on_loop
async def test_grading_again_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_http, "is_local", lambda _: False)  # as a service elsewhere, which needs one
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    async with serving(good("10 degrees in Bern")) as server:
        await carry_out(study(server.url), tmp_path)
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
    _, _, count = await regrade(tmp_path / "r", registry())
    assert count == 2
    with pytest.raises(ConfigError):
        await resume(tmp_path / "r", registry(), RunOptions())
