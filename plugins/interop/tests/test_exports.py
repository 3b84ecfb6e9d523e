"""Trajectories, spans and tables: each as its format has it, and no less than the run holds."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalcore.cli.main import program
from evalcore.engine.store import read_attempts, read_stamp
from evalcore.values.redaction import RedactionRules
from evalcore.values.trace import TraceReader
from evalcore_interop.atif import Trajectories
from evalcore_interop.otel import Spans
from evalcore_interop.parquet import Table
from evalcore_interop.trials import conversation, plain

SOURCES = {"system", "user", "agent"}


def trajectories(run: Path, out: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in Trajectories().render(run, out)]


@pytest.mark.parametrize("which", ["weather", "dialogue"])
def test_trajectories_keep_the_rules_of_the_format(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run: Path = request.getfixturevalue(which)
    found = trajectories(run, tmp_path)
    assert [t["session_id"] for t in found] == [a.id for a in read_attempts(run)]
    answered = 0
    for one in found:
        assert one["schema_version"] == "ATIF-v1.4" and one["agent"]["name"] and one["agent"]["version"]
        assert [s["step_id"] for s in one["steps"]] == list(range(1, len(one["steps"]) + 1))
        assert one["final_metrics"]["total_steps"] == len(one["steps"])
        for step in one["steps"]:
            assert step["source"] in SOURCES and isinstance(step["message"], str)
            assert datetime.fromisoformat(step["timestamp"]).tzinfo is not None
            calls = {c["tool_call_id"] for c in step.get("tool_calls", [])}
            assert all(isinstance(c["arguments"], dict) for c in step.get("tool_calls", []))
            results = step.get("observation", {"results": [{"source_call_id": i} for i in calls]})["results"]
            assert {r["source_call_id"] for r in results} <= calls
            answered += "observation" in step
            if step["source"] != "agent":
                assert not step.keys() & {"tool_calls", "observation", "metrics", "model_name"}
    assert answered > 0


def test_a_trajectory_is_what_happened(weather: Path, tmp_path: Path) -> None:
    one = next(t for t in trajectories(weather, tmp_path) if t["agent"]["name"] == "react" and "Bern" in str(t))
    assert [s["source"] for s in one["steps"]] == ["system", "user", "agent", "agent"]
    asked, ended = one["steps"][2:]
    assert asked["message"] == "Let me look."
    assert [(c["function_name"], c["arguments"]) for c in asked["tool_calls"]] == [("get_weather", {"city": "Bern"})]
    assert "10 degrees in Bern" in asked["observation"]["results"][0]["content"]
    assert asked["metrics"] == {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 0, "cost_usd": 0.001}
    assert ended["message"] == "It is 10 degrees in Bern."
    assert one["final_metrics"]["total_prompt_tokens"] == 250
    assert one["extra"]["evalcore"]["outcome"] == "pass"


def test_a_control_has_no_tokens_rather_than_none_used(weather: Path, tmp_path: Path) -> None:
    one = next(t for t in trajectories(weather, tmp_path) if t["agent"]["name"] == "oracle")
    assert "total_prompt_tokens" not in one["final_metrics"] and "model_name" not in one["agent"]


def spans(run: Path, out: Path, **more: Any) -> list[list[dict[str, Any]]]:
    """The spans of each line."""
    (path,) = Spans().render(run, out, **more)
    found = []
    for line in path.read_bytes().splitlines():
        (resource,) = json.loads(line)["resourceSpans"]
        assert {"key": "service.name", "value": {"stringValue": "evalcore"}} in resource["resource"]["attributes"]
        (scope,) = resource["scopeSpans"]
        assert scope["scope"]["name"] == "evalcore"
        found.append(scope["spans"])
    return found


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


@pytest.mark.parametrize("which", ["weather", "dialogue"])
def test_spans_are_of_one_trace_each_and_within_their_parent(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Path = request.getfixturevalue(which)
    found = spans(run, tmp_path)
    traces = [{s["traceId"] for s in trial} for trial in found]
    assert all(len(t) == 1 for t in traces) and len(set.union(*traces)) == len(found) == len(list(read_attempts(run)))
    for outer, *inner in found:
        assert "parentSpanId" not in outer and len(outer["traceId"]) == 32
        assert len({s["spanId"] for s in (outer, *inner)}) == 1 + len(inner)
        for span in inner:
            assert span["parentSpanId"] == outer["spanId"] and len(span["spanId"]) == 16
            times = [outer["startTimeUnixNano"], span["startTimeUnixNano"], span["endTimeUnixNano"]]
            times = [int(t) for t in (*times, outer["endTimeUnixNano"])]
            assert times == sorted(times)


def test_spans_follow_the_genai_conventions(weather: Path, dialogue: Path, tmp_path: Path) -> None:
    agent = next(t for t in spans(weather, tmp_path / "w") if len(t) == 4)
    assert [(s["name"], s["kind"]) for s in agent] == [
        ("invoke_agent react", 1),
        ("chat agent.toml", 3),
        ("execute_tool get_weather", 1),
        ("chat agent.toml", 3),
    ]
    said = attributes(agent[1])
    assert (said["gen_ai.operation.name"], said["gen_ai.provider.name"]) == ("chat", "scripted")
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == ("100", "20")
    assert attributes(agent[0])["evalcore.outcome"] == "pass"
    roles = [attributes(s).get("evalcore.role") for s in spans(dialogue, tmp_path / "d")[0]]
    assert {"agent", "user"} <= set(roles)


def test_a_void_attempt_is_an_error_and_a_control_has_no_tokens(weather: Path, tmp_path: Path) -> None:
    found = [trial[0] for trial in spans(weather, tmp_path)]
    void = next(s for s in found if attributes(s).get("error.type"))
    assert attributes(void)["error.type"] == "provider" and void["status"] == {"code": 2}
    oracle = next(s for s in found if s["name"] == "invoke_agent oracle")
    assert "gen_ai.usage.input_tokens" not in attributes(oracle) and "status" not in oracle


def test_withheld_responses_count_no_tokens(weather: Path, tmp_path: Path) -> None:
    rules = RedactionRules(withhold=("answers",))
    chats = [s for t in spans(weather, tmp_path, public=True, rules=rules) for s in t if s["name"].startswith("chat")]
    assert chats and not any("gen_ai.usage.input_tokens" in attributes(s) for s in chats)


def test_spans_written_twice_are_the_same(weather: Path, tmp_path: Path) -> None:
    assert spans(weather, tmp_path / "a") == spans(weather, tmp_path / "b")


def test_a_table_of_every_attempt(weather: Path, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="needs: polars")
    (path,) = Table().render(weather, tmp_path)
    frame = polars.read_parquet(path)
    attempts = list(read_attempts(weather))
    assert frame["attempt"].to_list() == [a.id for a in attempts]
    assert frame["agent_input"].to_list() == [a.usage["agent"].input if "agent" in a.usage else 0 for a in attempts]
    assert frame["void"].to_list() == [a.void and a.void.kind for a in attempts]
    assert frame.schema["wall_s"] == polars.Float64 and frame.schema["control"] == polars.Boolean


def test_calls_that_no_message_asked_for_get_one_of_their_own() -> None:
    """As in a text protocol, where a call is part of the text."""
    lines = [
        b'{"t":0.0,"e":"trial.start","messages":[{"role":"user","content":"go"}]}',
        b'{"t":1.0,"e":"model.response","role":"agent","call":1,"body":{"choices":[{"message":{"content":"<call>"}}]}}',
        b'{"t":2.0,"e":"tool.call","call":1,"tool":"look","arguments":{"x":1}}',
        b'{"t":2.1,"e":"tool.call","call":2,"tool":"never","raw":"{x"}',
        b'{"t":3.0,"e":"tool.result","call":1,"error":true,"content":[{"type":"text","text":"no"},{"type":"image"}]}',
    ]
    steps = conversation(TraceReader(lines))
    assert [(s.role, s.text, s.call, s.failed) for s in steps] == [
        ("user", "go", "", False),
        ("assistant", "<call>", "", False),
        ("assistant", "", "", False),
        ("tool", "no\n[image]", "t1", True),
        ("assistant", "", "", False),
    ]
    assert steps[4].calls == ({"id": "t2", "name": "never", "arguments": "{x"},)


def test_calls_side_by_side_get_their_own_results() -> None:
    call = b'{"function":{"name":"look","arguments":"{}"}}'
    lines = [
        b'{"t":1.0,"e":"model.response","role":"agent","call":1,"body":{"choices":[{"message":{"tool_calls":['
        + call + b"," + call + b"]}}]}}",
        b'{"t":2.0,"e":"tool.call","call":1,"tool":"look","arguments":{}}',
        b'{"t":2.0,"e":"tool.call","call":2,"tool":"look","arguments":{}}',
        b'{"t":3.0,"e":"tool.result","call":2,"content":"second"}',
        b'{"t":4.0,"e":"tool.result","call":1,"content":"first"}',
    ]  # fmt: skip
    steps = conversation(TraceReader(lines))
    assert [(s.call, s.text) for s in steps[1:]] == [("m1-0", "first"), ("m1-1", "second")]


def test_files_of_two_names_are_two() -> None:
    assert plain("abc.1") == "abc.1"
    assert len({plain(t) for t in ("a/b", "a-b", "a:b", "", "../..", "x" * 90, "x" * 91)}) == 7
    assert all(set(plain(t)).isdisjoint("/\\:\x00") for t in ("a/b", "../..", "a\x00b"))


def test_the_run_is_left_as_it_was(weather: Path, tmp_path: Path) -> None:
    before = {p: p.read_bytes() for p in weather.rglob("*") if p.is_file()}
    Trajectories().render(weather, tmp_path / "a")
    Spans().render(weather, tmp_path / "b")
    assert {p: p.read_bytes() for p in weather.rglob("*") if p.is_file()} == before
    assert read_stamp(weather).run == "r"


def test_through_the_command_line(weather: Path, tmp_path: Path) -> None:
    """Each form by its name, published or not; a run that was written comes back."""

    def call(*arguments: str | Path) -> Any:
        return CliRunner().invoke(program, [str(a) for a in arguments], env={"EVALCORE_PLUGINS": "interop"})

    for form, count in (("inspect", 2), ("atif", 14), ("otel", 1)):
        called = call("report", weather, "--format", form, "--out", f"{tmp_path / form}/", "--public")
        assert called.exit_code == 0, called.output
        assert len(called.stdout.splitlines()) == count
    rules = tmp_path / "rules.toml"
    rules.write_text('texts = ["Bern"]\n')
    called = call("report", weather, "--format", "parquet", "--out", f"{tmp_path}/t/", "--redact", rules)
    assert called.exit_code == 2 and "parquet cannot leave anything out" in called.stderr
    log = next((tmp_path / "inspect").glob("*native.eval"))
    called = call("import", log, "--out", tmp_path / "runs", "--name", "back")
    assert called.exit_code == 0 and called.stdout.startswith(f"8 trials of {log}, read as inspect")
    card = json.loads(call("report", tmp_path / "runs" / "back", "--json").stdout)
    assert card["cells"][0]["stamp"]["provenance"] == "imported"
