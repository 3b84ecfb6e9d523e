"""A trace: what happened in one attempt, in the order it happened. What it does not say did not happen.

An event is a JSON object with `t` (seconds since the attempt began), `e` (its kind) and fields of the kind:

trial.start     id, task, arm, repeat, attempt, seed, messages, bridges, limits
model.request   role, call, `add` (messages), `rest` (all other fields); with `base`, the messages follow those of that
                earlier call of the role, and a `rest` that is left out is that call's
                `applied` is what the arm's own parameters put over it
model.retry     role, call, kind, message, wait_s: a try failed, and another follows after that wait
model.paused    role, call, message, wait_s: the call was held back that long, with all others to this provider
model.response  role, call, body, wall_s; `disbelieved` names numbers of its usage that cannot be, and are not summed
model.replayed  role, call, then, source: the answer is that of call `then` of a recorded attempt
model.diverged  role, call, what, at, difference: the request is not on the tape; `at` is the message, if it is one
model.error     role, call, kind, message
fault.injected  what, where (agent, provider, tools), call, and what belongs to the kind: done on purpose
tool.call       call, tool, arguments (or `raw`, where they were no JSON), bridge
tool.result     call, error, content (and `structured`), wall_s, queue_s; `cut`, where the agent got less of it
tool.input_required  call, message, schema, answer: the tool asked for input, and got none
env.*           what the environment itself did: call and result (tool, arguments, requestor) of what a tool dispatched
                or a simulated user did; of MCP servers server, stderr, log, elicitation, timeout, tools_changed
dialogue.turn   turn, messages; `tools` (their names) where they changed
dialogue.reply  turn, claim, answer
dialogue.end    reason, limit, fault
wire.*          of the HTTP form only: client (revision, client, streaming), refused (status), mended, hung_up
harness.exit    claim, answer, exit_code, evidence
deliverable, evidence
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from evalcore.values.json import JSONObject, JSONValue, loads, parse
from evalcore.values.task import Call

_HEAD = 80  # bytes within which a line names its kind: events are written with `t` and `e` first
_EXACT_HEAD = b'{"$exact"'
_CONVERSATIONS: Final = {"openai-responses": "input"}  # field of a request that holds it; elsewhere `messages`


class TraceReader:
    """One attempt's events, decoded when asked for."""

    __slots__ = ("_lines",)

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def lines(self) -> Sequence[bytes]:
        """The events as they were written, one a line: to look for something without decoding."""
        return self._lines

    def events(self, kind: str | None = None) -> Iterator[JSONObject]:
        """All events in order, or those of one kind."""
        mark = b"" if kind is None else b'"e":"%s"' % kind.encode()
        for line in self._lines:
            if line.find(mark, 0, _HEAD) >= 0 or line.startswith(_EXACT_HEAD):
                event = _event(line)
                if kind is None or event["e"] == kind:
                    yield event

    def last(self, kind: str) -> JSONObject | None:
        """The last event of a kind, looked for from the end."""
        mark = b'"e":"%s"' % kind.encode()
        for line in reversed(self._lines):
            if line.find(mark, 0, _HEAD) >= 0 or line.startswith(_EXACT_HEAD):
                event = _event(line)
                if event["e"] == kind:
                    return event
        return None

    def requests(self, role: str = "agent") -> list[JSONObject]:
        """Every request of a role, whole, as it was sent."""
        bodies: dict[int, JSONObject] = {}
        for event in self.events("model.request"):
            if event["role"] == role:
                call = event["call"]
                assert isinstance(call, int)
                bodies[call] = _whole(event, bodies)
        return list(bodies.values())


def _event(line: bytes) -> JSONObject:
    value = loads(line)
    if not isinstance(value, dict):
        raise ValueError("an event is an object")
    return value


def _whole(event: JSONObject, earlier: dict[int, JSONObject]) -> JSONObject:
    """The request behind an event that holds only what it adds to an earlier one."""
    base, add, rest = event.get("base"), event.get("add"), event.get("rest")
    if not isinstance(add, list):  # a conversation that is no list is all in the rest
        return rest if isinstance(rest, dict) else {}
    conversation = _CONVERSATIONS.get(str(event.get("dialect")), "messages")
    before = earlier[base] if isinstance(base, int) else {}
    said = before.get(conversation, [])
    assert isinstance(said, list)
    return {**(rest if isinstance(rest, dict) else before), conversation: said + add}


