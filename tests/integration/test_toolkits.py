"""Toolkits at work: upstream code that prints, hangs, dies, floods and asks back, and a host that stays right."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from evalcore.errors import InfraError, ToolkitError
from evalcore.process.runner import run
from evalcore.toolkits.environment import ensure
from evalcore.toolkits.faults import WorkerFault, WorkerLost
from evalcore.toolkits.host import Toolkit
from evalcore.values.json import JSONObject
from evalcore.values.toolkit import ToolkitSpec

SLOW_S = 60.0  # for what must happen, on however busy a machine
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

UPSTREAM = """
print("upstream prints while it is imported")
VERSION = "1.0"
def shout(text):
    print("upstream prints:", text)
    return text.upper()
"""

WORKER = Path(__file__).with_name("toolkit_worker.py").read_text(encoding="utf-8")


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolkitSpec:
    """A toolkit whose upstream is a checkout, so that nothing is installed."""
    checkout, pack = tmp_path / "checkout", tmp_path / "site" / "demo_pack"
    for folder in (checkout, pack):
        folder.mkdir(parents=True)
    (checkout / "upstream.py").write_text(UPSTREAM)
    (pack / "__init__.py").write_text("raise RuntimeError('a plugin must not be imported for its worker')")
    (pack / "worker.py").write_text(WORKER)
    (pack / "sibling.py").write_text("NAME = 'sibling'")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("EVALCORE_TOOLKIT_DEMO", str(checkout))
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path / "cache"))
    files = {"upstream.py": hashlib.sha256(UPSTREAM.encode()).hexdigest(), "missing.py": "0" * 64}
    return ToolkitSpec("demo", (), ">=3.10", "demo_pack.worker", files)


def with_toolkit(spec: ToolkitSpec, scenario: Callable[[Toolkit], Coroutine[Any, Any, None]], workers: int = 1) -> None:
    async def main() -> None:
        async with Toolkit(spec, await ensure(spec, install=False), workers) as toolkit:
            await scenario(toolkit)

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SLOW_S):
        while not condition():  # noqa: ASYNC110 - it is another process that makes it true
            await asyncio.sleep(0.005)


def alive(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_upstream_may_print_and_start_programs_without_breaking_a_frame(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        assert await toolkit.request("shout", {"text": "a"}, SLOW_S) == "A"
        assert await toolkit.request("shell", {}, SLOW_S) == ""

    with_toolkit(spec, scenario)


def test_many_requests_at_once_each_get_their_own_answer(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        answers = await asyncio.gather(*(toolkit.request("echo", {"n": n}, SLOW_S) for n in range(2000)))
        assert answers == [{"n": n} for n in range(2000)]

    with_toolkit(spec, scenario, workers=2)


def test_values_that_json_garbles_survive_both_ways(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        odd = await toolkit.request("odd", {}, SLOW_S)
        assert isinstance(odd, list)
        assert isinstance(odd[1], float) and math.isnan(odd[1])
        assert repr([odd[0], *odd[2:]]) == repr(["\udc80", -math.inf, 2**100, 5.0, {"\ud800": None}])
        echo = await toolkit.request("echo", {"value": odd}, SLOW_S)
        assert repr(echo) == repr({"value": odd})

    with_toolkit(spec, scenario)


def test_an_answer_of_sixty_megabytes_arrives(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        large = await toolkit.request("large", {"size": 60_000_000}, 10 * SLOW_S)
        assert isinstance(large, str)
        assert len(large) == 60_000_000

    with_toolkit(spec, scenario)


@pytest.mark.parametrize(
    "method, params, kind",
    [
        ("raises", {"what": "task"}, "LookupError"),
        ("leaves", {}, "SystemExit"),
        ("big_integer", {"digits": 5000}, "ValueError"),
        ("raw_big_integer", {"digits": 5000}, "ValueError"),
        ("deep", {"depth": 100_000}, "RecursionError"),
        ("foreign", {}, "TypeError"),
        ("no such", {}, "KeyError"),
    ],
)
def test_a_handler_that_fails_is_a_fault_and_the_worker_lives(
    spec: ToolkitSpec, method: str, params: dict[str, Any], kind: str
) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        pid = await toolkit.request("pid", {}, SLOW_S)
        with pytest.raises(WorkerFault) as caught:
            await toolkit.request(method, params, SLOW_S)
        assert caught.value.type == kind
        assert await toolkit.request("pid", {}, SLOW_S) == pid

    with_toolkit(spec, scenario)


def test_a_fault_tells_what_upstream_said_and_where(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        with pytest.raises(WorkerFault, match="raises raised LookupError") as caught:
            await toolkit.request("raises", {"what": "task"}, SLOW_S)
        assert caught.value.text == "no \ud800 such task"
        assert "worker.py" in caught.value.traceback
        assert isinstance(caught.value, ToolkitError)

    with_toolkit(spec, scenario)


def test_parameters_that_cannot_be_sent_are_a_fault(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        with pytest.raises(WorkerFault, match="cannot be sent"):
            await toolkit.request("echo", {"n": 10**5000}, SLOW_S)

    with_toolkit(spec, scenario)


def test_a_worker_sees_no_keys_and_works_in_an_empty_folder(spec: ToolkitSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PYTHONSTARTUP", "x")

    async def scenario(toolkit: Toolkit) -> None:
        seen = await toolkit.request("environment", {}, SLOW_S)
        assert isinstance(seen, dict)
        assert "secret" not in json.dumps(seen)
        assert {name for name in seen if name.startswith("PYTHON")} == {
            *("PYTHONHASHSEED", "PYTHONUTF8", "PYTHONNOUSERSITE", "PYTHONPATH")
        }
        here = await toolkit.request("here", {}, SLOW_S)
        assert isinstance(here, list)
        assert here[1] == []
        assert here[3] == "sibling"
        assert here[0] != str(Path.cwd())

    with_toolkit(spec, scenario)


def test_what_is_printed_before_the_worker_takes_over_is_no_frame(spec: ToolkitSpec, tmp_path: Path) -> None:
    (tmp_path / "checkout" / "sitecustomize.py").write_text("print('a site that prints'); print('{}')")

    async def scenario(toolkit: Toolkit) -> None:
        assert await toolkit.request("echo", {}, SLOW_S) == {}

    with_toolkit(spec, scenario)


# ── hanging and dying ────────────────────────────────────────────────────────────────────────────────────────────────


@linux
def test_a_worker_that_hangs_is_ended_with_its_children_and_replaced(spec: ToolkitSpec, tmp_path: Path) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        pid = await toolkit.request("pid", {}, SLOW_S)
        assert isinstance(pid, int)
        with pytest.raises(WorkerLost, match="hung in hang") as caught:
            await toolkit.request("hang", {"flag": str(tmp_path / "child")}, 1.0)
        assert caught.value.reason == "hung"
        assert not alive(pid)
        assert not alive(int((tmp_path / "child").read_text()))
        assert await toolkit.request("pid", {}, SLOW_S) != pid

    with_toolkit(spec, scenario)


@linux
@pytest.mark.parametrize("method", ["die", "fork_and_die"])
def test_a_worker_that_dies_fails_its_request_and_is_replaced(spec: ToolkitSpec, method: str) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        pid = await toolkit.request("pid", {}, SLOW_S)
        with pytest.raises(WorkerLost, match="exit code 7") as caught:
            await toolkit.request(method, {}, SLOW_S)
        assert caught.value.reason == "died"
        assert ("last words" in caught.value.message) == (method == "die")
        assert await toolkit.request("pid", {}, SLOW_S) != pid

    with_toolkit(spec, scenario)


def test_requests_behind_one_that_kills_its_worker_are_answered_by_the_next(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        await asyncio.gather(*(toolkit.request("echo", {}, SLOW_S) for _ in range(100)))  # quick: now it is pipelined
        methods = ["die" if n % 10 == 5 else "echo" for n in range(50)]
        answers = await asyncio.gather(
            *(toolkit.request(method, {"n": n}, SLOW_S) for n, method in enumerate(methods)), return_exceptions=True
        )
        for n, (method, answer) in enumerate(zip(methods, answers, strict=True)):
            assert isinstance(answer, WorkerLost) if method == "die" else answer == {"n": n}

    with_toolkit(spec, scenario)


def test_waiting_behind_a_slow_request_is_not_hanging(spec: ToolkitSpec, tmp_path: Path) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        await asyncio.gather(*(toolkit.request("echo", {}, SLOW_S) for _ in range(100)))  # quick: now it is pipelined
        slow = asyncio.create_task(
            toolkit.request("nap", {"begun": str(tmp_path / "begun"), "until": str(tmp_path / "go")}, SLOW_S)
        )
        await until((tmp_path / "begun").exists)
        quick = asyncio.create_task(toolkit.request("echo", {}, 1.0))
        await asyncio.sleep(2.0)  # twice what the second one may take
        (tmp_path / "go").touch()
        assert await slow == "rested"
        assert await quick == {}

    with_toolkit(spec, scenario)


def test_an_answer_that_came_while_the_host_stood_still_counts(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        await toolkit.request("echo", {}, SLOW_S)
        answer = asyncio.create_task(toolkit.request("echo", {}, 0.5))
        await asyncio.sleep(0)
        time.sleep(2.0)  # noqa: ASYNC251 - as a host does that parses something large
        assert await answer == {}

    with_toolkit(spec, scenario)


def test_a_cancelled_request_leaves_the_worker_to_the_others(spec: ToolkitSpec, tmp_path: Path) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        pid = await toolkit.request("pid", {}, SLOW_S)
        nap: JSONObject = {"begun": str(tmp_path / "begun"), "until": str(tmp_path / "go")}
        begun = asyncio.create_task(toolkit.request("nap", nap, SLOW_S))
        queued = asyncio.create_task(toolkit.request("echo", {}, SLOW_S))
        await until((tmp_path / "begun").exists)
        for task in (begun, queued):
            task.cancel()
        await asyncio.wait({begun, queued})
        (tmp_path / "go").touch()
        assert await toolkit.request("pid", {}, SLOW_S) == pid

    with_toolkit(spec, scenario)


@pytest.mark.parametrize(
    "code, said",
    [
        ("raise ImportError('no module named upstream_extra')", "no module named upstream_extra"),
        ("import os; os._exit(3)", "exit code 3"),
        ("handlers = None", "not callable"),
        ("def handlers(): return {}\ndef stamp(): return {1, 2}", "not JSON serializable"),
    ],
    ids=["raises", "exits", "no handlers", "odd stamp"],
)
def test_a_worker_that_cannot_start_says_why_to_all_who_wait(
    spec: ToolkitSpec, tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "site" / "demo_pack" / "worker.py").write_text(code)

    async def scenario(toolkit: Toolkit) -> None:
        answers = await asyncio.gather(
            *(toolkit.request("echo", {}, SLOW_S) for _ in range(3)), toolkit.stamp(), return_exceptions=True
        )
        for answer in answers:
            assert isinstance(answer, WorkerLost)
            assert answer.reason == "start"
            assert said in answer.message
        with pytest.raises(WorkerLost, match=r"start|loaded"):
            async with toolkit.session():
                pytest.fail("a session on nothing")

    with_toolkit(spec, scenario, workers=2)


def test_a_worker_that_is_never_ready_is_given_up(spec: ToolkitSpec, tmp_path: Path) -> None:
    (tmp_path / "site" / "demo_pack" / "worker.py").write_text("import time; time.sleep(600)")

    async def main() -> None:
        async with Toolkit(spec, await ensure(spec, install=False), 1, start_timeout_s=0.5) as toolkit:
            with pytest.raises(WorkerLost, match=r"not ready after 0\.5 s"):
                await toolkit.request("echo", {}, SLOW_S)

    asyncio.run(main())


@linux
def test_closing_ends_workers_and_whatever_is_unanswered(spec: ToolkitSpec, tmp_path: Path) -> None:
    async def main() -> None:
        toolkit = Toolkit(spec, await ensure(spec, install=False), 2)
        child = tmp_path / "child"
        begun = asyncio.create_task(toolkit.request("hang", {"flag": str(child)}, SLOW_S))
        await until(lambda: child.exists() and bool(child.read_text()))
        pids = toolkit.pids()
        await toolkit.close()
        await toolkit.close()
        with pytest.raises(WorkerLost) as caught:
            await begun
        assert caught.value.reason == "closed"
        assert [pid for pid in [*pids, int(child.read_text())] if alive(pid)] == []
        with pytest.raises(WorkerLost, match="was closed"):
            await toolkit.request("echo", {}, SLOW_S)

    asyncio.run(main())


@linux
def test_a_hanging_worker_does_not_outlive_a_host_that_was_killed(spec: ToolkitSpec, tmp_path: Path) -> None:
    code = """
