"""A study with faults: every trial with them and without, two cells, the same faults for all, and each in the trace."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from attrs import evolve

from evalcore.engine.plan import make_plan
from evalcore.engine.replay import Recordings, Replay
from evalcore.engine.run import resume
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import read_stamp
from evalcore.engine.study_file import parse_study
from evalcore.errors import ConfigError
from evalcore.report.junit import read_trials
from evalcore.report.load import load_report, load_side
from evalcore.report.scorecard import to_json
from evalcore.values.convert import parse_toml
from evalcore.values.injection import KINDS, Dropped, Injection, Malformed, ServerError, ToolError
from evalcore.values.study import Analysis, Contrast
from evalcore.values.trial import TrialKey
from evalcore.wires.injection import InjectedFault, Injector
from tests.faults.rig import RunOptions, attempts, events, ran, registry, study
from tests.integration.wire_rig import Says, client, modern, on_loop, open_wires, said, serving
from tests.oracles import ROOT

PAGE = (ROOT / "docs" / "faults.md").read_text()
HALF = Injection(seed=3, server_error=ServerError(0.3), tool_error=ToolError(0.3))
ARMS = {name: {"harness": "react", "model": "scripted/play.toml", "max_turns": n} for name, n in (("a", 50), ("b", 40))}
CONTROLS = {"oracle": {"harness": "oracle"}, "noop": {"harness": "noop"}}
SURE = """
[[reply]]
match = { call = 1 }
tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }]
[[reply]]
match = { contains = "degrees in Bern" }
text = "It is 10 degrees in Bern."
[[reply]]
text = "I do not know."
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two arms and the controls, with faults and without."""
    path = tmp_path_factory.mktemp("faulty")
    what = study("toy-weather:12", arms={**ARMS, **CONTROLS}, repeats=2, faults=HALF)
    assert ran(what, path, playbook=SURE, concurrency=8) == RunEnd("done")
    return path


def cells(run: Path) -> dict[tuple[str, str], Any]:
    card: Any = to_json(load_report(run))
    return {(c["arm"]["handle"], c["stamp"]["provenance"]): c for c in card["cells"]}


def test_every_trial_of_a_model_runs_twice_and_the_cells_stand_apart(folder: Path) -> None:
    found = cells(folder / "r")
    assert set(found) == {
        ("a", "live"), ("a", "fault-injected"), ("b", "live"), ("b", "fault-injected"),
        ("oracle", "live"), ("noop", "live"),
    }  # fmt: skip
    assert all(cell["planned"] == cell["trials"] == 24 for cell in found.values())
    assert found["oracle", "live"]["outcomes"]["pass"] == 24
    live, faulty = found["a", "live"]["outcomes"], found["a", "fault-injected"]
    assert live["pass"] == 4 and 0 <= faulty["outcomes"]["pass"] < 4
    assert faulty["exits"]["crashed"] > 0 and found["a", "live"]["exits"]["crashed"] == 0
    assert any("provenance fault-injected" in note for note in faulty["notes"])


def test_what_was_injected_is_in_the_trace_and_nowhere_else(folder: Path) -> None:
    run = folder / "r"
    told = {a.id: [e for e in events(run, a) if e["e"] == "fault.injected"] for a in attempts(run)}
    assert {a.provenance for a in attempts(run) if told[a.id]} == {"fault-injected"}
    assert {e["what"] for found in told.values() for e in found} == {"server_error", "tool_error"}
    crashed = [a for a in attempts(run) if a.exit and a.exit.kind == "crashed"]
    assert crashed and all(told[a.id][-1]["what"] == "server_error" for a in crashed)


def test_all_arms_meet_the_same_faults(folder: Path) -> None:
    met: dict[str, dict[tuple[str, int], list[Any]]] = {}
    for attempt in attempts(folder / "r"):
        if attempt.provenance == "fault-injected":
            found = [(e["what"], e["call"]) for e in events(folder / "r", attempt) if e["e"] == "fault.injected"]
            met.setdefault(attempt.key.arm, {})[attempt.key.task, attempt.key.repeat] = found
    first, second = met.values()
    assert first == second and sum(map(len, first.values())) > 5


def test_a_run_with_faults_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    what = study("toy-weather:6", arms={"a": ARMS["a"]}, faults=HALF)
    ran(what, tmp_path, playbook=SURE, concurrency=4)
    before = {str(a.key): (str(a.exit), a.provenance) for a in attempts(tmp_path / "r")}
    assert len(before) == 12
    ledger = tmp_path / "r" / "attempts.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:5]))
    assert asyncio.run(resume(tmp_path / "r", registry(), RunOptions()))[1] == RunEnd("done")
    assert {str(a.key): (str(a.exit), a.provenance) for a in attempts(tmp_path / "r")} == before


def test_faults_alone_leave_no_live_cell(tmp_path: Path) -> None:
    what = study(
        "toy-weather:3", arms={"a": ARMS["a"]}, faults=Injection(beside=False, malformed_arguments=Malformed(1.0))
    )
    ran(what, tmp_path, playbook=SURE)
    (cell,) = load_report(tmp_path / "r").cells
    assert (cell.provenance, cell.trials) == ("fault-injected", 3)
    raw = [e for a in attempts(tmp_path / "r") for e in events(tmp_path / "r", a) if e["e"] == "tool.call"]
    assert [e["raw"] for e in raw] == ['{"city"'] * 3  # half of what the model said


def test_the_disturbed_trials_stay_out_of_comparisons_replays_and_other_reports(folder: Path) -> None:
    run = folder / "r"
    side = load_side(run, "a")
    assert side.worlds == (("live", "none"),)
    assert sum(len(task.results) for task in side.tasks) == 24
    places = read_trials(run, read_stamp(run).grading)
    assert len(places) == 6 and all(sum(map(len, tasks.values())) == 24 for tasks in places.values())
    recordings = Recordings(Replay(run))
    live = [a for a in attempts(run) if a.provenance == "live" and a.usage]
    arms = {a.arm.digest: a.arm for a in read_stamp(run).arms}
    for attempt in live:
        assert f"attempt {attempt.id} " in recordings.tape(attempt.key, arms[attempt.key.arm], ()).source
    recordings.close()


def test_declared_contrasts_are_of_the_undisturbed_trials(tmp_path: Path) -> None:
    what = study("toy-weather:8", arms=ARMS, faults=HALF, contrasts=(Contrast("a", "b"),))
    ran(what, tmp_path, playbook=SURE, concurrency=8)
    (contrast,) = load_report(tmp_path / "r").contrasts
    assert "not of one kind" not in str(contrast)
    assert {cell.provenance for cell in load_report(tmp_path / "r").cells} == {"live", "fault-injected"}
    alone = evolve(what, faults=evolve(HALF, beside=False))
    (tmp_path / "alone").mkdir()
    ran(alone, tmp_path / "alone", playbook=SURE, concurrency=8)
    (contrast,) = load_report(tmp_path / "alone" / "r").contrasts
    assert "not of one kind" not in str(contrast)


def test_a_replay_injects_none(tmp_path: Path) -> None:
    ran(study("toy-weather:1"), tmp_path, playbook=SURE)

    async def planned() -> None:
        services = LocalServices(registry(), tmp_path)
        await make_plan(study("toy-weather:1", faults=HALF), registry(), services, "x", replay=Replay(tmp_path / "r"))

    with pytest.raises(ConfigError, match="a replay injects no faults"):
        asyncio.run(planned())


# ── as an agent outside meets them ───────────────────────────────────────────────────────────────────────────────────


@on_loop
async def test_a_client_is_told_when_to_try_again() -> None:
    fault = InjectedFault("rate limit reached", status=429, code="rate_limit_exceeded", retry_after_s=1.5)
    async with serving() as server, client() as http:
        wires = await open_wires(server, Says(fault))
        url = f"{wires.model_door.url}/chat/completions"
        for stream in (False, True):
            reply = await http.post(url, json={"messages": [], "stream": stream})
            assert (reply.status_code, reply.headers["retry-after"]) == (429, "1.5")
            assert "x-should-retry" not in reply.headers
            assert reply.json()["error"]["code"] == "rate_limit_exceeded"
        wires.channel._upstream.provider.answer = said("at last")  # type: ignore[attr-defined]
        assert (await http.post(url, json={"messages": []})).status_code == 200
        assert wires.meter.failure is None


@on_loop
async def test_a_dropped_connection_is_one_and_the_environment_has_made_the_call() -> None:
    async with serving() as server, client() as http:
        wires = await open_wires(server)
        injector = Injector(Injection(dropped_connection=Dropped(1.0)))
        wires.tools._faults = injector.of_tools(TrialKey("odd", "t", "arm", 1), wires.recorder)
        wires.tools.url = wires.tool_door.url
        headers, body = modern("tools/call", {"name": "echo", "arguments": {"x": 1}})
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.post(wires.tool_door.url, headers=headers, content=body)
        assert [e["e"] for e in wires.events() if str(e["e"]).startswith(("tool", "fault"))] == [
            "tool.call", "fault.injected", "tool.result",
        ]  # fmt: skip
        wires.tools._faults = None
        reply = await http.post(wires.tool_door.url, headers=headers, content=body)
        assert reply.status_code == 200 and "result" in reply.json()
        assert wires.meter.failure is None


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_shows_a_study_and_every_kind_with_its_defaults() -> None:
    found = re.search(r"^```toml study.toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    shown = parse_study(parse_toml(found[1], "page"), "page")
    assert shown.faults is not None and shown.faults.rate_limit is not None
    for kind in KINDS:
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |")]
        made = parse_study({**shown.as_json(), "faults": {kind: {"share": 0.5}}}, "page").faults
        assert made is not None
        for name, value in json.loads(json.dumps(made.as_json()))[kind].items():
            assert name == "share" or f"`{name}`" in row, (kind, name)
            if isinstance(value, float) and name != "share":
                assert f"`{name}` ({value:g})" in row


def test_a_study_with_looks_and_faults_runs_its_disturbed_trials_too(tmp_path: Path) -> None:
    looks = Analysis(stopping="obrien-fleming")
    what = study("toy-weather:2", arms=ARMS, repeats=2, faults=HALF, analysis=looks)
    assert ran(what, tmp_path, playbook=SURE) == RunEnd("done")
    tried = [(a.key.task, a.key.arm, a.key.repeat, a.key.faults) for a in attempts(tmp_path / "r")]
    assert len(set(tried)) == 16 and len({key for key in tried if key[-1]}) == 8
