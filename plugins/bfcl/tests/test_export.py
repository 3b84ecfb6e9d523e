"""A run as the leaderboard's result files: upstream's own evaluation of them says what our scorecard says."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from evalcore.contracts import ToolkitHandle
from evalcore.engine.store import read_attempts, read_stamp
from evalcore.errors import ConfigError
from evalcore.hookspecs import RendererInfo
from evalcore.report.load import load_report
from evalcore.toolkits.environment import Environment, worker_file
from evalcore_bfcl.export import BfclResults
from evalcore_bfcl.plugin import (
    AGENTIC,
    CATEGORIES,
    DIALOGUES,
    LIVE,
    NON_LIVE,
    OVERALL,
    SEVERAL_TURNS,
    benchmark_name,
)
from plugins.bfcl.tests.rig import (
    CONTROLS,
    HERE,
    REACT,
    gold_of,
    gold_turns_of,
    registry,
    run,
    study,
    with_toolkit,
    write_playbook,
)

ReadBack: TypeAlias = tuple[Path, dict[tuple[str, str], float]]

READ_BACK: Final = Path(__file__).with_name("read_back.py")
ODD: Final = ("simple_python", "parallel", "irrelevance", "live_relevance")
FIRST: Final = 10

SURROGATE: Final = '{"x": "\\ud800"}'


def evaluate(toolkit: Environment, out: Path, *, whole: bool) -> dict[tuple[str, str], float]:
    """Upstream's accuracies by model and category."""
    arguments = [READ_BACK, worker_file(toolkit.spec), out, "whole" if whole else "partial"]
    argv = [str(toolkit.python), "-X", "utf8", *map(str, arguments)]
    done = subprocess.run(argv, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {}
    for file in (out / "score").rglob("*_score.json"):
        header = json.loads(file.read_text(encoding="utf-8").split("\n", 1)[0])
        model = file.relative_to(out / "score").parts[0]
        found[model, file.name.removeprefix("BFCL_v4_").removesuffix("_score.json")] = header["accuracy"]
    return found


def scorecard(path: Path) -> dict[tuple[str, str], float]:
    """Ours, by handle and category."""
    categories = {benchmark_name(category): category for category in HERE}
    return {
        (cell.arm.arm.handle, categories[cell.benchmark.selector]): value
        for cell in load_report(path).cells
        if (value := cell.metrics["pass@1"].value) is not None
    }


async def right_replies(toolkit: ToolkitHandle) -> list[dict[str, Any]]:
    """To the first tasks of two categories."""
    tasks = [
        (category, f"{category}_{number}") for category in ("simple_python", "parallel") for number in range(FIRST)
    ]
    return [{"match": {"task": t, "call": 1}, "tool_calls": await gold_of(toolkit, c, t)} for c, t in tasks]


@pytest.fixture(scope="module")
def odd_run(toolkit: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both controls, and an agent that does all that upstream's runner trips over; one of its verdicts is missing."""
    folder = tmp_path_factory.mktemp("odd")

    def to(task: str, **reply: Any) -> dict[str, Any]:
        return {"match": {"task": task, "call": 1}} | reply

    def calls(arguments: str) -> list[dict[str, str]]:
        return [{"name": "f", "arguments": arguments}]

    replies = [
        to("simple_python_1", tool_calls=calls(SURROGATE)),
        to("simple_python_2", tool_calls=calls("{")),
        to("simple_python_3", tool_calls=calls("[" * 100_000)),
        to("simple_python_4", text="\ud83d no"),
        to("parallel_5", tool_calls=calls(SURROGATE)),
        to("irrelevance_0", tool_calls=calls("{}")),
        to("irrelevance_1", tool_calls=calls(SURROGATE)),
        to("irrelevance_2", tool_calls=calls("{")),
        to("irrelevance_3", error={"status": 400}),
        to("irrelevance_4", refusal="No."),
        to("irrelevance_5"),
        to("live_relevance_0-0-0", tool_calls=calls("{}")),
        to("live_relevance_1-1-0", tool_calls=calls(SURROGATE)),
        to("live_relevance_2-2-0", tool_calls=calls("{")),
    ]
    used = {"usage": {"input": 120, "output": 15}}
    write_playbook(folder, [*replies, *(reply | used for reply in with_toolkit(right_replies)), {"text": "Done."}])
    path = run(study(tuple(map(benchmark_name, ODD)), {**CONTROLS, **REACT}, limit=FIRST), folder)
    ledger = path / "gradings" / f"{read_stamp(path).grading}.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    lost = next(a.id for a in read_attempts(path) if a.key.task == "parallel_7" and a.usage)
    ledger.write_bytes(b"".join(line for line in lines if lost.encode() not in line))
    return path


def lines_of(out: Path, model: str, place: str) -> dict[str, Any]:
    text = (out / "result" / model / f"{place}_result.json").read_text(encoding="utf-8")
    return {line["id"]: line for line in map(json.loads, text.splitlines())}


def test_upstream_reads_them_back_and_agrees(toolkit: Environment, odd_run: Path, tmp_path: Path) -> None:
    files = BfclResults().render(odd_run, tmp_path)

    assert len(files) == 1 + 3 + 4 + 4  # the oracle has no live_relevance to play
    ours = scorecard(odd_run)
    assert len(ours) == 11
    assert evaluate(toolkit, tmp_path, whole=False) == pytest.approx(ours)
    assert 0 < ours["react", "irrelevance"] < 1 and 0 < ours["react", "live_relevance"] < 1


def test_a_result_is_the_first_response_as_upstream_would_have_kept_it(odd_run: Path, tmp_path: Path) -> None:
    BfclResults().render(odd_run, tmp_path)

    simple = lines_of(tmp_path, "react", "non_live/BFCL_v4_simple_python")
    assert list(simple) == [f"simple_python_{n}" for n in range(FIRST)]
    (call,) = simple["simple_python_0"]["result"]
    assert json.loads(call["calculate_triangle_area"]) == {"base": 10, "height": 5}
    assert simple["simple_python_0"] | {"result": 0} == {
        "id": "simple_python_0",
        "result": 0,
        "input_token_count": 120,
        "output_token_count": 15,
    }
    assert simple["simple_python_2"]["result"] == [{"f": "{"}]
    assert lines_of(tmp_path, "react", "non_live/BFCL_v4_irrelevance")["irrelevance_4"]["result"] == ["No."]
    assert lines_of(tmp_path, "noop", "live/BFCL_v4_live_relevance")["live_relevance_0-0-0"]["result"] == []


def test_what_upstream_would_count_otherwise_fails_there_and_says_why(odd_run: Path, tmp_path: Path) -> None:
    BfclResults().render(odd_run, tmp_path)

    none_fits = lines_of(tmp_path, "react", "non_live/BFCL_v4_irrelevance")
    assert none_fits["irrelevance_3"] == {
        "id": "irrelevance_3",
        "result": [{"evalcore": "{}"}],
        "evalcore": ["called_nothing_but_crashed"],
    }
    about = json.loads((tmp_path / "evalcore.json").read_bytes())
    assert about["models"]["react"]["categories"] == {
        "simple_python": {"written": 10, "left_out": 0, "replaced": ["simple_python_1", "simple_python_4"]},
        "parallel": {"written": 9, "left_out": 1, "replaced": ["parallel_5"]},
        "irrelevance": {"written": 10, "left_out": 0, "replaced": ["irrelevance_1", "irrelevance_3"]},
        "live_relevance": {"written": 10, "left_out": 0, "replaced": []},
    }
    assert (about["run"], about["repeat"]) == ("r", 1)


SEVERAL: Final = "multi_turn_miss_func"
ASKED: Final = "memory_rec_sum"


@pytest.fixture(scope="module")
def turns_run(toolkit: Environment, agentic: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several turns and a memory: both controls, and an agent named by a digit, right in every other task."""
    folder = tmp_path_factory.mktemp("turns")
    tasks = {SEVERAL: [f"{SEVERAL}_{n}" for n in range(4)], ASKED: [f"{ASKED}_{n}-customer-{n}" for n in range(3)]}

    async def right(of: ToolkitHandle) -> list[dict[str, Any]]:
        replies: list[dict[str, Any]] = []
        for task in tasks[SEVERAL][::2]:
            said: list[dict[str, Any]] = []
            for turn in await gold_turns_of(of, SEVERAL, task):
                said += [*({"tool_calls": [call]} for call in turn), {"text": "Done: open('/etc/passwd')"}]
            replies += [{"match": {"task": task, "call": number}} | reply for number, reply in enumerate(said, 1)]
        return replies

    odd = [
        {"name": "open", "arguments": {"file": "/etc/passwd"}},
        {"name": "ls", "arguments": '{"a=open(1),b": 1}'},
        {"name": "ls", "arguments": "{"},
    ]
    used = {"usage": {"input": 30, "output": 4}}
    write_playbook(
        folder,
        [
            *(reply | used for reply in with_toolkit(right)),
            {"match": {"task": tasks[SEVERAL][1], "call": 1}, "tool_calls": odd},
            {"match": {"task": tasks[SEVERAL][3], "call": 2}, "error": {"status": 400}},
            {"match": {"task": tasks[ASKED][0], "call": 1}, "text": "{'answer': 'Michael', 'context': 'he said so'}"},
            {"text": "I do not know."},
        ],
    )
    named = {benchmark_name(category): tuple(ids) for category, ids in tasks.items()}
    arms = {**CONTROLS, "4o": REACT["react"]}
    return run(study(tuple(named), arms, tasks=named), folder)


def test_upstream_reads_several_turns_back_and_agrees(toolkit: Environment, turns_run: Path, tmp_path: Path) -> None:
    files = BfclResults().render(turns_run, tmp_path)

    assert {file.relative_to(tmp_path / "result").parts[1:-1] for file in files if file.name != "evalcore.json"} == {
        ("multi_turn",),
        ("agentic", "memory", "rec_sum"),
    }
    ours = {(model if model != "4o" else "arm-4o", c): value for (model, c), value in scorecard(turns_run).items()}
    assert evaluate(toolkit, tmp_path, whole=False) == pytest.approx(ours)
    assert ours["arm-4o", SEVERAL] == 0.5 and ours["arm-4o", ASKED] == pytest.approx(1 / 3)


def test_nothing_is_written_that_upstream_would_evaluate_and_we_would_not(turns_run: Path, tmp_path: Path) -> None:
    BfclResults().render(turns_run, tmp_path)

    lines = lines_of(tmp_path, "arm-4o", f"multi_turn/BFCL_v4_{SEVERAL}")
    first, *_ = lines[f"{SEVERAL}_1"]["result"]
    nothing = {"no_such_tool": "{}"}
    assert first == [[nothing, nothing], "I do not know."]
    assert lines[f"{SEVERAL}_3"]["result"] == "Error during inference: the agent crashed"


def test_several_turns_are_written_as_upstreams_loop_would_have(turns_run: Path, tmp_path: Path) -> None:
    BfclResults().render(turns_run, tmp_path)

    line = lines_of(tmp_path, "arm-4o", f"multi_turn/BFCL_v4_{SEVERAL}")[f"{SEVERAL}_0"]
    assert [[type(step) for step in turn][-1] for turn in line["result"]] == [str] * len(line["result"])
    assert [sum(used) for used in line["input_token_count"]] == [30 * len(turn) for turn in line["result"]]
    asked = lines_of(tmp_path, "arm-4o", f"agentic/memory/rec_sum/BFCL_v4_{ASKED}")
    assert list(asked) == [f"{ASKED}_{n}-customer-{n}" for n in range(3)]  # no session before them
    assert asked[f"{ASKED}_0-customer-0"]["result"] == [["{'answer': 'Michael', 'context': 'he said so'}"]]


def test_it_is_registered_under_its_name() -> None:
    found = registry()
    info = found.get(RendererInfo, "renderer", "bfcl-results")
    assert found.factory(info) is BfclResults


def test_two_runs_do_not_end_in_one_folder(odd_run: Path, tmp_path: Path) -> None:
    first = BfclResults().render(odd_run, tmp_path)
    assert BfclResults().render(odd_run, tmp_path) == first
    about = json.loads((tmp_path / "evalcore.json").read_bytes())
    (tmp_path / "evalcore.json").write_text(json.dumps(about | {"run": "another"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="holds the results of run another, repeat 1"):
        BfclResults().render(odd_run, tmp_path)


def test_a_repeat_that_is_not_there_is_refused(odd_run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no repeat 2"):
        BfclResults().render(odd_run, tmp_path, repeat=2)


@pytest.fixture(scope="module")
def read_back(toolkit: Environment, whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> ReadBack:
    """Everything exported, and upstream's accuracies."""
    out = tmp_path_factory.mktemp("export")
    BfclResults().render(whole_run, out)
    return out, evaluate(toolkit, out, whole=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestEverything:
    def test_every_accuracy_is_the_scorecards(self, whole_run: Path, read_back: ReadBack) -> None:
        _, theirs = read_back
        ours = scorecard(whole_run)
        assert len(ours) == 2 * len(HERE) - 1  # the oracle has no live_relevance to play
        assert theirs == pytest.approx(ours)

    @pytest.mark.parametrize(
        "table, column, weights",
        [
            ("non_live", "Non-Live Overall Acc", NON_LIVE),
            ("live", "Live Overall Acc", LIVE),
            ("multi_turn", "Multi Turn Overall Acc", SEVERAL_TURNS),
            ("agentic", "Agentic Overall Acc", AGENTIC),
            ("overall", "Overall Acc", OVERALL),
        ],
        ids=lambda value: value if isinstance(value, str) and " " not in value else "",
    )
    def test_our_weights_make_upstreams_groups(
        self, whole_run: Path, read_back: ReadBack, table: str, column: str, weights: Mapping[str, float]
    ) -> None:
        """Upstream counts a category that is missing (memory by meaning, here) as 0; our groups are then not whole."""
        out, _ = read_back
        ours = scorecard(whole_run)
        with (out / "score" / f"data_{table}.csv").open(encoding="utf-8", newline="") as file:
            rows = {row["Model"]: row for row in csv.DictReader(file)}
        for model in ("oracle", "noop"):
            value = sum(ours.get((model, c), 0.0) * w for c, w in weights.items()) / sum(weights.values())
            assert rows[model][column] == f"{value:.2%}"


def test_the_weights_of_the_whole_are_upstreams() -> None:
    assert sum(OVERALL.values()) == pytest.approx(1.0)
    assert len(OVERALL) == len(CATEGORIES) + len(DIALOGUES) - 1  # relevance is shown, and not in it
    assert OVERALL["multi_turn_base"] == pytest.approx(0.075) and OVERALL["memory_kv"] == pytest.approx(0.4 / 6)
    assert OVERALL["irrelevance"] == pytest.approx(0.05) and OVERALL["simple_java"] == pytest.approx(0.1 / 12)
