"""What every export of a run goes through: its trials, each with its configuration and what may be shown of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from evalcore.engine.store import TraceStore, read_attempts, read_gradings, read_stamp
from evalcore.errors import InfraError
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.redaction import NOTHING, Redaction, RedactionRules, redaction, redaction_of_texts
from evalcore.values.stamp import ArmStamp, BenchmarkStamp, RunStamp
from evalcore.values.task import Role
from evalcore.values.trace import TraceReader, calls_of_response, text_of_response
from evalcore.values.trial import Attempt, Grading
from evalcore.values.usage import Usage

_PLAIN: Final = re.compile(r"[^A-Za-z0-9._+-]+")


@frozen
class Trial:
    """One attempt with all that it belongs to. `trace` is what may be shown of it; empty where it is lost."""

    attempt: Attempt
    grading: Grading | None
    benchmark: BenchmarkStamp
    arm: ArmStamp
    trace: TraceReader

    @property
    def name(self) -> str:
        """Fit to be a file's."""
        key = self.attempt.key
        parts = (key.benchmark, key.task, self.arm.arm.handle, str(key.repeat), str(self.attempt.number))
        return "--".join(plain(part) for part in parts)

    @property
    def usage(self) -> Mapping[Role, Usage]:
        """What was used by each role, a judge's at grading included."""
        found = dict(self.attempt.usage)
        for role, usage in (self.grading.usage if self.grading is not None else {}).items():
            found[role] = together(found[role], usage) if role in found else usage
        return found

    def model_of(self, role: Role) -> str | None:
        """The model that played a role, as the arm or the benchmark names it."""
        axis = self.arm.arm.axes.get("model" if role == "agent" else f"{role}_model")
        return axis if isinstance(axis, str) else self.benchmark.roles.get(role)


