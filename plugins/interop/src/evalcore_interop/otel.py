"""Trials as OpenTelemetry spans, by the GenAI semantic conventions: OTLP's JSON, one request a line.

A trial is a trace: `invoke_agent` above, a `chat` span for each model call, an `execute_tool` span for each tool call.
What was said is not in them, only how long it took, what it used and how it ended; so they can go to any collector.
Identifiers are made of the attempt's own, so that a run written twice is the same spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evalcore.contracts import Services
from evalcore.engine.store import write_durably
from evalcore.values.descriptors import RendererInfo
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.redaction import RedactionRules
from evalcore.values.task import ROLES, Role
from evalcore.values.usage import Usage, usage_of
from evalcore_interop.trials import Trial, Trials, at

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2


class Spans:
    """Renderer `otel`."""

    def __init__(self, services: Services | None = None, info: RendererInfo | None = None) -> None:
        pass

    def render(
        self,
        run: Path,
        out: Path,
        grading: str | None = None,
        public: bool = False,
        rules: RedactionRules | None = None,
    ) -> Sequence[Path]:
        """Write `spans.jsonl` below `out`, a line for each trial. Raises ConfigError if there is no such run."""
        trials = Trials(run, grading, public=public, rules=rules)
        resource = {"service.name": "evalcore", "service.version": str(trials.stamp.versions.get("evalcore", ""))}
        lines = [trials.written(_request(resource, list(spans(trial)), trials)) for trial in trials]
        out.mkdir(parents=True, exist_ok=True)
        path = out / "spans.jsonl"
        write_durably(path, b"".join(line + b"\n" for line in lines))
        return [path]


def _request(resource: dict[str, str], found: list[JSONObject], trials: Trials) -> JSONObject:
    scope: JSONObject = {"name": "evalcore", "version": resource["service.version"]}
    named = {**resource, "evalcore.run": trials.stamp.run, "evalcore.study": trials.stamp.study_name}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(named)},
                "scopeSpans": [{"scope": scope, "spans": list(found), "schemaUrl": SCHEMA_URL}],
            }
        ]
    }


def spans(trial: Trial) -> Iterator[JSONObject]:
    """The spans of one attempt, the outermost first."""
    attempt = trial.attempt
    root = _identifier(attempt.id, "root", 8)
    verdict = trial.grading.verdict if trial.grading is not None else None
    usage = attempt.usage.get("agent")
    told = usage is not None and not usage.unreported
    facts: dict[str, JSONValue] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": trial.arm.arm.harness,
        "gen_ai.agent.version": trial.arm.harness_version or None,
        "gen_ai.request.model": _model(trial),
        "gen_ai.provider.name": _provider(trial),
        "gen_ai.conversation.id": attempt.id,
        "gen_ai.usage.input_tokens": usage.input if usage is not None and told else None,
        "gen_ai.usage.output_tokens": usage.output if usage is not None and told else None,
        "evalcore.benchmark": attempt.key.benchmark,
        "evalcore.task": attempt.key.task,
        "evalcore.repeat": attempt.key.repeat,
        "evalcore.arm": trial.arm.arm.label,
        "evalcore.exit": None if attempt.exit is None else attempt.exit.kind,
        "evalcore.outcome": None if verdict is None else verdict.outcome,
        "evalcore.harm": None if verdict is None else verdict.harm,
        "evalcore.cost_usd": None if usage is None else usage.cost_usd,
        "evalcore.provenance": attempt.provenance,
        "evalcore.isolation": attempt.isolation,
    }
    void = attempt.void
    if void is not None:
        facts["error.type"] = void.kind
    inner = list(_calls(trial, root))
    outer = _span(trial, root, "", f"invoke_agent {trial.arm.arm.harness}", 0.0, attempt.wall_s, facts, _INTERNAL)
    outer["endTimeUnixNano"] = max((str(span["endTimeUnixNano"]) for span in (outer, *inner)), key=int)
    yield outer
    yield from inner


def _calls(trial: Trial, root: str) -> Iterator[JSONObject]:
    made: dict[JSONValue, tuple[float, str]] = {}
    for event in trial.trace.events():
        kind, t = event.get("e"), _seconds(event.get("t"))
        if kind == "model.response":
            yield _chat(trial, root, event, t)
        elif kind == "model.error":
            facts: dict[str, JSONValue] = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": _model(trial),
                "error.type": event.get("kind"),
            }
            name = f"chat-error-{event.get('role')}-{event.get('call')}"
            yield _span(trial, _identifier(trial.attempt.id, name, 8), root, "chat", t, t, facts, _CLIENT)
        elif kind == "tool.call":
            made[event.get("call")] = (t, str(event.get("tool")))
        elif kind == "tool.result" and event.get("call") in made:
            began, tool = made.pop(event.get("call"))
            facts = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
            facts["gen_ai.tool.call.id"] = str(event.get("call"))
            if event.get("error") is True:
                facts["error.type"] = "tool_error"
            identifier = _identifier(trial.attempt.id, f"tool-{event.get('call')}", 8)
            yield _span(trial, identifier, root, f"execute_tool {tool}", began, t, facts, _INTERNAL)


def _chat(trial: Trial, root: str, event: JSONObject, t: float) -> JSONObject:
    body = event.get("body")
    usage = usage_of(body, event.get("dialect")) if isinstance(body, dict) else Usage(unreported=1)
    role: Role = next((r for r in ROLES if r == event.get("role")), "agent")
    model = trial.model_of(role) or ""
    facts: dict[str, JSONValue] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model.partition("/")[2] or model or None,
        "gen_ai.provider.name": model.partition("/")[0] or None,
        "gen_ai.response.model": body.get("model") if isinstance(body, dict) else None,
        "gen_ai.response.id": body.get("id") if isinstance(body, dict) else None,
        "gen_ai.usage.input_tokens": None if usage.unreported else usage.input,
        "gen_ai.usage.output_tokens": None if usage.unreported else usage.output,
        "evalcore.role": role,
    }
    identifier = _identifier(trial.attempt.id, f"chat-{role}-{event.get('call')}", 8)
    return _span(
        trial,
        identifier,
        root,
        f"chat {model.partition('/')[2] or model}".strip(),
        t - _seconds(event.get("wall_s")),
        t,
        facts,
        _CLIENT,
    )


def _span(
    trial: Trial, identifier: str, parent: str, name: str, began: float, ended: float, facts: dict[str, JSONValue],
    kind: int,
) -> JSONObject:  # fmt: skip
    started = trial.attempt.started
    span: JSONObject = {
        "traceId": _identifier(trial.attempt.id, "trace", 16),
        "spanId": identifier,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": _nanoseconds(started, max(began, 0.0)),
        "endTimeUnixNano": _nanoseconds(started, max(ended, began, 0.0)),
        "attributes": _attributes(facts),
    }
    if parent:
        span["parentSpanId"] = parent
    if "error.type" in facts:
        span["status"] = {"code": _ERROR}
    return span


def _model(trial: Trial) -> str | None:
    model = trial.arm.arm.model
    return None if model is None else model.partition("/")[2]


def _provider(trial: Trial) -> str | None:
    model = trial.arm.arm.model
    return None if model is None else model.partition("/")[0]


def _attributes(facts: dict[str, JSONValue] | dict[str, str]) -> list[JSONValue]:
    return [{"key": name, "value": _value(value)} for name, value in facts.items() if value is not None]


def _value(value: JSONValue) -> JSONObject:
    """As OTLP's JSON has it: integers of 64 bits are texts."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else dumps(value).decode()}


def _identifier(attempt: str, what: str, size: int) -> str:
    return hashlib.sha256(f"{attempt}\0{what}".encode()).hexdigest()[: 2 * size]


def _nanoseconds(started: str, seconds: float) -> str:
    moment = at(started, seconds)
    return str(int(moment.timestamp()) * 10**9 + moment.microsecond * 1000)


def _seconds(value: JSONValue) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
