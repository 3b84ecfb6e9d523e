"""Run directories made up for tests and measurements, written by the ledger that writes real ones."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalcore.engine.ledger import Ledger
from evalcore.engine.store import create_run
from evalcore.values.arm import Arm
from evalcore.values.json import JSONObject, dumps
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
from evalcore.values.task import Dataset
from evalcore.values.trial import Attempt, Exit, Grading, Outcome, TraceRef, TrialKey, Verdict, Void
from evalcore.values.usage import Usage

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b[31mred\x07\u202eevil"
)


def agent(handle: str, **axes: Any) -> ArmStamp:
    """An arm that was measured."""
    return ArmStamp(Arm(handle, {"harness": "react", "model": f"openai/{handle}", **axes}), "0.1.0")


def control(name: str) -> ArmStamp:
    """oracle or noop."""
    return ArmStamp(Arm(name, {"harness": name}), "0.1.0", control=True, uses_model=False)


def benchmark(selector: str, tasks: int, **changes: Any) -> BenchmarkStamp:
    """A benchmark of so many tasks."""
    dataset = changes.pop("dataset", Dataset(selector.upper(), "v1", "2026-03-01", "Apache-2.0", "made up"))
    return BenchmarkStamp(selector, dataset, tasks, tasks, "cd" * 32, "exact", {"version": 1}, **changes)


def stamp(
    arms: Sequence[ArmStamp],
    benchmarks: Sequence[BenchmarkStamp],
    repeats: int,
    name: str,
    contrasts: Sequence[tuple[str, str]] = (),
) -> RunStamp:
    """The stamp of a run, with contrasts of two arms by their handles."""
    study: JSONObject = {"contrasts": [{"a": a, "b": b, "metric": "pass@1"} for a, b in contrasts]}
    return RunStamp(
        name, "2026-12-01T10:00:00Z", "sample", "ef" * 32, study, 1, repeats, tuple(arms), tuple(benchmarks), "12" * 32
    )


def write(path: Path, run: RunStamp, pairs: Sequence[tuple[Attempt, Grading | None, Sequence[JSONObject]]]) -> Path:
    """A run's directory with these attempts."""
    create_run(path, run)
    append(path, run, pairs)
    return path


def append(path: Path, run: RunStamp, pairs: Sequence[tuple[Attempt, Grading | None, Sequence[JSONObject]]]) -> None:
    """More attempts, as a run that goes on would write them."""

    async def commit() -> None:
        ledger = Ledger(path, run.grading)
        try:
            for begin in range(0, len(pairs), 500):
                part = pairs[begin : begin + 500]
                await asyncio.gather(*(ledger.executed(a, [dumps(e) for e in events]) for a, _, events in part))
                await asyncio.gather(*(ledger.graded(g) for _, g, _ in part if g is not None))
        finally:
            await ledger.close()

    asyncio.run(commit())


def trial(
    selector: str,
    task: str,
    arm: ArmStamp,
    repeat: int,
    outcome: Outcome | None,
    *,
    said: str = "I will look it up.",
    harm: bool | None = None,
    cost: float | None = 0.01,
    wall_s: float = 2.0,
    limit: str | None = None,
    question: str = "",
    **changes: Any,
) -> tuple[Attempt, Grading | None, list[JSONObject]]:
    """One attempt; an outcome of None is a void one."""
    key = TrialKey(selector, task, arm.arm.digest, repeat)
    id_ = f"{selector}/{task}/{arm.arm.handle}/{repeat}/1"
    attempt = Attempt(
        id=id_,
        key=key,
        task_digest=f"{task:0>64}"[:64],
        number=1,
        exit=None if outcome is None else Exit("limit" if limit else "completed", limit),
        void=Void("provider", "503") if outcome is None else None,
        started="2026-12-01T10:00:00Z",
        wall_s=wall_s,
        usage={"agent": Usage(2, 400, 60, cost_usd=cost)} if arm.uses_model else {},
        tool_calls=1,
        tool_errors=0,
        trace=TraceRef("", 0, 0),
    )
    grading = None if outcome is None else Grading(id_, Verdict(outcome, harm=harm, details={"expected": "4"}), 0.001)
    return attempt, grading, list(_events(attempt, said, question, changes))


