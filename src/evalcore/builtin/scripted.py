"""Provider `scripted`: a model whose every answer is written down. Offline, keyless, exact to repeat.

A playbook is TOML with `[[reply]]` tables, or JSONL with one reply a line. For each request the first reply that
matches is given. All fields are optional:

    [[reply]]
    match = { task = "simple_*", role = "agent", call = 1, repeat = 2, attempt = 1, contains = "sun", tool = "get_*" }
    text = "Let me look."
    tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }]
    usage = { input = 120, output = 15, cost_usd = 0.0004 }
    finish = "stop"
    refusal = "I would rather not."
    delay_s = 0.2
    error = { status = 503, message = "overloaded", tries = 2, retry_after_s = 1.5 }

`task` and `tool` are shell patterns; `contains` is looked for in the last message; `tool` must be among those offered.
`arguments` may be a string, sent as it stands: that is how a malformed call is written. An error with `tries` lasts for
that many tries of a call, and the gateway's next one is answered; without, it lasts, and is not tried again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from attrs import Factory, field, frozen, validators

from evalcore.contracts import CallContext, Services
from evalcore.errors import AgentError, ConfigError, FatalInfraError, Fault, InfraError, TransientError
from evalcore.values.convert import from_toml, structure
from evalcore.values.json import JSONObject, JSONValue, exact_text, parse

_MAX_BYTES: Final = 256 << 20
_FATAL: Final = frozenset({401, 402, 403})


@frozen
class Match:
    """When a reply applies; None matches everything."""

    task: str | None = None
    role: str | None = None
    call: int | None = None
    repeat: int | None = None
    attempt: int | None = None
    contains: str | None = None
    tool: str | None = None


@frozen
class ScriptedCall:
    """A tool call; a string of arguments is sent as it stands."""

    name: str
    arguments: JSONValue = Factory(dict)
    text: str = field(init=False, repr=False)  # encoded once: a playbook's reply may be given a million times

    def __attrs_post_init__(self) -> None:
        text = self.arguments if isinstance(self.arguments, str) else exact_text(self.arguments)
        object.__setattr__(self, "text", text)


@frozen
class ScriptedUsage:
    """What the reply reports as used."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    reasoning: int = 0
    cost_usd: float | None = None


@frozen
class ScriptedError:
    """A failure of the provider: 401, 402 and 403 are fatal, 400 is the request's own fault, the rest passing ones."""

    status: int
    message: str = "scripted failure"
    tries: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    retry_after_s: float | None = field(default=None, validator=validators.optional(validators.ge(0)))

    def lasts(self, number: int) -> bool:
        """Whether this try of a call still meets it."""
        return self.tries is None or number <= self.tries


@frozen
class Reply:
    """One scripted answer."""

    match: Match = Match()
    text: str | None = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage | None = ScriptedUsage()
    finish: str | None = None
    refusal: str | None = None
    delay_s: float = field(default=0.0, validator=validators.ge(0))
    error: ScriptedError | None = None


@frozen
class Playbook:
    """All replies, in order of precedence."""

    reply: tuple[Reply, ...]


class ScriptedProvider:
    """Serves `scripted/PATH`; playbooks are read once."""

    dialect = "openai-chat"

    def __init__(self, services: Services | None = None, info: object = None) -> None:
        self._base = services.base if services else Path()
        self._playbooks: dict[str, Playbook] = {}

    def content(self, model: str) -> Mapping[str, str]:
        """The playbook's sha256: an edited playbook is another arm. Raises ConfigError."""
        self._read(model)
        return {"playbook": hashlib.sha256((self._base / model).read_bytes()).hexdigest()}

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        """The first reply that matches. Raises InfraError as scripted, ConfigError if none matches."""
        playbook = self._playbooks.get(model) or self._read(model)
        reply = next((r for r in playbook.reply if _matches(r.match, body, context)), None)
        if reply is None:
            raise ConfigError(f"playbook {model}: no reply matches call {context.call} of {context.key}")
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.error is not None and reply.error.lasts(context.tries):
            raise _failure(reply.error)
        return _body(reply, model, context)

    def _read(self, model: str) -> Playbook:
        self._playbooks[model] = read_playbook(self._base / model)
        return self._playbooks[model]

    async def close(self) -> None:
        """Nothing to release."""


