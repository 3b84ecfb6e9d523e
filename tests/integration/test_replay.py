"""A run replayed: the recorded answers again, no model asked, in every form of the wires and for every role."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import HarnessVersion, Job
from evalcore.engine.plan import Plan, close_plan, make_plan
from evalcore.engine.replay import Replay
from evalcore.engine.run import RunOptions, resume, start
from evalcore.engine.runner import RunEnd
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import ConfigError, PluginError
from evalcore.hookspecs import HarnessInfo, hookimpl
from evalcore.plugins import PluginRef, Registry
from evalcore.report.load import load_report
from evalcore.values.json import JSONObject
from evalcore.values.study import Study
from evalcore.values.trial import Attempt, HarnessExit
from tests.integration import test_dialogues as dialogues
from tests.integration import test_wire_parity as parity

LOCKED = '[[reply]]\nerror = { status = 401, message = "nobody may ask" }\n'
DIALOGUE = {"harness": "react", "model": "scripted/agent.toml", "user_model": "scripted/user.toml"}
JUDGED = {**DIALOGUE, "judge_model": "scripted/yes.toml"}


class Moody:
    """Asks once, about a number of its own."""

    number = 1

    def __init__(self, services: Any = None, info: Any = None) -> None:
        pass

    async def probe(self) -> HarnessVersion:
        return HarnessVersion("1")

    async def run(self, job: Job) -> HarnessExit:
        assert job.model is not None
        for content in ("hello", f"number {self.number}\nof one"):
            await job.model.complete({"messages": [{"role": "user", "content": content}]})
        return HarnessExit("done")


class Hooks:
    """More harnesses."""

    @hookimpl
    def evalcore_harnesses(self) -> list[HarnessInfo]:
        where = f"{__name__}:Moody"
        return [
            HarnessInfo("moody", "never the same", where),
            HarnessInfo("hopeless", "cannot be replayed", where, unreplayable="it draws lots"),
            HarnessInfo("bold", "claims too much", where, varies=("date", "everything")),
        ]


def registry() -> Registry:
    found = dialogues.registry()
    found.add(PluginRef("moody", "moody", "1", __name__), Hooks())
    assert found.failures == []
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"agent": dialogues.AGENT, "user": dialogues.USER, "yes": dialogues.YES}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def locked(folder: Path) -> None:
    """Whoever asks a model from now on is refused for good."""
    for name in ("agent", "user", "yes"):
        (folder / f"{name}.toml").write_text(LOCKED)


async def carry_out(
    folder: Path,
    name: str,
    arms: Mapping[str, Mapping[str, Any]],
    *,
    benchmark: str = "toy-users",
    replay: Replay | None = None,
    found: Registry | None = None,
    **changes: Any,
) -> tuple[Plan, RunEnd]:
    found = found or registry()
    services = LocalServices(found, folder)
    try:
        plan = await make_plan(Study("replays", (benchmark,), arms, **changes), found, services, name, replay=replay)
        end = await start(plan, folder / name, found, services, RunOptions(concurrency=4))
        await close_plan(plan)
    finally:
        await services.close()
    return plan, end


def run(*arguments: Any, **options: Any) -> tuple[Plan, RunEnd]:
    return asyncio.run(carry_out(*arguments, **options))


def attempts(folder: Path, name: str) -> list[Attempt]:
    return sorted(read_attempts(folder / name), key=lambda a: a.id)


def verdicts(folder: Path, name: str) -> list[str]:
    """Outcomes, in the order of trials."""
    path = folder / name
    told = {g.attempt: g.verdict.outcome for g in read_gradings(path, read_stamp(path).grading)}
    return [told[a.id] for a in attempts(folder, name) if a.id in told]


def events(folder: Path, name: str, attempt: Attempt, kind: str | None = None) -> list[JSONObject]:
    store = TraceStore(folder / name)
    try:
        return list(store.of(attempt).events(kind))
    finally:
        store.close()


def test_a_dialogue_is_replayed_with_its_user_and_its_judge_and_no_model_is_asked(folder: Path) -> None:
    _, end = run(folder, "then", {"s": JUDGED}, repeats=2)
    assert end == RunEnd("done")
    locked(folder)
    plan, end = run(folder, "now", {"s": JUDGED}, repeats=2, replay=Replay(folder / "then"))

    assert end == RunEnd("done") and plan.notes == ()
    then, now = attempts(folder, "then"), attempts(folder, "now")
    assert [a.key.task for a in now] == [a.key.task for a in then] and len(now) == 4
    assert [(a.exit, a.tool_calls, a.served) for a in now] == [(a.exit, a.tool_calls, a.served) for a in then]
    assert [a.usage for a in now] == [a.usage for a in then]
    assert verdicts(folder, "now") == verdicts(folder, "then") and "pass" in verdicts(folder, "now")
    assert {a.provenance for a in now} == {"replayed"} and {a.provenance for a in then} == {"live"}
    told = events(folder, "now", now[0], "model.replayed")
    assert {(e["role"], e["then"]) for e in told} >= {("agent", 1), ("user", 1)}
    assert {e["source"] for e in told} == {f"attempt {then[0].id} of run then"}


def test_a_replay_says_so_wherever_its_numbers_are_shown(folder: Path) -> None:
    run(folder, "then", {"s": JUDGED})
    run(folder, "now", {"s": JUDGED}, replay=Replay(folder / "then"))
    (cell,) = load_report(folder / "now").cells
    assert cell.provenance == "replayed" and "provenance replayed: not from live trials" in cell.notes
    stamp = read_stamp(folder / "now")
    assert stamp.replay == {"run": "then", "path": str((folder / "then").resolve()), "record_missing": False}


def test_a_replay_can_be_replayed(folder: Path) -> None:
    run(folder, "then", {"s": JUDGED})
    run(folder, "now", {"s": JUDGED}, replay=Replay(folder / "then"))
    locked(folder)
    _, end = run(folder, "again", {"s": JUDGED}, replay=Replay(folder / "now"))
    assert end == RunEnd("done")
    assert verdicts(folder, "again") == verdicts(folder, "then")


def test_replayed_calls_cost_nothing_and_their_cost_then_is_told(folder: Path) -> None:
    dear = dialogues.AGENT.replace("output = 1 }", "output = 1, cost_usd = 1.0 }")
    (folder / "agent.toml").write_text(dear)
    run(folder, "then", {"s": JUDGED})
    locked(folder)
    money = {"budget_usd": 0.5, "limits": dialogues.Limits(tokens=10_000)}
    _, end = run(folder, "now", {"s": JUDGED}, replay=Replay(folder / "then"), **money)
    assert end == RunEnd("done")  # the recorded ones cost four dollars each
    assert {a.usage["agent"].cost_usd for a in attempts(folder, "now")} == {4.0}


def test_every_script_of_both_wires_is_replayed_exactly(tmp_path: Path) -> None:
    asyncio.run(parity.carry_out(tmp_path))
    (tmp_path / "play.jsonl").write_text('{"error": {"status": 401}}')
    arms = {name: {"harness": name, "model": "scripted/play.jsonl"} for name in ("react", "http-react")}
    how = {"benchmark": "scripts", "found": parity.registry(), "replay": Replay(tmp_path / "r")}
    _, end = run(tmp_path, "again", arms, **how)

    assert end == RunEnd("done")
    harness = {a.arm.digest: a.arm.harness for a in read_stamp(tmp_path / "again").arms}
    then = {(a.key.task, a.exit and a.exit.kind, a.tool_calls, str(a.usage)) for a in attempts(tmp_path, "r")}
    now = {(a.key.task, a.exit and a.exit.kind, a.tool_calls, str(a.usage)) for a in attempts(tmp_path, "again")}
    assert now == then and len(attempts(tmp_path, "again")) == 2 * parity.SCRIPTS
    assert {harness[a.key.arm] for a in attempts(tmp_path, "again")} == {"react", "http-react"}


# ── what is not on the tape ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def moody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorded run of a harness that will ask for something else."""
    (folder / "agent.toml").write_text('[[reply]]\ntext = "fine"\n')
    run(folder, "then", {"m": {"harness": "moody", "model": "scripted/agent.toml"}}, benchmark="toy-weather:2")
    monkeypatch.setattr(Moody, "number", 2)
    return folder