def _events(attempt: Attempt, said: str, question: str, changes: Mapping[str, Any]) -> Iterator[JSONObject]:
    key = attempt.key
    messages: list[Any] = [{"role": "user", "content": question or f"What is the answer to {key.task}?"}]
    tool = changes.get("tool", "search")
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    message = {"role": "assistant", "content": said, "tool_calls": [call]}
    yield {"t": 0.0, "e": "trial.start", "id": attempt.id, "task": key.task, "messages": messages}
    yield {"t": 0.1, "e": "model.request", "role": "agent", "call": 1, "add": messages, "rest": {"model": "m"}}
    yield {"t": 0.6, "e": "model.response", "role": "agent", "call": 1, "body": {"choices": [{"message": message}]}}
    yield {"t": 0.7, "e": "tool.call", "call": 1, "tool": tool, "arguments": {"query": key.task}, "bridge": "b"}
    result = changes.get("result", "The answer is 4.")
    yield {
        "t": 0.8,
        "e": "tool.result",
        "call": 1,
        "error": False,
        "content": [{"type": "text", "text": result}],
        "wall_s": 0.1,
    }
    yield {
        "t": 1.9,
        "e": "harness.exit",
        "claim": "completed",
        "answer": changes.get("answer", "4"),
        "exit_code": 0,
        "evidence": {},
    }
    if attempt.exit is not None:
        yield {"t": 2.0, "e": "exit", "kind": attempt.exit.kind, "limit": attempt.exit.limit}


def sample(
    path: Path,
    *,
    arms: int = 2,
    tasks: int = 24,
    repeats: int = 3,
    seed: int = 7,
    controls: bool = True,
    contrasts: Sequence[tuple[str, str]] = (),
) -> Path:
    """A run in which arms differ in rate, cost and time, with a few voids, limits and harms."""
    dice = random.Random(seed)
    measured = [agent(f"model-{chr(97 + i)}") for i in range(arms)]
    bench = benchmark("sums", tasks)
    run = stamp(
        [*measured, *([control("oracle"), control("noop")] if controls else [])], [bench], repeats, path.name, contrasts
    )
    pairs = []
    hardness = [dice.random() for _ in range(tasks)]
    for i, arm in enumerate(measured):
        for t in range(tasks):
            for repeat in range(1, repeats + 1):
                solved = dice.random() < min(0.97, max(0.03, 1.25 - hardness[t] - 0.12 * (arms - i)))
                outcome: Outcome | None = None if dice.random() < 0.01 else "pass" if solved else "fail"
                more: dict[str, Any] = {
                    "harm": dice.random() < 0.03,
                    "cost": 0.004 * 2 ** (arms - i) * (0.7 + 0.6 * dice.random()),
                    "wall_s": dice.lognormvariate(1.0 + 0.2 * i, 0.5),
                    "limit": "tokens" if not solved and dice.random() < 0.2 else None,
                }
                pairs.append(trial("sums", f"sum-{t:03d}", arm, repeat, outcome, **more))
    for arm in run.arms:
        if arm.control:
            won: Outcome = "pass" if arm.arm.harness == "oracle" else "fail"
            pairs += [trial("sums", f"sum-{t:03d}", arm, r, won) for t in range(tasks) for r in range(1, repeats + 1)]
    dice.shuffle(pairs)
    return write(path, run, pairs)


def hostile(path: Path) -> Path:
    """A run in which everything that a stranger can write is an attack."""
    arm = agent("plain", tool_protocol=HOSTILE)
    bench = benchmark("sums", 2)
    run = stamp([arm, agent("other")], [bench], 1, path.name)
    evil = dict.fromkeys(("said", "question", "tool", "result", "answer"), HOSTILE)
    pairs = [
        trial("sums", f"{HOSTILE}{n}", a, 1, "fail" if n else "pass", **evil)  # type: ignore[arg-type]
        for a in run.arms
        for n in range(2)
    ]
    return write(path, run, pairs)
