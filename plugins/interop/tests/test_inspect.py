"""Inspect logs: ours are such that they come back as they were, and what is read of others is what they say."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from evalcore.engine.importing import write_imported
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError
from evalcore.report.load import load_report
from evalcore.values.redaction import RedactionRules
from evalcore.values.trial import Attempt, Verdict
from evalcore_interop.inspect_export import InspectLogs
from evalcore_interop.inspect_import import InspectLog

HEADER: Final[dict[str, Any]] = {
    "version": 2,
    "status": "success",
    "eval": {
        "task": "sums",
        "run_id": "abc",
        "created": "2026-05-01T10:00:00+00:00",
        "model": "openai/gpt",
        "dataset": {"name": "numbers"},
        "scorers": [{"name": "match"}],
        "packages": {"inspect_ai": "0.3.285"},
    },
    "plan": {"steps": [{"solver": "generate"}]},
}


def sample(identifier: str | int = "a", epoch: int = 1, value: Any = "C", **more: Any) -> dict[str, Any]:
    """A sample as Inspect writes one."""
    call = {"id": "c1", "function": "add", "arguments": {"x": 1}}
    return {
        "id": identifier,
        "epoch": epoch,
        "input": "1+1?",
        "target": "2",
        "messages": [
            {"role": "user", "content": "1+1?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "2", "tool_call_id": "c1", "function": "add"},
            {"role": "assistant", "content": "2"},
        ],
        "output": {"completion": "2"},
        "scores": {"match": {"value": value}} if value is not None else {},
        "model_usage": {"openai/gpt": {"input_tokens": 10, "output_tokens": 5, "input_tokens_cache_read": 20}},
        "total_time": 1.5,
        "started_at": "2026-05-01T10:00:01+00:00",
        **more,
    }


def archive(path: Path, *samples: dict[str, Any], header: dict[str, Any] | None = None) -> Path:
    """A `.eval` file as Python can write it."""
    with zipfile.ZipFile(path, "w") as file:
        for one in samples:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        file.writestr("header.json", json.dumps(header or HEADER))
    return path


def imported(log: Path, out: Path) -> tuple[list[Attempt], dict[str, Verdict]]:
    """What a log is as a run: its attempts and verdicts."""
    asyncio.run(write_imported(InspectLog().read(log), out))
    return list(read_attempts(out)), {g.attempt: g.verdict for g in read_gradings(out, read_stamp(out).grading)}


def facts(attempt: Attempt, verdicts: dict[str, Verdict], judges: dict[str, Any]) -> tuple[Any, ...]:
    """What of an attempt has to survive. What grading it used is, afterwards, among what the attempt used."""
    verdict = verdicts.get(attempt.id)
    return (
        attempt.key.task,
        attempt.key.repeat,
        None if attempt.exit is None else (attempt.exit.kind, attempt.exit.limit),
        attempt.void is None,
        None if verdict is None else (verdict.outcome, verdict.score, verdict.harm),
        {**attempt.usage, **judges.get(attempt.id, {})},
        attempt.tool_calls,
        attempt.wall_s,
    )


@pytest.mark.parametrize("which", ["weather", "dialogue"])
def test_a_run_comes_back_as_it_was(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run: Path = request.getfixturevalue(which)
    stamp = read_stamp(run)
    verdicts = {g.attempt: g.verdict for g in read_gradings(run, stamp.grading)}
    logs = InspectLogs().render(run, tmp_path / "logs")
    assert len(logs) == len(stamp.arms)
    back = []
    for number, log in enumerate(logs):
        attempts, theirs = imported(log, tmp_path / str(number))
        assert {a.provenance for a in attempts} == {"imported"}
        back += [facts(a, theirs, {}) for a in attempts]
    judges = {g.attempt: g.usage for g in read_gradings(run, stamp.grading)}
    assert sorted(back, key=repr) == sorted((facts(a, verdicts, judges) for a in read_attempts(run)), key=repr)
    assert {f[4] for f in back} >= {("pass", 1.0, None)}


def test_what_comes_back_is_reported_the_same(weather: Path, tmp_path: Path) -> None:
    logs = InspectLogs().render(weather, tmp_path / "logs")
    values = []
    for number, log in enumerate(logs):
        imported(log, tmp_path / str(number))
        values += [c.metrics["pass@1"].value for c in load_report(tmp_path / str(number)).cells]
    assert values == [c.metrics["pass@1"].value for c in load_report(weather).cells]


def test_a_log_says_what_ran(weather: Path, tmp_path: Path) -> None:
    logs = {p.name.rpartition("--")[2]: p for p in InspectLogs().render(weather, tmp_path / "logs")}
    with zipfile.ZipFile(logs["native.eval"]) as file:
        header = json.loads(file.read("header.json"))
        samples = [json.loads(file.read(n)) for n in file.namelist() if n.startswith("samples/")]
    assert (header["eval"]["model"], header["eval"]["solver"]) == ("scripted/agent.toml", "react")
    assert header["results"]["scores"][0]["metrics"]["accuracy"]["value"] == pytest.approx(3 / 7)
    first = next(s for s in samples if s["epoch"] == 1 and "Bern" in json.dumps(s["input"]))
    assert [m["role"] for m in first["messages"]] == ["system", "user", "assistant", "tool", "assistant"]
    asked, answered = first["messages"][2]["tool_calls"][0], first["messages"][3]
    assert (asked["function"], asked["arguments"]) == ("get_weather", {"city": "Bern"})
    assert (answered["tool_call_id"], answered["function"]) == (asked["id"], "get_weather")
    assert first["model_usage"]["scripted/agent.toml"]["total_tokens"] == 282
    assert first["model_usage"]["scripted/agent.toml"]["total_cost"] == pytest.approx(0.003)
    limit = next(s for s in samples if s["epoch"] == 3)
    assert limit["limit"]["type"] == "token" and limit["limit"]["reason"] == "more than 100 tokens"
    void = next(s for s in samples if s["epoch"] == 4)
    assert void["error"]["message"] == "provider: the provider was not there" and void["scores"] == {}


def test_what_must_not_be_shown_is_not_in_it(weather: Path, tmp_path: Path) -> None:
    rules = RedactionRules(withhold=("questions",), texts=("get_weather",))
    logs = InspectLogs().render(weather, tmp_path / "logs", public=True, rules=rules)
    for log in logs:
        with zipfile.ZipFile(log) as file:
            text = b"".join(map(file.read, file.namelist()))
        assert b"degrees" not in text and b"get_weather" not in text and b"was not there" not in text
        assert b'"value":"C"' in text


VALUES: Final[list[tuple[Any, str, float | None]]] = [
    ("C", "pass", 1.0),
    ("I", "fail", 0.0),
    ("P", "fail", 0.5),
    ("N", "fail", 0.0),
    (1, "pass", 1.0),
    (0.75, "fail", 0.75),
    (7.0, "pass", None),
    (True, "pass", 1.0),
    ("maybe", "ungraded", None),
    ([1, 2], "ungraded", None),
    (None, "ungraded", None),
]


@pytest.mark.parametrize("value, outcome, score", VALUES)
def test_scores(value: Any, outcome: str, score: float | None, tmp_path: Path) -> None:
    attempts, verdicts = imported(archive(tmp_path / "x.eval", sample(value=value)), tmp_path / "r")
    verdict = verdicts[attempts[0].id]
    assert (verdict.outcome, verdict.score) == (outcome, score)


def test_a_sample_is_a_trial(tmp_path: Path) -> None:
    limit = {"type": "token", "limit": 100, "reason": "too many tokens"}
    log = archive(
        tmp_path / "x.eval",
        sample("a/b", 1),
        sample("a/b", 2, limit=limit),
        sample(7, 1, error={"message": "boom"}),
    )
    attempts, verdicts = imported(log, tmp_path / "r")
    assert [(a.key.task, a.key.repeat) for a in attempts] == [("a/b", 1), ("a/b", 2), ("7", 1)]
    assert [a.exit and (a.exit.kind, a.exit.limit) for a in attempts] == [
        ("completed", None),
        ("limit", "tokens"),
        None,
    ]
    assert attempts[2].void is not None and attempts[2].void.message == "an error of the sample: boom"
    assert attempts[2].id not in verdicts
    usage = attempts[0].usage["agent"]
    assert (usage.calls, usage.input, usage.output, usage.cache_read, usage.cost_usd) == (2, 30, 5, 20, None)
    assert (attempts[0].tool_calls, attempts[0].tool_errors) == (1, 0)
    stamp = read_stamp(tmp_path / "r")
    assert stamp.repeats == 2
    assert stamp.arms[0].arm.axes == {"harness": "generate", "model": "openai/gpt"}
    assert stamp.benchmarks[0].grader == "match"


def test_a_users_tokens_are_not_the_agents(tmp_path: Path) -> None:
    models = {
        "openai/gpt": {"input_tokens": 10, "output_tokens": 5, "total_cost": 0.5},
        "openai/user": {"input_tokens": 7, "output_tokens": 2, "total_cost": 0.25},
    }
    one = sample(model_usage=models, role_usage={"user": models["openai/user"]})
    attempts, _ = imported(archive(tmp_path / "x.eval", one), tmp_path / "r")
    assert {role: (u.input, u.output, u.cost_usd) for role, u in attempts[0].usage.items()} == {
        "user": (7, 2, 0.25),
        "agent": (10, 5, 0.25 + 0.25),
    }


def test_usage_that_is_not_told_is_not_none(tmp_path: Path) -> None:
    attempts, _ = imported(archive(tmp_path / "x.eval", sample(model_usage={})), tmp_path / "r")
    usage = attempts[0].usage["agent"]
    assert (usage.unreported, usage.cost_usd) == (2, None)


def test_a_log_in_the_json_form(tmp_path: Path) -> None:
    log = tmp_path / "x.json"
    log.write_text(json.dumps({**HEADER, "samples": [sample("a"), sample("b", value="I")]}))
    assert InspectLog().knows(log)
    attempts, verdicts = imported(log, tmp_path / "r")
    assert [verdicts[a.id].outcome for a in attempts] == ["pass", "fail"]


def test_members_that_only_newer_pythons_read(tmp_path: Path) -> None:
    """Inspect compresses with zstandard; written here by hand, as Python's own zipfile cannot."""
    log = tmp_path / "x.eval"
    compress = zstandard.ZstdCompressor().compress
    with zipfile.ZipFile(log, "w") as file:
        for name, value in (("samples/a_epoch_1.json", sample()), ("header.json", HEADER)):
            plain = json.dumps(value).encode()
            packed = compress(plain)
            file.writestr(name, packed)
            info = file.getinfo(name)
            info.compress_type, info.file_size = 93, len(plain)
    attempts, verdicts = imported(log, tmp_path / "r")
    assert verdicts[attempts[0].id].outcome == "pass"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda p: archive(p, header={**HEADER, "version": 1}), "log schema 1, and 2 is read"),
        (archive, "the log holds no sample"),
        (lambda p: archive(p, sample(), header={**HEADER, "eval": {"task": "t"}}), "eval.model: expected a text"),
        (lambda p: archive(p, {**sample(), "epoch": "1"}), "a_epoch_1.json: $.epoch: expected an integer, got str"),
        (lambda p: archive(p, {**sample(), "id": None, "epoch": 1}), ".id: expected a text or a number"),
        (lambda p: p.write_bytes(archive(p, sample()).read_bytes()[:200]), "the archive is broken: File is not a zip"),
        (lambda p: archive(p, sample(total_time=-1)), "$.total_time: expected 0 or more, got -1"),
        (
            lambda p: archive(p, sample(model_usage={"m": {"input_tokens": -5}})),
            "$.model_usage.m.input_tokens: expected 0 or more, got -5",
        ),
        (lambda p: p.write_bytes(archive(p, sample()).read_bytes().replace(b"1+1?", b"9+9?")), "the archive is broken"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_line(make: Any, message: str, tmp_path: Path) -> None:
    log = tmp_path / "x.eval"
    make(log)
    with pytest.raises(ConfigError) as told:
        imported(log, tmp_path / "r")
    assert message in str(told.value) and "\n" not in str(told.value)
    assert not (tmp_path / "r").exists()


def encrypted(log: bytes) -> bytes:
    """The archive with every member marked as encrypted, in both places where that is said."""
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := log.find(mark, at + 1)) >= 0:
            log = log[: at + flags] + b"\x01" + log[at + flags + 1 :]
    return log