import asyncio, sys
from evalcore.toolkits.environment import ensure
from evalcore.toolkits.host import Toolkit
from evalcore.values.json import JSONObject
from evalcore.values.toolkit import ToolkitSpec
async def main():
    spec = ToolkitSpec("demo", (), ">=3.10", "demo_pack.worker")
    toolkit = Toolkit(spec, await ensure(spec, install=False), 1)
    print(await toolkit.request("pid", {}, 60), flush=True)
    await toolkit.request("hang", {}, 600)
asyncio.run(main())
"""

    async def main() -> None:
        lines: list[str] = []
        env = {name: os.environ[name] for name in ("EVALCORE_TOOLKIT_DEMO", "EVALCORE_CACHE", "PATH")}
        host = asyncio.create_task(
            run(
                # The runner would end the whole tree: the host is killed by a process that it knows nothing about.
                ["/bin/sh", "-c", '"$0" -c "$1" & echo $!; wait; sleep 600', sys.executable, code],
                timeout_s=10 * SLOW_S,
                env={**env, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
                on_line=lines.append,
            )
        )
        try:
            await until(lambda: len(lines) >= 2 or host.done())
            host_pid, worker_pid = map(int, lines[:2])
            assert alive(worker_pid)
            os.kill(host_pid, 9)
            await until(lambda: not alive(worker_pid))
        finally:
            host.cancel()
            await asyncio.wait({host})

    asyncio.run(main())


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sessions_spread_over_workers_and_stay_where_they_are(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        async with toolkit.session() as one, toolkit.session() as two, toolkit.session() as three:
            pids = {session.name: await session.request("pid", {}, SLOW_S) for session in (one, two, three)}
            assert len(set(pids.values())) == 2
            for n in range(1, 20):
                for session in (one, two, three):
                    assert await session.request("count", {}, SLOW_S) == n
                    assert await session.request("pid", {}, SLOW_S) == pids[session.name] == session.pid

    with_toolkit(spec, scenario, workers=2)


def test_a_session_that_ended_is_forgotten(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        async with toolkit.session() as session:
            await session.request("count", {}, SLOW_S)
            assert await toolkit.request("sessions", {}, SLOW_S) == [session.name]
        assert await toolkit.request("sessions", {}, SLOW_S) == []

    with_toolkit(spec, scenario)


def test_sessions_of_a_lost_worker_fail_clearly_and_new_ones_work(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        async with toolkit.session() as one, toolkit.session() as two:
            hung = asyncio.create_task(one.request("hang", {}, 1.0))
            behind = asyncio.create_task(two.request("echo", {}, SLOW_S))
            for task, reason in ((hung, "hung"), (behind, "died")):
                with pytest.raises(WorkerLost) as caught:
                    await task
                assert caught.value.reason == reason
            with pytest.raises(WorkerLost, match="session's worker is gone"):
                await two.request("echo", {}, SLOW_S)
        async with toolkit.session() as fresh:
            assert await fresh.request("count", {}, SLOW_S) == 1

    with_toolkit(spec, scenario)


# ── callbacks ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def complete(method: str, params: dict[str, Any]) -> Any:
    return {"method": method, **params}


def test_a_handler_can_ask_the_host_while_requests_pile_up_behind_it(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        async with toolkit.session(complete) as session:
            asked = [session.request("ask", {"n": n}, SLOW_S) for n in range(200)]
            plain = [session.request("echo", {"n": n}, SLOW_S) for n in range(200)]
            answers = await asyncio.gather(*asked, *plain)
        assert answers[:200] == [{"method": "model.complete", "n": n} for n in range(200)]
        assert answers[200:] == [{"n": n} for n in range(200)]

    with_toolkit(spec, scenario)


def test_threads_of_a_handler_can_ask_but_not_after_it_returned(spec: ToolkitSpec) -> None:
    async def number(_: str, params: dict[str, Any]) -> Any:
        return params["n"]

    async def scenario(toolkit: Toolkit) -> None:
        assert await toolkit.request("ask_in_threads", {}, SLOW_S, on_callback=number) == list(range(8))
        await toolkit.request("ask_later", {}, SLOW_S, on_callback=number)
        late = await toolkit.request("late", {}, SLOW_S)
        assert late == "model.complete was called after its handler had returned"

    with_toolkit(spec, scenario)


def test_a_callback_runs_in_the_context_of_whoever_asked(spec: ToolkitSpec) -> None:
    trial: contextvars.ContextVar[str] = contextvars.ContextVar("trial", default="none")

    async def tell(_: str, __: dict[str, Any]) -> Any:
        return trial.get()

    async def scenario(toolkit: Toolkit) -> None:
        async def ask(name: str) -> Any:
            trial.set(name)
            return await toolkit.request("ask", {}, SLOW_S, on_callback=tell)

        names = [f"trial {n}" for n in range(10)]
        assert await asyncio.gather(*map(ask, names)) == names

    with_toolkit(spec, scenario)


def test_the_time_that_a_callback_takes_is_not_the_workers(spec: ToolkitSpec) -> None:
    async def slow(_: str, __: dict[str, Any]) -> Any:
        await asyncio.sleep(2.0)
        return "late"

    async def scenario(toolkit: Toolkit) -> None:
        await toolkit.request("pid", {}, SLOW_S)
        assert await toolkit.request("ask", {}, 1.0, on_callback=slow) == "late"

    with_toolkit(spec, scenario)


@pytest.mark.parametrize("method", ["ask", "swallow", "swallow_everything"])
def test_what_a_callback_raises_comes_through_even_if_upstream_swallows_it(spec: ToolkitSpec, method: str) -> None:
    async def overloaded(_: str, __: dict[str, Any]) -> Any:
        raise InfraError("the provider is overloaded")

    async def scenario(toolkit: Toolkit) -> None:
        with pytest.raises(InfraError, match="overloaded"):
            await toolkit.request(method, {}, SLOW_S, on_callback=overloaded)
        assert await toolkit.request("echo", {}, SLOW_S) == {}

    with_toolkit(spec, scenario)


def test_without_a_callback_the_request_fails_and_says_so(spec: ToolkitSpec) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        with pytest.raises(ToolkitError, match=r"nothing here answers its model\.complete"):
            await toolkit.request("ask", {}, SLOW_S)

    with_toolkit(spec, scenario)


def test_cancelling_a_request_cancels_its_callback_and_frees_the_worker(spec: ToolkitSpec) -> None:
    called, cancelled = asyncio.Event(), asyncio.Event()

    async def never(_: str, __: dict[str, Any]) -> Any:
        called.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()

    async def scenario(toolkit: Toolkit) -> None:
        pid = await toolkit.request("pid", {}, SLOW_S)
        task = asyncio.create_task(toolkit.request("ask", {}, SLOW_S, on_callback=never))
        async with asyncio.timeout(SLOW_S):
            await called.wait()
            task.cancel()
            await cancelled.wait()
        assert await toolkit.request("pid", {}, SLOW_S) == pid

    with_toolkit(spec, scenario)


# ── what a run records ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_checkout_is_used_unverified_and_stamped_with_what_it_holds(spec: ToolkitSpec, tmp_path: Path) -> None:
    async def scenario(toolkit: Toolkit) -> None:
        stamp = await toolkit.stamp()
        assert stamp["source"] == "checkout"
        assert stamp["origin"] == str(tmp_path / "checkout")
        assert stamp["files"] == {"upstream.py": spec.files["upstream.py"], "missing.py": None}
        assert stamp["upstream"] == {"upstream": "1.0"}
        assert stamp["worker"] == hashlib.sha256(WORKER.encode()).hexdigest()

    with_toolkit(spec, scenario)