MOODY = {"m": {"harness": "moody", "model": "scripted/agent.toml"}}


def test_a_divergence_voids_the_trial_once_and_says_where_and_how(moody: Path) -> None:
    locked(moody)
    _, end = run(moody, "now", MOODY, benchmark="toy-weather:2", replay=Replay(moody / "then"))

    assert end == RunEnd("done", voids_left=2)
    found = attempts(moody, "now")
    assert [(a.number, a.void and a.void.kind) for a in found] == [(1, "diverged")] * 2
    assert found[0].void is not None
    assert "call 2 of the role agent is not on the tape (attempt toy-weather:2/t0/" in found[0].void.message
    assert found[0].void.message.endswith("of run then): message 1 differs")
    (told,) = events(moody, "now", found[0], "model.diverged")
    assert told["at"] == 0 and str(told["difference"]).splitlines()[-3:] == ["-number 1", "+number 2", " of one"]


def test_what_is_missing_can_be_recorded_and_is_no_live_trial_all_the_same(moody: Path) -> None:
    _, end = run(moody, "now", MOODY, benchmark="toy-weather:2", replay=Replay(moody / "then", record_missing=True))

    assert end == RunEnd("done")
    found = attempts(moody, "now")
    assert {a.provenance for a in found} == {"replayed"} and all(a.void is None for a in found)
    kinds = [str(e["e"]) for e in events(moody, "now", found[0])]
    assert kinds.count("model.replayed") == 1 and kinds.count("model.diverged") == 1
    assert kinds.count("model.response") == 2


