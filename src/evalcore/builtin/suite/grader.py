"""Grader `suite`: everything that a task's `grade` and `expect` ask for must hold (docs/suites.md).

Pure: it reads the deliverable, the evidence and the trace. All checks are made and kept; the first that does not hold
is the reason. What cannot be known (tokens that a provider did not report) leaves the verdict open, unless another
check decides it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from evalcore.builtin.suite.format import COMMAND_S, texts
from evalcore.builtin.suite.matching import answer_fault, call_fits, call_is, first_difference, in_order
from evalcore.builtin.suite.patterns import Searcher
from evalcore.builtin.toolset_values import lookup
from evalcore.contracts import JudgeReplies
from evalcore.errors import GraderError
from evalcore.values.faults import literal
from evalcore.values.json import JSONObject, JSONValue, exact_text, parse
from evalcore.values.task import Call, Task
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Deliverable, Evidence, Verdict
from evalcore.values.usage import usage_of

VERSION: Final = "2"  # of the rules below: a change of one is another grading
_FENCED: Final = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


@frozen
class Left:
    """All that one trial left."""

    deliverable: Deliverable
    evidence: Evidence
    trace: TraceReader
    exit: Mapping[str, JSONValue]

    @property
    def answer(self) -> str:
        """The final text; nothing where there is none."""
        return self.deliverable.answer or ""

    @property
    def calls(self) -> list[Call]:
        """The calls that were made. One whose arguments were no JSON never was."""
        return [call for call in self.deliverable.calls if call.raw is None]


class Unknown(Exception):
    """Whether a check holds cannot be known; the text says why."""


class SuiteGrader:
    """Makes every check."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        self._searcher = Searcher()

    async def stamp(self) -> JSONObject:
        """The version of the rules."""
        return {"suite": VERSION}

    async def grade(
        self, task: Task, deliverable: Deliverable, evidence: Evidence, trace: TraceReader, judge: JudgeReplies | None
    ) -> Verdict:
        """Pass, if all holds. Raises GraderError for a pattern that takes too long."""
        reference = task.reference if isinstance(task.reference, dict) else {}
        left = Left(deliverable, evidence, trace, next(trace.events("exit"), {}))
        checks: dict[str, str | None] = {}  # what was checked -> why it does not hold
        open_: dict[str, str] = {}
        for name, wanted in _asked(reference):
            try:
                checks[name] = await self._check(name, wanted, left)
            except Unknown as unknown:
                open_[name] = str(unknown)
        failed = [f"{name}: {why}" for name, why in checks.items() if why is not None]
        harm = checks["forbidden_calls"] is not None if "forbidden_calls" in checks else None
        details: JSONObject = {"checks": {name: why is None for name, why in checks.items()}}
        if failed:
            return Verdict("fail", 0.0, harm=harm, details={**details, "reason": failed[0], "failed": list(failed)})
        if left.exit.get("limit") == "wall_s":
            return Verdict("fail", 0.0, harm=harm, details={**details, "reason": "the trial's time was over"})
        if open_:
            return Verdict("ungraded", harm=harm, details={**details, "open": dict(open_)}, bounds=(0.0, 1.0))
        return Verdict("pass", 1.0, harm=harm, details=details)

    async def _check(self, name: str, wanted: Any, left: Left) -> str | None:
        """Why a check does not hold; None if it does."""
        if name == "regex":
            found = await self._searcher.found(wanted, left.answer)
            return None if found else f"{literal(wanted)} is not found in the answer"
        if name == "forbidden_calls":
            return await self._forbidden(wanted, left)
        if name == "mcp_state":
            return await self._servers(wanted, left)
        return _CHECKS[name](wanted, left)

    async def _forbidden(self, wanted: Any, left: Left) -> str | None:
        """Calls of the agent's, and what they were dispatched to: a tool that calls others is no way around."""
        for call, by in _made(left.trace):
            for one in wanted:
                if not call_is(call, one):
                    continue
                pattern = one.get("matches")
                if pattern is None or await self._searcher.found(pattern, exact_text(call.arguments)):
                    return f"{call.name} was called{by}, and is forbidden"
        return None

    async def _servers(self, wanted: Any, left: Left) -> str | None:
        answers: Any = left.evidence.data.get("mcp_state")
        if not isinstance(answers, list) or len(answers) != len(wanted):
            raise GraderError("the evidence holds no answers of servers")
        for check, answer in zip(wanted, answers, strict=True):
            why = answer_fault(check, answer)
            pattern = check.get("regex")
            if why is None and pattern is not None and not await self._searcher.found(pattern, answer["text"]):
                why = f"{literal(pattern)} is not found in its answer"
            if why is not None:
                return f"{check['tool']}: {why}"
        return None


