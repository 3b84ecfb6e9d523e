"""Upstream's stateful classes and checkers behind the toolkit: sessions kept apart, and agents' text kept text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from evalcore.contracts import ToolkitHandle, ToolkitSession
from evalcore.errors import ToolkitError
from evalcore.toolkits.environment import Environment
from evalcore_bfcl import stateful
from evalcore_bfcl.plugin import MEMORY, MULTI_TURN
from plugins.bfcl.tests.rig import gold_turns_of, with_toolkit
from tests.oracles import oracle_path

BASE: Final = "multi_turn_base"
FILES_TASK: Final = "multi_turn_base_1"  # has a file system, whose `echo` takes any text
MATHS_TASK: Final = "multi_turn_base_15"
FIRST: Final = 20
LATER: Final = 120.0  # seconds for a request that takes milliseconds, or ten of processor time


class TestWhatMayBeExecuted:
    """Names on offer, identifiers, values that went through JSON: no toolkit is needed to tell."""

    NAMES: Final = ("ls", "echo")

    @pytest.mark.parametrize("arguments", ["{}", '{"a": true}', '{"content": "\\"); __import__(\'os\')"}'])
    def test_a_call_of_what_is_on_offer_is_passed_on_as_it_was_sent(self, arguments: str) -> None:
        assert stateful.sendable("ls", arguments, self.NAMES) == {"ls": arguments}

    @pytest.mark.parametrize(
        "name, arguments, why",
        [
            ("open", "{}", "name 'open' is not defined"),
            ("__import__('os').getcwd", "{}", "is not defined"),
            ("ls()", "{}", "name 'ls()' is not defined"),
            ("", "{}", "name '' is not defined"),
            (None, "{}", "name 'None' is not defined"),
            ("ls", '{"a=1,b": 2}', "'a=1,b' cannot be the name of an argument"),
            ("ls", '{"a)+__import__(": 2}', "cannot be the name of an argument"),
            ("ls", '{"lambda": 2}', "'lambda' cannot be the name of an argument"),
            ("ls", '{"": 2}', "'' cannot be the name of an argument"),
            ("ls", "[1]", "the arguments are no object"),
            ("ls", "null", "the arguments are no object"),
            ("ls", "{", "the arguments cannot be read"),
            ("ls", '{"a": ' + "7" * 5000 + "}", "the arguments cannot be read"),
            ("ls", '{"a": ' + "[" * 100_000 + "}", "the arguments cannot be read"),
        ],
    )
    def test_everything_else_is_refused_with_a_reason(self, name: Any, arguments: str, why: str) -> None:
        refused = stateful.sendable(name, arguments, self.NAMES)
        assert isinstance(refused, str) and why in refused

    def test_what_nothing_could_read_is_no_call_and_what_may_not_be_executed_is_a_call_of_nothing(self) -> None:
        assert stateful.executable({"name": "ls", "arguments": "{"}, self.NAMES) is None
        assert stateful.executable({"name": "open", "arguments": "{}"}, self.NAMES) == stateful.NOWHERE
        assert stateful.executable({"name": "ls", "arguments": '{"a b": 1}'}, self.NAMES) == stateful.NOWHERE
        assert stateful.executable({"name": "ls", "arguments": "{}"}, self.NAMES) == {"ls": "{}"}

    @pytest.mark.parametrize(
        "text, failed",
        [
            ("Error during execution: no", True),
            ('{"error": "no such file"}', True),
            ('{"error": "no", "status": "odd"}', False),
            ('{"error": ', False),
            ('{"result": 3}', False),
            ("None", False),
        ],
    )
    def test_a_result_that_says_it_failed_is_an_error(self, text: str, failed: bool) -> None:
        assert stateful.is_error(text) is failed

    @pytest.mark.parametrize(
        "text, name, arguments",
        [
            ("sort('a.txt')", "sort", {"file_name": "a.txt"}),
            (" cp(source='a', destination='b') ", "cp", {"source": "a", "destination": "b"}),
            ("cp('a', destination=['b', -1.5])", "cp", {"source": "a", "destination": ["b", -1.5]}),
            ("ls()", "ls", {}),
        ],
    )
    def test_the_ground_truths_calls_get_the_names_of_their_parameters(
        self, text: str, name: str, arguments: Mapping[str, Any]
    ) -> None:
        signatures = {"sort": ["file_name"], "cp": ["source", "destination"], "ls": ["a"]}
        assert stateful.call_of(text, signatures) == {"name": name, "arguments": arguments}

    @pytest.mark.parametrize("text", ["1 + 1", "os.getcwd()", "ls", "ls(a=print)"])
    def test_a_ground_truth_that_is_no_plain_call_is_not_evaluated(self, text: str) -> None:
        with pytest.raises((TypeError, ValueError)):
            stateful.call_of(text, {"ls": ["a"]})


async def begin(session: ToolkitSession, task: str, category: str = BASE, **more: Any) -> dict[str, Any]:
    opened: Any = await session.request("open", {"category": category, "id": task, **more}, LATER)
    return dict(opened)


async def make(session: ToolkitSession, name: str, **arguments: Any) -> dict[str, Any]:
    made: Any = await session.request("call", {"name": name, "arguments": json.dumps(arguments)}, LATER)
    return dict(made)


async def gold_turns(toolkit: ToolkitHandle, category: str, task: str) -> list[list[dict[str, Any]]]:
    """The gold of a task, as steps of one call each."""
    turns = await gold_turns_of(toolkit, category, task)
    texts = [[(c["name"], json.dumps(c["arguments"])) for c in turn] for turn in turns]
    return [[{"calls": [{"name": name, "arguments": text}]} for name, text in turn] for turn in texts]


async def verdict(toolkit: ToolkitHandle, category: str, task: str, turns: Any, **more: Any) -> dict[str, Any]:
    params = {"category": category, "id": task, "turns": turns, **more}
    found: Any = await toolkit.request("dialogue_grade", params, LATER)
    return dict(found)


@pytest.mark.usefixtures("toolkit")
class TestSessions:
    def test_two_of_one_task_share_nothing_and_a_third_begins_anew(self) -> None:
        async def work(toolkit: ToolkitHandle) -> list[str]:
            async with toolkit.session() as one, toolkit.session() as other:
                await begin(one, FILES_TASK)
                await begin(other, FILES_TASK)
                assert (await make(one, "mkdir", dir_name="mine"))["error"] is False
                seen = [(await make(session, "ls"))["text"] for session in (one, other)]
            async with toolkit.session() as third:
                await begin(third, FILES_TASK)
                return [*seen, (await make(third, "ls"))["text"]]

        mine, theirs, fresh = with_toolkit(work)
        assert "mine" in mine and "mine" not in theirs
        assert fresh == theirs

    def test_a_failed_call_tells_so_in_upstreams_words(self) -> None:
        async def work(toolkit: ToolkitHandle) -> list[dict[str, Any]]:
            async with toolkit.session() as session:
                await begin(session, FILES_TASK)
                return [
                    await make(session, "cd", folder="nowhere"),
                    await make(session, "ls", wrong=1),
                    await make(session, "open", file="/etc/passwd"),
                    await make(session, "echo", content=float("nan")),
                ]

        lost, wrong, unknown, odd = with_toolkit(work)
        assert list(json.loads(lost["text"])) == ["error"] and lost["error"]
        assert "unexpected keyword argument 'wrong'" in wrong["text"] and wrong["error"]
        assert unknown == {"text": "Error during execution: name 'open' is not defined", "error": True}
        assert odd == {"text": "Error during execution: name 'nan' is not defined", "error": True}

    def test_text_that_looks_like_code_stays_text(self) -> None:
        text = "'); __import__('os').getcwd() #"

        async def work(toolkit: ToolkitHandle) -> tuple[dict[str, Any], Any]:
            async with toolkit.session() as session:
                await begin(session, FILES_TASK)
                said = await make(session, "echo", content=text)
                return said, await session.request("state", {}, LATER)

        said, state = with_toolkit(work)
        assert json.loads(said["text"]) == {"terminal_output": text}
        assert "GorillaFileSystem" in state

    @pytest.mark.slow
    @pytest.mark.timeout(300)
    def test_a_call_that_computes_without_end_fails_alone(self) -> None:
        async def work(toolkit: ToolkitHandle) -> list[dict[str, Any]]:
            async with toolkit.session() as session:
                await begin(session, MATHS_TASK)
                endless = await make(session, "logarithm", value=3, base=2, precision=10**8)
                return [endless, await make(session, "add", a=1, b=2)]

        endless, after = with_toolkit(work)
        assert endless["error"] and "10 s of processor time" in endless["text"]
        assert after == {"text": '{"result": 3}', "error": False}

    def test_a_task_that_is_not_there_is_refused(self) -> None:
        async def work(toolkit: ToolkitHandle) -> None:
            async with toolkit.session() as session:
                for params in ({"category": BASE, "id": "no such"}, {"category": "simple_python", "id": "x"}):
                    with pytest.raises(ToolkitError, match=r"no task|no category"):
                        await session.request("open", params, LATER)

        with_toolkit(work)

    def test_what_confines_the_worker_is_said(self, toolkit: Environment) -> None:
        stamp: Any = with_toolkit(lambda toolkit: toolkit.stamp())
        confined = stamp["upstream"]["confined"]
        assert set(confined) == {"network", "memory", "file size", "core dumps"}
        assert all(how == "none" or how.startswith(("at most ", "not enforced: ")) for how in confined.values())
        assert set(stamp["upstream"]["files"]) == set(toolkit.spec.files)


def expected(category: str) -> Mapping[str, Any]:
    rows: Mapping[str, Any] = json.loads(oracle_path("oracles", "bfcl.json").read_bytes())["categories"]
    return dict(rows[category])


@pytest.mark.usefixtures("toolkit")
class TestVerdicts:
    @pytest.mark.parametrize("category", MULTI_TURN)
    def test_gold_and_null_of_the_first_tasks_are_as_expected(self, category: str) -> None:
        ids = [f"{category}_{number}" for number in range(FIRST)]

        async def work(toolkit: ToolkitHandle) -> list[tuple[bool, bool]]:
            found = []
            for task in ids:
                gold = await gold_turns(toolkit, category, task)
                right = await verdict(toolkit, category, task, gold)
                null = await verdict(toolkit, category, task, [[] for _ in gold])
                assert right["flags"] == null["flags"] == []
                found.append((right["valid"], null["valid"]))
            return found

        wanted = expected(category)
        assert wanted["gold_fails"] == [] and wanted["null_pass"] == 0
        assert with_toolkit(work) == [(True, False)] * FIRST

    def test_an_attempt_does_not_go_on_where_the_one_before_it_stopped(self) -> None:
        async def work(toolkit: ToolkitHandle) -> list[bool]:
            gold = await gold_turns(toolkit, BASE, FILES_TASK)
            more = {"calls": [{"name": "mkdir", "arguments": '{"dir_name": "one too many"}'}]}
            wrong = [[*gold[0], more], *gold[1:]]
            graded = [await verdict(toolkit, BASE, FILES_TASK, turns) for turns in (gold, wrong, gold)]
            return [one["valid"] for one in graded]

        assert with_toolkit(work) == [True, False, True]

    def test_dropping_the_last_call_of_the_gold_fails(self) -> None:
        async def work(toolkit: ToolkitHandle) -> dict[str, Any]:
            *before, last = await gold_turns(toolkit, BASE, "multi_turn_base_0")
            return await verdict(toolkit, BASE, "multi_turn_base_0", [*before, last[:-1]])

        found = with_toolkit(work)
        assert not found["valid"]
        assert found["native"]["error"]["error_type"] in {
            "multi_turn:instance_state_mismatch",
            "multi_turn:execution_response_mismatch",
        }

    def test_a_dialogue_that_ended_early_was_cut_off_and_one_that_crashed_was_not_inferred(self) -> None:
        async def work(toolkit: ToolkitHandle) -> tuple[dict[str, Any], dict[str, Any]]:
            gold = await gold_turns(toolkit, BASE, FILES_TASK)
            cut = await verdict(toolkit, BASE, FILES_TASK, gold[:-1])
            return cut, await verdict(toolkit, BASE, FILES_TASK, gold, failure="it crashed")

        cut, crashed = with_toolkit(work)
        assert cut["native"]["error"]["error_type"] == "multi_turn:force_terminated"
        assert crashed["native"]["error"]["error_type"] == "multi_turn:inference_error"
        assert not cut["valid"] and not crashed["valid"]

    def test_words_between_the_calls_change_nothing(self) -> None:
        async def work(toolkit: ToolkitHandle) -> dict[str, Any]:
            gold = await gold_turns(toolkit, BASE, FILES_TASK)
            turns = [[*turn, {"text": "ls(); quit()"}, {"text": ""}] for turn in gold]
            return await verdict(toolkit, BASE, FILES_TASK, turns)

        assert with_toolkit(work) == {"valid": True, "native": {"valid": True}, "abstained": None, "flags": []}

    def test_calls_that_may_not_be_executed_are_not(self) -> None:
        """Natively each of these would run as Python; here they are calls of nothing, or none at all."""
        odd = [
            ("__import__('os').getcwd", "{}"),
            ("open", '{"file": "/etc/passwd"}'),
            ("ls", "{\"a=__import__('os').getcwd(),b\": 1}"),
            ("ls", "no json"),
        ]

        async def work(toolkit: ToolkitHandle) -> dict[str, Any]:
            first, *rest = await gold_turns(toolkit, BASE, FILES_TASK)
            step = {"calls": [{"name": name, "arguments": text} for name, text in odd]}
            return await verdict(toolkit, BASE, FILES_TASK, [[step, *first], *rest])

        found = with_toolkit(work)
        assert found["valid"] and found["flags"] == ["calls_unreadable"]

    def test_a_function_named_in_an_argument_is_flagged_for_upstream_rewrites_it(self) -> None:
        async def work(toolkit: ToolkitHandle) -> dict[str, Any]:
            turns = await gold_turns(toolkit, BASE, FILES_TASK)
            call = {"name": "echo", "arguments": json.dumps({"content": "please run ls() now", "file_name": "a.txt"})}
            return await verdict(toolkit, BASE, FILES_TASK, [[{"calls": [call]}, *turns[0]], *turns[1:]])

        assert with_toolkit(work)["flags"] == ["native_rewrites_arguments"]

    @pytest.mark.parametrize("category", ["multi_turn_miss_func", "multi_turn_miss_param"])
    def test_whether_it_abstained_while_something_was_missing_is_told_beside_the_verdict(self, category: str) -> None:
        async def work(toolkit: ToolkitHandle) -> list[tuple[bool, bool]]:
            gold = await gold_turns(toolkit, category, f"{category}_1")
            early = [turn or [{"calls": [{"name": "pwd", "arguments": "{}"}]}] for turn in gold]
            graded = [await verdict(toolkit, category, f"{category}_1", turns) for turns in (gold, early)]
            return [(one["valid"], one["abstained"]) for one in graded]

        assert with_toolkit(work) == [(True, True), (True, False)]  # natively, calls too early are not punished

    def test_a_call_before_its_function_was_there_counts_as_natively_and_is_flagged(self) -> None:
        """The gold of one task makes such a call."""
        category, task = "multi_turn_miss_func", "multi_turn_miss_func_49"

        async def work(toolkit: ToolkitHandle) -> dict[str, Any]:
            return await verdict(toolkit, category, task, await gold_turns(toolkit, category, task))

        found = with_toolkit(work)
        assert found["valid"] and found["flags"] == ["called_before_it_was_there"]


@pytest.mark.usefixtures("agentic")
class TestMemory:
    def test_a_session_begins_with_what_the_one_before_it_left(self) -> None:
        async def work(toolkit: ToolkitHandle) -> tuple[Any, dict[str, Any], dict[str, Any]]:
            async with toolkit.session() as first:
                await begin(first, "memory_kv_prereq_22-student-0", "memory_kv")
                await make(first, "core_memory_add", key="drink", value="oolong tea")
                await make(first, "archival_memory_add", key="pet", value="a heron")
                left = await first.request("state", {}, LATER)
            async with toolkit.session() as second:
                opened = await begin(second, "memory_kv_80-student-0", "memory_kv", memory=left)
                return left, opened, await make(second, "archival_memory_key_search", query="pet")

        left, opened, found = with_toolkit(work, "bfcl-agentic")
        assert left == {"core_memory": {"drink": "oolong tea"}, "archival_memory": {"pet": "a heron"}}
        (turn,) = opened["turns"]
        assert [message["role"] for message in turn] == ["system", "user"]
        assert "oolong tea" in turn[0]["content"] and "heron" not in turn[0]["content"]
        assert [key for _, key in json.loads(found["text"])["ranked_results"]] == ["pet"]

    def test_a_first_session_begins_with_nothing(self) -> None:
        async def work(toolkit: ToolkitHandle) -> tuple[dict[str, Any], Any]:
            async with toolkit.session() as session:
                opened = await begin(session, "memory_rec_sum_prereq_0-customer-0", "memory_rec_sum")
                return opened, await session.request("state", {}, LATER)

        opened, state = with_toolkit(work, "bfcl-agentic")
        assert "There is no content in the memory" in opened["turns"][0][0]["content"]
        assert len(opened["turns"]) == 9 and state == {"memory": ""}

    def test_memory_by_meaning_says_what_it_lacks(self) -> None:
        async def work(toolkit: ToolkitHandle) -> list[Any]:
            return [await toolkit.request("backend", {"category": category}, LATER) for category in MEMORY]

        assert with_toolkit(work, "bfcl-agentic") == [
            {"missing": []},
            {"missing": []},
            {"missing": ["sentence_transformers", "faiss"]},
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize("category", MEMORY)
    def test_gold_and_null_of_every_question_are_as_expected(self, category: str) -> None:
        """The final answer is all that is graded: no memory needs to be there for that."""

        async def work(toolkit: ToolkitHandle) -> tuple[list[bool], list[bool]]:
            tasks: Any = await toolkit.request("dialogue_tasks", {"category": category}, LATER)
            right, null = [], []
            for task in [t["id"] for t in tasks if t["scored"]]:
                gold: Any = await toolkit.request("dialogue_gold", {"category": category, "id": task}, LATER)
                right.append((await verdict(toolkit, category, task, [[{"text": gold["answer"]}]]))["valid"])
                null.append((await verdict(toolkit, category, task, [[]]))["valid"])
            return right, null

        right, null = with_toolkit(work, "bfcl-agentic")
        wanted = expected(category)
        assert (len(right), sum(right), sum(null)) == (wanted["tasks"], wanted["gold_pass"], wanted["null_pass"])