def calls_of_response(event: JSONObject) -> list[Call]:
    """The tool calls of a `model.response`, in whatever dialect; arguments that are no JSON stay as `raw`."""
    body, dialect = event.get("body"), event.get("dialect")
    if dialect is None or not isinstance(body, dict):
        return calls_of_message(assistant_message(body))
    items = body.get("output" if dialect == "openai-responses" else "content")
    found = [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []
    if dialect == "openai-responses":
        return [call_of({"function": i}) for i in found if i.get("type") == "function_call"]
    return [Call(str(i.get("name", "")), i.get("input")) for i in found if i.get("type") == "tool_use"]


def message_of_response(event: JSONObject) -> JSONObject:
    """What a `model.response` says, as an assistant's Chat Completions message: `content`, perhaps `refusal`."""
    body, dialect = event.get("body"), event.get("dialect")
    if dialect is None or not isinstance(body, dict):
        return assistant_message(body)
    items = body.get("output" if dialect == "openai-responses" else "content")
    texts: list[JSONValue] = []
    refusal: JSONValue = None
    for item in items if isinstance(items, list) else ():
        inner = item.get("content") if isinstance(item, dict) and item.get("type") == "message" else [item]
        for part in inner if isinstance(inner, list) else ():
            if isinstance(part, dict) and part.get("type") in ("text", "output_text"):
                texts.append({"type": "text", "text": part.get("text")})
            elif isinstance(part, dict) and part.get("type") == "refusal":
                refusal = part.get("refusal")
    return {"role": "assistant", "content": texts, "refusal": refusal}


def text_of_response(event: JSONObject, between: str = "") -> str:
    """The text of a `model.response`, in whatever dialect; several parts of it are joined by `between`."""
    body = event.get("body")
    if isinstance(body, str):  # what a redaction put in its place
        return body
    content = message_of_response(event).get("content")
    if isinstance(content, str):
        return content
    parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    return between.join(str(p["text"]) for p in parts if p.get("type") == "text" and isinstance(p.get("text"), str))


def calls_of_message(message: JSONValue) -> list[Call]:
    """The tool calls of a Chat Completions assistant message; arguments that are no JSON stay as `raw`."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return [call_of(c) for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []


def call_of(tool_call: JSONObject) -> Call:
    """One entry of `tool_calls` as a Call."""
    function = tool_call.get("function")
    function = function if isinstance(function, dict) else {}
    name, raw = function.get("name"), function.get("arguments")
    name = name if isinstance(name, str) else ""
    if not isinstance(raw, str):
        return Call(name, raw)
    try:
        return Call(name, parse(raw) if raw.strip() else {})
    except ValueError:
        return Call(name, None, raw)


def assistant_message(body: JSONValue) -> JSONObject:
    """The first choice's message of a Chat Completions response, or an empty one."""
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else {}


def first_response_calls(trace: TraceReader) -> list[Call]:
    """The calls of the agent's first model response; without a model (a control), all calls count as one response.

    Where calls do not travel in the response's own `tool_calls` (a text protocol), they are those that were made before
    the model was asked again.
    """
    calls: list[Call] = []
    answered = False
    for event in trace.events():
        kind = event["e"]
        if kind == "model.response" and event["role"] == "agent" and not answered:
            answered = True
            if native := calls_of_response(event):
                return native
        elif kind == "model.request" and event["role"] == "agent" and answered:
            break
        elif kind == "tool.call":
            calls.append(_recorded_call(event))
    return calls


def tool_calls(trace: TraceReader) -> list[Call]:
    """Every call that reached the tool wire or was refused by it, in order."""
    return [_recorded_call(event) for event in trace.events("tool.call")]


def _recorded_call(event: JSONObject) -> Call:
    raw = event.get("raw")
    return Call(str(event["tool"]), event.get("arguments"), raw if isinstance(raw, str) else None)


def exit_kind(trace: TraceReader) -> str | None:
    """How the attempt ended, as the engine decided; None for a void one."""
    event = trace.last("exit")
    return None if event is None else str(event["kind"])
