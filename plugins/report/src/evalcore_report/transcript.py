"""One trial as people read it: what was said, called and answered, how it ended, and what the grader made of it.

Everything in it was written by an agent, a model, a tool or a dataset: it is shown as text and as nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from attrs import frozen

from evalcore.report.words import plural, seconds
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.redaction import Redaction
from evalcore.values.trace import TraceReader
from evalcore_report.markup import Html, Markup
from evalcore_report.trials import WORDS, Trial

Kind: TypeAlias = Literal["told", "said", "call", "result", "failed", "other", "end"]

_SILENT: Final = frozenset({"model.request", "deliverable", "evidence"})  # what they hold stands in other steps
_MOST_STEPS: Final = 2_000


@frozen
class Caps:
    """How much of a trial is shown, in characters: of one text, and of all of them."""

    text: int = 20_000
    trial: int = 2_000_000


@frozen
class Step:
    """One thing that happened: when (seconds since the attempt began), who or what, and the text."""

    at: float | None
    head: str
    text: str
    kind: Kind


# ── from events to steps ─────────────────────────────────────────────────────────────────────────────────────────────


def steps(reader: TraceReader, redaction: Redaction) -> Iterator[Step]:
    """The steps of a trace, in order, without what the redaction takes out.

    In a dialogue what somebody says is recorded twice, where it was said and where it was heard: it is shown once.
    """
    dialogue, said = False, ""
    for event in reader.events():
        dialogue = dialogue or event.get("e") == "dialogue.turn"
        for step in _steps(redaction.event(event)):
            again = dialogue and event.get("e") != "model.response" and step.text and step.text == said
            if step.kind in ("said", "told", "end") and step.text:
                said = step.text
            if not again:
                yield step


def _steps(event: JSONObject) -> Iterator[Step]:
    kind = str(event.get("e"))
    if kind == "trial.start":
        yield from _told(event)
    elif kind == "model.response":
        yield from _response(event)
    elif kind == "harness.exit":
        yield from _claim(event)
    elif kind == "dialogue.turn":
        yield from _turn(event)
    elif kind not in _SILENT:
        yield _other(kind, event)


def _told(event: JSONObject) -> Iterator[Step]:
    messages = event.get("messages")
    if isinstance(messages, str):
        yield Step(_at(event), "the task", messages, "told")
    for message in _objects(messages):
        yield Step(_at(event), str(message.get("role")), _text(message.get("content")), "told")


def _turn(event: JSONObject) -> Iterator[Step]:
    messages, turn = event.get("messages"), f"turn {event.get('turn')}"
    if isinstance(messages, str):
        yield Step(_at(event), turn, messages, "told")
    for message in _objects(messages):
        yield Step(_at(event), f"{message.get('role')}, {turn}", _text(message.get("content")), "told")
    tools = event.get("tools")
    if isinstance(tools, list):
        yield Step(_at(event), "tools from now on", ", ".join(map(str, tools)), "other")


def _response(event: JSONObject) -> Iterator[Step]:
    """What a model said, and the calls it asked for; those that are made stand below as calls."""
    role = str(event.get("role"))
    body = event.get("body")
    if isinstance(body, str):
        yield Step(_at(event), role, body, "said")
        return
    said, calls = spoken(body)
    if said or not calls:
        yield Step(_at(event), role, said, "said")
    if calls:
        yield Step(_at(event), f"{role} asks for", ", ".join(calls), "said")


def spoken(body: JSONValue) -> tuple[str, list[str]]:
    """The text of a model's response in any of the dialects, and the names of the tools it asked for."""
    if not isinstance(body, dict):
        return "", []
    texts, calls = [], []
    for choice in _objects(body.get("choices"))[:1]:  # openai-chat
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        texts += [_text(message.get("content")), _text(message.get("refusal"))]
        calls += [_name(call.get("function")) for call in _objects(message.get("tool_calls"))]
    for block in _objects(body.get("content")):  # anthropic-messages
        texts.append(_text(block.get("text")) or _text(block.get("thinking")))
        calls += [_name(block)] if block.get("type") == "tool_use" else []
    for item in _objects(body.get("output")):  # openai-responses
        texts.append(_text(item.get("content")))
        calls += [_name(item)] if item.get("type") == "function_call" else []
    return "\n".join(text for text in texts if text), calls


def _claim(event: JSONObject) -> Iterator[Step]:
    """The answer, and what the harness says of itself."""
    if event.get("answer") is not None:
        yield Step(_at(event), "answer", _text(event.get("answer")), "end")
    evidence = event.get("evidence")
    if isinstance(evidence, str) or (isinstance(evidence, dict) and any(v is not None for v in evidence.values())):
        yield Step(_at(event), "the harness says", _text(evidence), "other")