def read_playbook(path: Path) -> Playbook:
    """A playbook file, strictly. Raises ConfigError with every fault and its place."""
    if not path.is_file():
        raise ConfigError(f"no playbook at {path}", hint="`scripted/PATH` names a TOML or JSONL file")
    if path.stat().st_size > _MAX_BYTES:
        raise ConfigError(f"playbook {path} is larger than {_MAX_BYTES >> 20} MiB")
    if path.suffix == ".jsonl":
        return Playbook(tuple(_reply_lines(path)))
    return from_toml(path, Playbook)


def _reply_lines(path: Path) -> list[Reply]:
    replies: list[Reply] = []
    faults: list[Fault] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            replies.append(structure(parse(line), Reply, where=f"line {number}"))
        except ConfigError as error:
            faults += error.faults
        except ValueError as error:
            faults.append(Fault(f"line {number}", f"no JSON: {error}"))
    if faults:
        raise ConfigError(f"{path} is no playbook", faults=faults)
    return replies


def _matches(match: Match, body: JSONObject, context: CallContext) -> bool:
    if match.call is not None and match.call != context.call:
        return False
    if match.task is not None and not fnmatchcase(context.key.task, match.task):
        return False
    if match.role is not None and match.role != context.role:
        return False
    if match.repeat is not None and match.repeat != context.key.repeat:
        return False
    if match.attempt is not None and match.attempt != context.attempt:
        return False
    if match.contains is not None and match.contains not in _last_text(body):
        return False
    return match.tool is None or any(fnmatchcase(name, match.tool) for name in _offered(body))


def _last_text(body: JSONObject) -> str:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    return content if isinstance(content, str) else exact_text(content)


def _offered(body: JSONObject) -> list[str]:
    tools = body.get("tools")
    functions = [t.get("function") for t in tools if isinstance(t, dict)] if isinstance(tools, list) else []
    return [str(f.get("name", "")) for f in functions if isinstance(f, dict)]


def _failure(error: ScriptedError) -> Exception:
    text = f"{error.status} {error.message}"
    if error.status in _FATAL:
        return FatalInfraError(text)
    if error.status == 400:
        return AgentError(text)
    if error.tries is None:
        return InfraError(text)
    return TransientError(text, wait_s=error.retry_after_s, status=error.status)


def _body(reply: Reply, model: str, context: CallContext) -> JSONObject:
    """The reply as a Chat Completions response."""
    message: JSONObject = {"role": "assistant"}
    if reply.text is not None or not reply.tool_calls:
        message["content"] = reply.text
    if reply.tool_calls:
        message["tool_calls"] = [_call(c, i, context) for i, c in enumerate(reply.tool_calls)]
    if reply.refusal is not None:
        message["refusal"] = reply.refusal
    finish = reply.finish or ("tool_calls" if reply.tool_calls else "stop")
    whole: JSONObject = {
        "id": f"scripted-{context.call}",
        "object": "chat.completion",
        "model": f"scripted/{model}",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if reply.usage is not None:
        whole["usage"] = _usage(reply.usage)
    return whole


def _call(call: ScriptedCall, index: int, context: CallContext) -> JSONObject:
    return {
        "id": f"call_{context.call}_{index}",
        "type": "function",
        "function": {"name": call.name, "arguments": call.text},
    }


def _usage(usage: ScriptedUsage) -> JSONObject:
    value: JSONObject = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    if usage.cache_read:
        value["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    if usage.reasoning:
        value["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if usage.cost_usd is not None:
        value["cost"] = usage.cost_usd
    return value
