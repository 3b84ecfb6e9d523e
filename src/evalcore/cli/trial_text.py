"""One attempt as people read it: what was said, called and answered, how it ended, and what the grader made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evalcore.report.words import plural, seconds
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.trace import TraceReader, calls_of_response, message_of_response
from evalcore.values.trial import Attempt, Grading

LONG: Final = 1200  # characters of one text
LINES: Final = 24
_SILENT: Final = frozenset({"model.request", "deliverable", "evidence"})


def trial_text(
    reader: TraceReader, attempt: Attempt, grading: Grading | None, label: str, *, full: bool = False
) -> Iterator[str]:
    """The lines. Foreign text in them is as it was recorded: whoever prints them cleans them."""
    yield f"trial    {attempt.id}"
    yield f"by       {label}"
    yield f"began    {attempt.started}, took {seconds(attempt.wall_s)}"
    yield f"stamped  {attempt.provenance}, isolation {attempt.isolation}"
    for role, usage in attempt.usage.items():
        tokens = f"{usage.input:,} tokens in, {usage.output:,} out"
        yield f"{role:<8} {plural(usage.calls, 'model call')}: {tokens}"
    yield ""
    shorten = _Shorten(full)
    dialogue = False
    said: dict[str, str] = {}  # by whom, last: what a model said is not told again as what was heard
    for event in reader.events():
        who, words = _spoken(event)
        dialogue = dialogue or event.get("e") == "dialogue.turn"
        if words and dialogue and event.get("e") != "model.response" and words == said.get(who):
            yield from _told_already(event, shorten)
        else:
            yield from _event(event, shorten)
        if words:
            said[who] = words
    yield ""
    yield from _verdict(attempt, grading, shorten)


class _Shorten:
    """Cuts long texts, unless all of them is wanted."""

    def __init__(self, full: bool) -> None:
        self._full = full

    def __call__(self, value: JSONValue) -> str:
        text = value if isinstance(value, str) else exact_text(value)
        if self._full or (len(text) <= LONG and text.count("\n") < LINES):
            return text
        kept = "\n".join(text[:LONG].split("\n")[:LINES])
        return f"{kept}\n… {len(text) - len(kept):,} more characters (--full)"


def _event(event: JSONObject, shorten: _Shorten) -> Iterator[str]:
    """One event as a block; what is told elsewhere, or needs no telling, is left out."""
    kind = str(event.get("e"))
    if kind == "trial.start":
        for message in _objects(event.get("messages")):
            yield from _block(event, str(message.get("role")), _content(message.get("content")), shorten)
    elif kind == "model.response":
        yield from _response(event, shorten)
    elif kind == "harness.exit":
        yield from _claim(event, shorten)
    elif kind == "dialogue.turn":
        yield from _turn(event, shorten)
    elif kind not in _SILENT:
        yield from _block(event, *_head_and_text(kind, event), shorten)


def _spoken(event: JSONObject) -> tuple[str, str]:
    """Who speaks in an event, and the words; none in most."""
    kind, who, content = event.get("e"), "agent", None
    if kind == "model.response":
        who, content = str(event.get("role")), message_of_response(event).get("content")
    elif kind in ("dialogue.reply", "harness.exit"):
        content = event.get("answer")
    elif kind == "dialogue.turn" and len(messages := _objects(event.get("messages"))) == 1:
        who, content = "user", messages[0].get("content")
    text = _content(content)
    return who, text if isinstance(text, str) else ""


def _told_already(event: JSONObject, shorten: _Shorten) -> Iterator[str]:
    """What else there is to an event whose words stand above."""
    if event.get("e") == "dialogue.turn":
        yield from _block(event, f"turn {event.get('turn')}", None, shorten)
        yield from _new_tools(event)
    elif event.get("e") == "harness.exit":
        yield from _claim({**event, "answer": None}, shorten)


def _turn(event: JSONObject, shorten: _Shorten) -> Iterator[str]:
    for message in _objects(event.get("messages")):
        head = f"turn {event.get('turn')}, {message.get('role')}"
        yield from _block(event, head, _content(message.get("content")), shorten)
    yield from _new_tools(event)


def _new_tools(event: JSONObject) -> Iterator[str]:
    tools = event.get("tools")
    if isinstance(tools, list):
        yield from _block(event, "tools from now on", ", ".join(map(str, tools)), _Shorten(False))


def _head_and_text(kind: str, event: JSONObject) -> tuple[str, JSONValue]:
    """What stands beside the time, and what below."""
    if kind == "model.error":
        return f"{event.get('role')}: model error", event.get("message")
    if kind == "model.retry":
        return f"{event.get('role')}: tried again after {event.get('wait_s')} s", event.get("message")
    if kind == "model.paused":
        return f"{event.get('role')}: held back for {event.get('wait_s')} s", event.get("message")
    if kind == "model.replayed":
        return f"{event.get('role')}: replayed", f"call {event.get('then')} of {event.get('source')}"
    if kind == "model.diverged":
        return f"{event.get('role')}: not on the tape", f"{event.get('what')}\n{event.get('difference') or ''}".rstrip()
    if kind == "tool.call":
        return f"call {event.get('call')}: {event.get('tool')}", event.get("raw", event.get("arguments"))
    if kind == "tool.result":
        failed = ", an error" if event.get("error") else ""
        return f"result {event.get('call')}{failed}", _content(event.get("content"))
    if kind in ("env.call", "env.result"):
        return _of_environment(kind, event)
    if kind == "dialogue.reply":
        return "the agent says", event.get("answer")
    if kind == "dialogue.end":
        return "the dialogue ends", " ".join(str(v) for k in ("reason", "limit", "fault") if (v := event.get(k)))
    if kind == "exit":
        return "exit", " ".join(str(v) for v in (event.get("kind"), event.get("limit"), event.get("detail")) if v)
    return kind, {k: v for k, v in event.items() if k not in ("t", "e")}


def _of_environment(kind: str, event: JSONObject) -> tuple[str, JSONValue]:
    """What the environment did itself, such as a simulated user's own calls."""
    who = event.get("requestor") or event.get("source") or "the environment"
    if kind == "env.call":
        return f"{who} calls {event.get('tool')}", event.get("arguments")
    failed = ", an error" if event.get("error") else ""
    return f"result for {who}{failed}", _content(event.get("content"))