def _other(kind: str, event: JSONObject) -> Step:
    at = _at(event)
    if kind == "tool.call":
        arguments = event.get("raw", event.get("arguments"))
        return Step(at, f"calls {event.get('tool')}", _text(arguments), "call")
    if kind == "tool.result":
        failed = bool(event.get("error"))
        return Step(at, "result" + (", an error" if failed else ""), _content(event), "failed" if failed else "result")
    if kind == "model.error":
        return Step(at, f"{event.get('role')}: model error", _text(event.get("message")), "failed")
    if kind in ("env.call", "env.result"):
        return _of_environment(kind, event)
    if kind == "dialogue.reply":
        return Step(at, "the agent says", _text(event.get("answer")), "said")
    if kind == "dialogue.end":
        return Step(
            at,
            "the dialogue ends",
            " ".join(text for k in ("reason", "limit", "fault") if (text := _text(event.get(k)))),
            "end",
        )
    if kind in ("model.retry", "model.paused"):
        return Step(at, f"{event.get('role')}: {kind.removeprefix('model.')}", _text(event.get("message")), "other")
    if kind == "exit":
        parts = (event.get("kind"), event.get("limit"), event.get("detail"))
        return Step(at, "exit", ": ".join(str(part) for part in parts if part), "end")
    rest = {k: v for k, v in event.items() if k not in ("t", "e")}
    return Step(at, kind, _text(rest), "other")


def _of_environment(kind: str, event: JSONObject) -> Step:
    """What the environment did itself, such as a simulated user's own calls."""
    who = event.get("requestor") or event.get("source") or "the environment"
    if kind == "env.call":
        return Step(_at(event), f"{who} calls {event.get('tool')}", _text(event.get("arguments")), "call")
    failed = bool(event.get("error"))
    head = f"result for {who}" + (", an error" if failed else "")
    return Step(_at(event), head, _content(event), "failed" if failed else "result")


def _content(event: JSONObject) -> str:
    text = _text(event.get("content"))
    return text or _text(event.get("structured"))


def _at(event: JSONObject) -> float | None:
    t = event.get("t")
    return float(t) if isinstance(t, (int, float)) else None


def _text(value: JSONValue) -> str:
    """A content as text: a text as it is, parts one below the other, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        return "\n".join(_part(part) for part in _objects(value))
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return exact_text(value)


def _part(part: JSONObject) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else f"[{part['type']}]"


def _name(value: JSONValue) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else "?"


def _objects(value: JSONValue) -> list[JSONObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# ── from steps to a page ─────────────────────────────────────────────────────────────────────────────────────────────


def transcript(h: Html, trial: Trial, reader: TraceReader | None, redaction: Redaction, caps: Caps = Caps()) -> Markup:
    """A trial: its facts, its steps and its verdict. Without a reader, the trace is gone."""
    parts = [_facts(h, trial)]
    if reader is None:
        parts.append(h("p", "The trace of this trial is gone.", class_="quiet"))
    else:
        parts.append(h("ol", _listed(h, reader, redaction, caps), class_="steps"))
    parts.append(_verdict(h, trial, redaction, caps))
    return h.join(parts)


def _listed(h: Html, reader: TraceReader, redaction: Redaction, caps: Caps) -> Iterator[Markup]:
    left = caps.trial
    for number, step in enumerate(steps(reader, redaction)):
        if left <= 0 or number >= _MOST_STEPS:
            yield h(
                "li", "The rest is left out here: `evalcore trace` and `evalcore view` show it.", class_="step quiet"
            )
            return
        shown = shortened(step.text, min(caps.text, left))
        left -= len(shown) + len(step.head)
        at = "" if step.at is None else f"{step.at:.2f} s"
        head = h("p", h("span", step.head, class_="who"), h("span", at, class_="at"), class_="step-head")
        body = h("pre", shown) if shown else None
        yield h("li", head, body, class_=f"step step-{step.kind}")


def shortened(text: str, most: int) -> str:
    """The first characters of a text, and how many more there are."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more characters"


def _facts(h: Html, trial: Trial) -> Markup:
    a = trial.attempt
    used = a.usage.get("agent")
    facts = [
        ("attempt", a.id),
        ("began", a.started),
        ("took", seconds(a.wall_s)),
        ("provenance", f"{a.provenance}, isolation {a.isolation}"),
    ]
    if used is not None and used.calls:
        facts.append(("model", f"{plural(used.calls, 'call')}, {used.input:,} tokens in, {used.output:,} out"))
    facts.append(("tools", f"{plural(a.tool_calls, 'call')}, {a.tool_errors:,} failed"))
    return h("dl", [h("div", h("dt", name), h("dd", value)) for name, value in facts], class_="facts")


def _verdict(h: Html, trial: Trial, redaction: Redaction, caps: Caps) -> Markup:
    """What the grader made of it."""
    a, grading = trial.attempt, trial.grading
    lines: list[tuple[str, str]] = []
    if a.void is not None:
        message = _text(redaction.content(a.void.message))
        lines.append(("void", f"{a.void.kind}: {message} (counts neither for nor against)"))
    elif grading is None:
        lines.append(("verdict", "none yet: `evalcore resume` grades what was executed"))
    else:
        verdict = grading.verdict
        score = "" if verdict.score is None else f", score {verdict.score:g}"
        lines.append(("verdict", WORDS.get(verdict.outcome, verdict.outcome) + score))
        if grading.error:
            lines.append(("error", _text(redaction.content(grading.error))))
        if verdict.harm is not None:
            lines.append(("harm", "yes" if verdict.harm else "no"))
        lines += [(name, "yes" if value else "no") for name, value in verdict.views.items()]
        if verdict.flags:
            lines.append(("flags", ", ".join(verdict.flags)))
        if verdict.details:
            lines.append(("details", shortened(_text(redaction.content(verdict.details)), caps.text)))
    rows = [h("div", h("dt", name), h("dd", h("pre", text) if name == "details" else text)) for name, text in lines]
    return h("dl", rows, class_=f"verdict outcome-{trial.outcome}")