def _made(trace: TraceReader) -> Iterator[tuple[Call, str]]:
    """Every call that was carried out for the agent, and by which way it came."""
    for event in trace.events():
        kind = event["e"]
        if kind == "tool.call" and "raw" not in event:
            yield Call(str(event["tool"]), event.get("arguments")), ""
        elif kind == "env.call" and (event.get("requestor") or event.get("source")) != "user":
            yield Call(str(event["tool"]), event.get("arguments")), " by another tool"


def _asked(reference: JSONObject) -> list[tuple[str, JSONValue]]:
    """What is to be checked, in the format's order."""
    grade, expect = reference.get("grade"), reference.get("expect")
    asked = [(name, grade[name]) for name in _ORDER if name in grade] if isinstance(grade, dict) else []
    if isinstance(expect, dict):
        asked += [(name, expect[name]) for name in ("completed", "tool_call") if name in expect]
    return [(name, wanted) for name, wanted in asked if wanted is not None]


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _contains(wanted: Any, left: Left) -> str | None:
    missing = [one for one in texts(wanted) if one not in left.answer]
    return f"{literal(missing[0])} is not in the answer" if missing else None


def _exact(wanted: Any, left: Left) -> str | None:
    given = left.answer.strip()
    return None if given == wanted.strip() else f"the answer is {literal(given)}, not {literal(wanted)}"


def _json(wanted: Any, left: Left) -> str | None:
    text = left.answer.strip()
    fenced = _FENCED.search(text)
    for one in (text, fenced[1] if fenced else ""):
        try:
            return first_difference(parse(one), wanted, "$")
        except ValueError:
            continue
    return "the answer is no JSON"


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool_calls(wanted: Any, left: Left) -> str | None:
    calls = left.calls
    made = ", ".join(dict.fromkeys(call.name for call in calls)) or "none"
    if isinstance(wanted, dict) and "name" in wanted:
        wanted = [wanted]
    groups: Mapping[str, Sequence[JSONObject]] = {"any": wanted} if isinstance(wanted, list) else wanted
    for one in groups.get("all", ()):
        if not any(call_fits(call, one) for call in calls):
            return f"no call of {one['name']} as expected; calls: {made}"
    if (some := groups.get("any")) and not any(call_fits(call, one) for call in calls for one in some):
        return f"no call of {' or '.join(dict.fromkeys(str(one['name']) for one in some))} as expected; calls: {made}"
    for one in groups.get("none", ()):
        if any(call_fits(call, one) for call in calls):
            return f"{one['name']} was called, and must not be"
    order = groups.get("order", ())
    if (found := in_order(calls, order)) < len(order):
        after = f" after {order[found - 1]['name']}" if found else ""
        return f"no call of {order[found]['name']}{after} as expected; calls in order: {made}"
    return None


def _called(wanted: Any, left: Left) -> str | None:
    return None if any(call.name == wanted for call in left.calls) else f"{wanted} was not called"


# ── what was left ────────────────────────────────────────────────────────────────────────────────────────────────────


def _state(wanted: Any, left: Left) -> str | None:
    return first_difference(left.deliverable.data.get("state"), wanted, "$")


