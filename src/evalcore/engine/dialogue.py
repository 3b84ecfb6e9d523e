"""A dialogue: the benchmark's driver says what comes next, the engine relays, the agent does one turn after the other.

An agent that keeps a session is told what is new. One that does not is run once a turn, with what was said and done
before rendered into its messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from attrs import evolve

from evalcore.contracts import Conversing, Driver, End, Episode, Harness, Job, Session, UserTurn
from evalcore.engine.fault import as_infra
from evalcore.engine.live import LiveTrial
from evalcore.errors import InfraError
from evalcore.process.bounded import HungError, bounded
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import Message
from evalcore.values.trace import TraceReader
from evalcore.values.trial import HarnessExit
from evalcore.wires.recorder import AttemptRecorder
from evalcore.wires.tools import RecordedTools

DRIVER_S: Final = 600.0  # a driver that takes longer for one move has hung
RENDERED_MAX: Final = 20_000  # characters of one result that a rendered history repeats
_OVER: Final = frozenset({"crashed", "infra", "limit"})  # after which there is no agent left to talk to


def driver_of(episodes: Sequence[Episode]) -> Driver | None:
    """The driver of a trial's dialogue; None for a plain trial. Raises InfraError where two bridges want to drive."""
    drivers = [driver for episode in episodes if (driver := episode.driver()) is not None]
    if len(drivers) > 1:
        raise InfraError("two bridges of the trial drive its dialogue")
    return drivers[0] if drivers else None


async def converse(
    harness: Harness, job: Job, driver: Driver, trial: LiveTrial, wires: Sequence[RecordedTools]
) -> HarnessExit:
    """The whole dialogue. Returns how the agent ended: as in its last turn, or as the driver's end says."""
    reply: HarnessExit | None = None
    async with _session(harness, job, trial.recorder) as session:
        number = 0
        while True:
            move = await _next(driver, reply)
            if isinstance(move, End):
                _record(trial.recorder, "dialogue.end", reason=move.reason, limit=move.limit, fault=move.fault)
                return _ended(reply, move)
            number += 1
            _begin(trial, wires, move, number)
            said: object = await session.turn(move.messages, tools_changed=move.tools_changed)
            if not isinstance(said, HarnessExit):
                raise TypeError(f"the harness returned {type(said).__name__}, no HarnessExit")
            reply = said
            trial.exit = reply
            trial.recorder.record("dialogue.reply", turn=number, claim=reply.claim, answer=reply.answer)
            if reply.claim in _OVER:
                await _next(driver, reply)
                return reply


async def _next(driver: Driver, reply: HarnessExit | None) -> UserTurn | End:
    """The driver's move, bounded; whatever escapes it is infrastructure."""
    try:
        move: object = await bounded(driver.next(reply), DRIVER_S)
    except HungError as error:
        raise InfraError(f"the dialogue's driver did not answer within {DRIVER_S:g} s") from error
    except Exception as error:
        raise as_infra(error, "driver") from error
    if not isinstance(move, (UserTurn, End)):
        raise InfraError(f"the dialogue's driver returned {type(move).__name__}, neither a turn nor an end")
    return move


def _begin(trial: LiveTrial, wires: Sequence[RecordedTools], move: UserTurn, number: int) -> None:
    """Put what is new where the agent and the reader of the trace find it."""
    trial.meter.begin_turn(move.model_calls)
    messages: list[JSONValue] = [m.as_json() for m in move.messages]
    fields: JSONObject = {"turn": number, "messages": messages}
    if move.tools_changed:
        for tools in wires:
            tools.relist()
        fields["tools"] = [spec.name for tools in wires for spec in tools.list()]
    trial.recorder.record("dialogue.turn", **fields)


def _ended(reply: HarnessExit | None, end: End) -> HarnessExit:
    """The dialogue's end as the agent's: the driver knows whether a limit or a fault of the agent's ended it."""
    last = reply or HarnessExit()
    if end.limit is not None:
        return evolve(last, claim="limit", evidence={**last.evidence, "limit": end.limit, "detail": end.reason})
    if end.fault is not None:
        return evolve(last, claim="crashed", evidence={**last.evidence, "detail": end.fault})
    return last


def _record(recorder: AttemptRecorder, kind: str, /, **fields: JSONValue) -> None:
    recorder.record(kind, **{k: v for k, v in fields.items() if v is not None})


# ── agents that remember, and agents that are told again ─────────────────────────────────────────────────────────────


@asynccontextmanager
async def _session(harness: Harness, job: Job, recorder: AttemptRecorder) -> AsyncIterator[Session]:
    if isinstance(harness, Conversing):
        async with harness.session(job) as session:
            yield session
    else:
        yield _Retold(harness, job, recorder)


class _Retold:
    """An agent that is run once a turn: the messages of each run hold all that was said and done before."""

    def __init__(self, harness: Harness, job: Job, recorder: AttemptRecorder) -> None:
        self._harness = harness
        self._job = job
        self._recorder = recorder
        self._said = job.messages

    async def turn(self, messages: tuple[Message, ...], *, tools_changed: bool = False) -> HarnessExit:
        """One run."""
        before = len(self._recorder.lines())
        self._said = (*self._said, *messages)
        reply = await self._harness.run(evolve(self._job, messages=self._said))
        if isinstance(reply, HarnessExit):
            done = TraceReader(self._recorder.lines()[before:])
            self._said = (*self._said, Message("assistant", rendered(done, reply.answer)))
        return reply


def rendered(trace: TraceReader, answer: str | None) -> str:
    """A turn of the agent's as text: each call with its result, in the order of the calls, then what it said."""
    calls: dict[JSONValue, list[str]] = {}
    for event in trace.events():
        if event["e"] == "tool.call":
            given = event["raw"] if "raw" in event else exact_text(event.get("arguments"))
            calls[event["call"]] = [f"[called {event['tool']}({given})]"]
        elif event["e"] == "tool.result" and event["call"] in calls:
            how = "failed" if event["error"] else "result"
            calls[event["call"]].append(f"[{how}: {_shown(event['content'])}]")
    lines = [line for call in calls.values() for line in call]
    return "\n".join([*lines, answer] if answer else lines)


def _shown(content: JSONValue) -> str:
    parts = content if isinstance(content, list) else []
    texts = [str(p["text"]) if p.get("type") == "text" else f"({p.get('type')})" for p in parts if isinstance(p, dict)]
    text = "\n".join(texts)
    return text if len(text) <= RENDERED_MAX else f"{text[:RENDERED_MAX]}… ({len(text):,} characters)"