def together(one: Usage, other: Usage) -> Usage:
    """The sum of two usages. Its cost is known if both are."""
    known = one.cost_usd is not None and other.cost_usd is not None
    return Usage(
        one.calls + other.calls,
        one.input + other.input,
        one.output + other.output,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
        one.reasoning + other.reasoning,
        one.unreported + other.unreported,
        (one.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
    )


def plain(text: str) -> str:
    """A text as part of a file's name. Two texts never have one name: what had to be changed gets a digest."""
    name = _PLAIN.sub("-", text).strip("-.")[:80]
    return name if name == text else f"{name or 'x'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class Trials:
    """The trials of a run, in the order of commit."""

    def __init__(
        self, run: Path, grading: str | None = None, *, public: bool = False, rules: RedactionRules | None = None
    ) -> None:
        self.run = run
        self.stamp: RunStamp = read_stamp(run)
        self.grading = grading or self.stamp.grading
        self._arms = {a.arm.digest: a for a in self.stamp.arms}
        self._benchmarks = {b.selector: b for b in self.stamp.benchmarks}
        self._shown: Mapping[str, Redaction] = {
            b.selector: redaction(b.dataset, b.selector, rules) if public or rules else NOTHING
            for b in self.stamp.benchmarks
        }
        self._texts = redaction_of_texts(rules)

    def __iter__(self) -> Iterator[Trial]:
        """Every attempt, void ones too. Raises ConfigError if the ledgers cannot be read."""
        verdicts = {g.attempt: g for g in read_gradings(self.run, self.grading)}
        store = TraceStore(self.run)
        try:
            for attempt in read_attempts(self.run):
                shown = self._shown[attempt.key.benchmark]
                grading = verdicts.get(attempt.id)
                yield Trial(
                    _shown(attempt, shown),
                    None if grading is None else shown.grading(grading),
                    self._benchmarks[attempt.key.benchmark],
                    self._arms[attempt.key.arm],
                    shown.trace(_trace(store, attempt)),
                )
        finally:
            store.close()

    def written(self, document: JSONObject) -> bytes:
        """A document as its file's bytes, without the texts that a user's rules name, wherever they stand."""
        return dumps(self._texts.content(document))


def _shown(attempt: Attempt, shown: Redaction) -> Attempt:
    """An attempt whose words, if it has any, are such as may be shown."""
    if shown.is_nothing:
        return attempt
    if attempt.void is not None:
        return evolve(attempt, void=evolve(attempt.void, message=str(shown.content(attempt.void.message))))
    if attempt.exit is not None and attempt.exit.detail is not None:
        return evolve(attempt, exit=evolve(attempt.exit, detail=str(shown.content(attempt.exit.detail))))
    return attempt


def _trace(store: TraceStore, attempt: Attempt) -> TraceReader:
    try:
        return store.of(attempt)
    except InfraError:  # a lost trace takes no verdict away
        return TraceReader(())


# ── a trace as a conversation ────────────────────────────────────────────────────────────────────────────────────────


def text_of(content: JSONValue) -> str:
    """The text of a message's or a result's content; parts that are no text are named."""
    if isinstance(content, str):
        return content
    parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    return "\n".join(str(p["text"]) if "text" in p else f"[{p.get('type', 'part')}]" for p in parts)


@frozen
class Said:
    """One step of a conversation: `role` is system, user, assistant or tool. `t` in seconds of the attempt."""

    role: str
    text: str
    t: float
    calls: tuple[JSONObject, ...] = ()  # `id`, `name`, `arguments`: what the assistant asked for
    call: str = ""  # of a tool: the call that it answers
    tool: str = ""  # and its name
    failed: bool = False
    response: JSONObject | None = None  # the `model.response`, of an assistant


def conversation(trace: TraceReader) -> list[Said]:
    """What was said and done, in order, by the agent, its user and its tools.

    A call that no message asked for (of a control, or in a text protocol) gets a message without words. A call without
    a result is left with none.
    """
    steps = _Steps()
    for event in trace.events():
        kind = event.get("e")
        if kind in ("trial.start", "dialogue.turn"):
            steps.told(event)
        elif kind == "model.response" and event.get("role") == "agent":
            steps.answered(event)
        elif kind == "tool.call":
            steps.called(event)
        elif kind == "tool.result":
            steps.returned(event)
    return [step for step in steps.all if step is not None]


class _Steps:
    """A conversation as it grows. A call's result stands where the call was made, whenever it came."""

    def __init__(self) -> None:
        self.all: list[Said | None] = []
        self._asked: list[tuple[str, str]] = []  # by the last response, and not made yet: (id, name)
        self._open: dict[JSONValue, tuple[int, str, str]] = {}  # calls without a result: place, id, tool

    def told(self, event: JSONObject) -> None:
        t = _number(event.get("t"))
        self.all += [
            Said(str(message.get("role")), text_of(message.get("content")), t)
            for message in _objects(event.get("messages"))
        ]

    def answered(self, event: JSONObject) -> None:
        number = event.get("call")
        calls: tuple[JSONObject, ...] = tuple(
            {"id": f"m{number}-{i}", "name": c.name, "arguments": c.arguments if c.raw is None else c.raw}
            for i, c in enumerate(calls_of_response(event))
        )
        self._asked = [(str(c["id"]), str(c["name"])) for c in calls]
        self.all.append(
            Said("assistant", text_of_response(event, "\n"), _number(event.get("t")), calls, response=event)
        )

    def called(self, event: JSONObject) -> None:
        number, tool = event.get("call"), str(event.get("tool"))
        asked = next((a for a in self._asked if a[1] == tool), None)
        if asked is not None:
            self._asked.remove(asked)
            identifier = asked[0]
        else:
            identifier = f"t{number}"
            call: JSONObject = {"id": identifier, "name": tool, "arguments": event.get("raw", event.get("arguments"))}
            self.all.append(Said("assistant", "", _number(event.get("t")), (call,)))
        self._open[number] = (len(self.all), identifier, tool)
        self.all.append(None)

    def returned(self, event: JSONObject) -> None:
        found = self._open.pop(event.get("call"), None)
        if found is not None:
            place, identifier, tool = found
            text, failed = text_of(event.get("content")), event.get("error") is True
            self.all[place] = Said("tool", text, _number(event.get("t")), call=identifier, tool=tool, failed=failed)


def _objects(value: JSONValue) -> list[JSONObject]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _number(value: JSONValue) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def at(started: str, seconds: float) -> datetime:
    """The moment `seconds` after a start in RFC 3339."""
    return datetime.fromisoformat(started) + timedelta(seconds=seconds)