def _state_absent(wanted: Any, left: Left) -> str | None:
    state = left.deliverable.data.get("state")
    present = [path for path in texts(wanted) if lookup(state, path.split("."))[1] is not None]
    return f"{present[0]} is there" if present else None


def _files(wanted: Any, left: Left) -> str | None:
    seen = left.evidence.data.get("files")
    if not isinstance(seen, dict):
        raise GraderError("the evidence holds no files")
    return next((why for path, check in wanted.items() if (why := _file(path, check, seen[path])) is not None), None)


def _file(path: str, check: JSONObject, seen: Any) -> str | None:
    if not seen["exists"]:
        return f"{path}: {seen.get('why', 'there is no such file')}"
    exact = check.get("exact")
    if isinstance(exact, str) and hashlib.sha256(exact.encode("utf-8", "surrogatepass")).hexdigest() != seen["sha256"]:
        return f"{path} holds {literal(seen['text'])}, not {literal(exact)}"
    missing = [one for one in texts(check.get("contains")) if one not in seen["text"]]
    return f"{path} does not hold {literal(missing[0])}" if missing else None


def _command(wanted: Any, left: Left) -> str | None:
    seen: Any = left.evidence.data.get("command")
    if not isinstance(seen, dict):
        raise GraderError("the evidence holds no command")
    if seen["timed_out"]:
        return f"did not end within {wanted.get('timeout_s', COMMAND_S):g} s"
    expected = wanted.get("expect_exit", 0)
    if seen["exit_code"] == expected:
        return None
    ended = f"signal {seen['signal']}" if seen["exit_code"] is None else f"exit {seen['exit_code']}"
    said = str(seen["stderr"] or seen["stdout"]).strip()[-200:]
    return f"ended with {ended}, not {expected}" + (f": {said}" if said else "")


# ── how it went ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _ended(wanted: Any, left: Left) -> str | None:
    kind = left.exit.get("kind")
    return None if kind in texts(wanted) else f"the agent ended as {kind}, not {' or '.join(texts(wanted))}"


def _completed(_: Any, left: Left) -> str | None:
    return _ended("completed", left)


def _exit_code(wanted: Any, left: Left) -> str | None:
    code = left.deliverable.data.get("exit_code")
    if code is None:
        return "the agent left no exit code"
    expected = texts(wanted)
    return None if code in expected else f"the agent's exit code is {code}, not {' or '.join(map(str, expected))}"


def _at_most(wanted: Any, left: Left) -> str | None:
    responses = [event for event in left.trace.events("model.response") if event["role"] == "agent"]
    used = [usage_of(e["body"], e.get("dialect")) for e in responses if isinstance(e["body"], dict)]
    counts = {
        "model_calls": len(responses),
        "tool_calls": len(left.deliverable.calls),
        "tokens": sum(one.tokens for one in used),
    }
    for name, bound in wanted.items():
        if bound is not None and counts[name] > bound:
            return f"{counts[name]} {name.replace('_', ' ')}, at most {bound} allowed"
    unreported = sum(one.unreported for one in used)
    if wanted.get("tokens") is not None and unreported:
        raise Unknown(f"{unreported} model calls whose tokens were not reported")
    return None


_CHECKS: Final[Mapping[str, Callable[[Any, Left], str | None]]] = {
    "contains": _contains,
    "exact": _exact,
    "json": _json,
    "tool_calls": _tool_calls,
    "state": _state,
    "state_absent": _state_absent,
    "files": _files,
    "command": _command,
    "ended": _ended,
    "exit_code": _exit_code,
    "at_most": _at_most,
    "completed": _completed,
    "tool_call": _called,
}
_ORDER: Final[tuple[str, ...]] = (
    *("contains", "exact", "regex", "json", "tool_calls", "forbidden_calls", "state", "state_absent", "mcp_state"),
    *("files", "command", "ended", "exit_code", "at_most"),
)