def test_trials_without_a_recording_are_told_before_anything_runs(folder: Path) -> None:
    run(folder, "then", {"s": JUDGED}, repeats=1)
    plan, end = run(folder, "now", {"s": JUDGED}, repeats=3, replay=Replay(folder / "then"))
    assert plan.notes == ("4 of 6 trials have no recording: they will be void: `--record-missing` asks",)
    assert end == RunEnd("done", voids_left=4)
    with pytest.raises(ConfigError, match="run then holds no recording of any of these trials"):
        run(folder, "other", {"s": {**JUDGED, "max_turns": 7}}, replay=Replay(folder / "then"))


def test_a_harness_that_cannot_be_replayed_is_refused(folder: Path) -> None:
    for name, error, why in (
        ("hopeless", ConfigError, "harness hopeless cannot be replayed: it draws lots"),
        ("bold", PluginError, "says that everything varies; there are date, uuid"),
    ):
        arms = {"s": {"harness": name, "model": "scripted/agent.toml"}}
        run(folder, f"then-{name}", arms, benchmark="toy-weather:1")
        with pytest.raises(error, match=why):
            run(folder, f"now-{name}", arms, benchmark="toy-weather:1", replay=Replay(folder / f"then-{name}"))


def test_a_replay_that_was_stopped_goes_on_as_a_replay(folder: Path) -> None:
    run(folder, "then", {"s": JUDGED}, repeats=2)
    locked(folder)
    run(folder, "now", {"s": JUDGED}, repeats=2, replay=Replay(folder / "then"))
    ledger = folder / "now" / "attempts.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:1]))

    assert asyncio.run(resume(folder / "now", registry(), RunOptions()))[1] == RunEnd("done")
    found = attempts(folder, "now")
    assert len(found) == 4 and {a.provenance for a in found} == {"replayed"}
    assert all(a.void is None for a in found)


def test_a_run_that_is_gone_is_told(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no run at"):
        run(folder, "now", {"s": JUDGED}, replay=Replay(folder / "nowhere"))


# ── on the command line ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dear_model_is_replayed_unasked_and_without_a_key(cli: Any, tmp_path: Path) -> None:
    dear = ("run", "toy-echo", "--model", "dear/x", "--max-tokens", "1000")
    assert cli(*dear, "--yes", "--name", "then").exit_code == 0
    called = cli(*dear, "--replay", "then", "--name", "now")
    assert called.exit_code == 0, called.stderr
    assert "money" not in called.stderr
    assert "replayed" in called.stdout
    told = cli("trace", "now", next(iter(read_attempts(tmp_path / "runs" / "now"))).key.task)
    assert "agent: replayed" in told.stdout


def test_to_record_what_is_missing_is_to_ask_a_model(cli: Any) -> None:
    dear = ("run", "toy-echo", "--model", "dear/x", "--max-tokens", "1000")
    cli(*dear, "--yes", "--name", "then")
    called = cli(*dear, "--replay", "then", "--record-missing", "--name", "now")
    assert called.exit_code == 2 and "may cost money" in called.stderr
    alone = cli(*dear, "--record-missing")
    assert alone.exit_code == 2 and "--record-missing goes with --replay RUN" in alone.stderr