def _claim(event: JSONObject, shorten: _Shorten) -> Iterator[str]:
    """The answer, and what the harness says of itself."""
    if event.get("answer") is not None:
        yield from _block(event, "answer", event.get("answer"), shorten)
    evidence = event.get("evidence")
    if isinstance(evidence, dict) and any(v is not None for v in evidence.values()):
        yield from _block(event, "the harness says", evidence, shorten)


def _response(event: JSONObject, shorten: _Shorten) -> Iterator[str]:
    """What a model said, and the calls it asked for; those that are made stand below as calls."""
    message = message_of_response(event)
    said = _content(message.get("content"))
    refusal = message.get("refusal")
    calls = [c.name for c in calls_of_response(event)]
    role = str(event.get("role"))
    if said or not calls:
        yield from _block(event, role, said or refusal or "", shorten)
    if calls:
        yield from _block(event, f"{role} asks for", ", ".join(calls), shorten)


def _content(content: JSONValue) -> JSONValue:
    """The text of a message or result; parts that are no text are named."""
    if not isinstance(content, list):
        return content
    return "\n".join(str(p["text"]) if "text" in p else f"[{p.get('type', 'part')}]" for p in _objects(content))


def _objects(value: JSONValue) -> list[JSONObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _block(event: JSONObject, head: str, value: JSONValue, shorten: _Shorten) -> Iterator[str]:
    """A time, a head, and the text: beside it if it is short, else below."""
    t = event.get("t")
    start = f"{t if isinstance(t, (int, float)) else 0.0:8.3f}  {head}"
    text = shorten("" if value is None else value)
    if "\n" not in text and len(text) + len(start) < 100:
        yield f"{start}: {text}" if text else start
        return
    yield start
    yield from (f"          {line}" for line in text.split("\n"))


def _verdict(attempt: Attempt, grading: Grading | None, shorten: _Shorten) -> Iterator[str]:
    if attempt.void is not None:
        yield f"void     {attempt.void.kind}: {attempt.void.message} (counts neither for nor against)"
        return
    if grading is None:
        yield "verdict  none yet: `evalcore resume` grades what was executed"
        return
    verdict = grading.verdict
    yield f"verdict  {verdict.outcome}" + ("" if verdict.score is None else f", score {verdict.score:g}")
    if grading.error:
        yield f"error    {grading.error}"
    if verdict.harm is not None:
        yield f"harm     {'yes' if verdict.harm else 'no'}"
    for name, value in verdict.views.items():
        yield f"view     {name}: {'yes' if value else 'no'}"
    if verdict.flags:
        yield f"flags    {', '.join(verdict.flags)}"
    if verdict.details:
        yield f"details  {shorten(verdict.details)}"