@pytest.mark.parametrize("way", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_within_a_member_is_told_in_a_line(way: int, tmp_path: Path) -> None:
    log = tmp_path / "x.eval"
    with zipfile.ZipFile(log, "w", way) as file:
        file.writestr("header.json", json.dumps(HEADER))
        file.writestr("samples/a_epoch_1.json", json.dumps(sample()) + " " * 4096)
    whole = log.read_bytes()
    start = whole.find(b"header.json") + len("header.json")
    skipped = 9 if way == zipfile.ZIP_LZMA else 0  # the settings of the coder: not every bit of them matters
    for at in range(start + skipped, start + 24):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(ConfigError, match="the archive is broken"):
            InspectLog().read(log)


def test_an_encrypted_log_is_told_in_a_line(tmp_path: Path) -> None:
    log = tmp_path / "x.eval"
    log.write_bytes(encrypted(archive(log, sample()).read_bytes()))
    with pytest.raises(ConfigError, match=r"the archive is broken.*encrypted"):
        InspectLog().read(log)


def test_an_unfinished_log_and_one_in_chunks(tmp_path: Path) -> None:
    for member, message in (
        ("samples/a_epoch_1.json", "was not finished"),
        ("samples/a_epoch_1/sample.json", "chunks"),
    ):
        log = tmp_path / "x.eval"
        with zipfile.ZipFile(log, "w") as file:
            file.writestr(member, json.dumps(sample()))
            if message == "chunks":
                file.writestr("header.json", json.dumps(HEADER))
        assert InspectLog().knows(log)
        with pytest.raises(ConfigError, match=message):
            InspectLog().read(log)
