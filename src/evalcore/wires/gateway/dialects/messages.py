"""Anthropic Messages, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, cast

from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.usage import Usage, usage_from_messages
from evalcore.wires.gateway.dialects.fields import sift
from evalcore.wires.gateway.dialects.neutral import (
    Answer,
    Choice,
    File,
    Format,
    Image,
    Notes,
    Part,
    Reasoning,
    Refusal,
    Request,
    Speaker,
    Stop,
    Text,
    Tool,
    ToolOutput,
    ToolUse,
    Turn,
    arguments_of,
    data_url,
    input_of,
    joined,
    of_data_url,
)

DEFAULT_BOUND: Final = (
    32_000  # output tokens where nobody set a bound: the dialect demands one, and its models give that
)

_STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tools",
    "refusal": "refusal",
    "pause_turn": "pause",
}
_REASONS: Final[Mapping[Stop, str]] = {
    "end": "end_turn",
    "length": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tools": "tool_use",
    "refusal": "refusal",
    "filter": "refusal",
    "pause": "pause_turn",
}
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_CHOICES_BACK: Final = {"auto": "auto", "required": "any", "none": "none"}
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_request(body: JSONObject, notes: Notes) -> Request:
    """What a Messages request says. Raises RefusedRequest."""
    said = sift(body, notes)
    turns = [_turn(m, notes) for m in notes.objects(said.get("messages"), "messages")]
    system = tuple(_blocks(said["system"], "system", notes)) if "system" in said else ()
    if system:
        turns.insert(0, Turn("system", system))
    config = notes.object(said.get("output_config", {}), "output_config")
    notes.drop_others(config, ("effort", "format"), "output_config")
    choice = notes.object(said["tool_choice"], "tool_choice") if "tool_choice" in said else None
    serial = choice.get("disable_parallel_tool_use") if choice else None
    serial = notes.flag(serial, "tool_choice.disable_parallel_tool_use")
    return Request(
        turns=tuple(turns),
        tools=tuple(_tool(t, notes) for t in notes.objects(said.get("tools", []), "tools")),
        choice=None if choice is None else _choice(choice, notes),
        parallel=None if serial is None else not serial,
        bound=notes.whole(said.get("max_tokens"), "max_tokens"),
        temperature=said.get("temperature"),
        top_p=said.get("top_p"),
        stop=notes.texts(said.get("stop_sequences", []), "stop_sequences"),
        effort=notes.word(config.get("effort"), "output_config.effort"),
        format=_format(config.get("format"), notes),
    )


def _turn(message: JSONObject, notes: Notes) -> Turn:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise notes.malformed("messages[].role", "user, assistant or system")
    notes.drop_others(message, ("role", "content"), "messages[]")
    return Turn(cast(Speaker, role), tuple(_blocks(message.get("content"), "messages[].content", notes)))


def _blocks(content: JSONValue, where: str, notes: Notes) -> Iterator[Part]:
    if isinstance(content, str):
        yield Text(content)
        return
    for block in notes.objects(content, where):
        yield _block(block, f"{where}[]", notes)


def _block(block: JSONObject, where: str, notes: Notes) -> Part:
    if block.get("cache_control") is not None:
        notes.drop("cache_control")
    kind = block.get("type")
    if kind == "text":
        notes.drop_others(block, ("type", "text", "cache_control"), where)
        return Text(notes.text(block.get("text"), f"{where}.text"))
    if kind == "image":
        return Image(_source(block, where, notes))
    if kind == "document":
        return _document(block, where, notes)
    if kind == "thinking":
        seal = block.get("signature")
        text = notes.text(block.get("thinking"), f"{where}.thinking")
        return Reasoning(text, seal if isinstance(seal, str) and seal else None)
    if kind == "redacted_thinking":
        return Reasoning(seal=notes.text(block.get("data"), f"{where}.data"), redacted=True)
    if kind == "tool_use":
        notes.drop_others(block, ("type", "id", "name", "input", "cache_control"), where)
        arguments = arguments_of(notes.object(block.get("input"), f"{where}.input"))
        return ToolUse(
            notes.text(block.get("id"), f"{where}.id"), notes.text(block.get("name"), f"{where}.name"), arguments
        )
    if kind == "tool_result":
        return _result(block, where, notes)
    raise notes.refuse(
        f"{where}.type={kind}", "text, images, documents, tools' calls and results, thinking are translated"
    )


def _result(block: JSONObject, where: str, notes: Notes) -> ToolOutput:
    notes.drop_others(block, ("type", "tool_use_id", "content", "is_error", "cache_control"), where)
    content = block.get("content")
    parts = tuple(_blocks(content, f"{where}.content", notes)) if content is not None else ()
    kept = tuple(p for p in parts if isinstance(p, (Text, Image, File)))
    if len(kept) < len(parts):
        raise notes.refuse(f"{where}.content", "a result holds text, images and documents")
    return ToolOutput(notes.text(block.get("tool_use_id"), f"{where}.tool_use_id"), kept, block.get("is_error") is True)


def _source(block: JSONObject, where: str, notes: Notes) -> str:
    source = notes.object(block.get("source"), f"{where}.source")
    if source.get("type") == "base64":
        media = notes.text(source.get("media_type"), f"{where}.source.media_type")
        return data_url(media, notes.text(source.get("data"), f"{where}.source.data"))
    if source.get("type") == "url":
        return notes.text(source.get("url"), f"{where}.source.url")
    raise notes.refuse(f"{where}.source.type={source.get('type')}", "the file is kept by the provider")


def _document(block: JSONObject, where: str, notes: Notes) -> Text | File:
    notes.drop_others(block, ("type", "source", "title", "cache_control"), where)
    source = notes.object(block.get("source"), f"{where}.source")
    title = block.get("title")
    if source.get("type") == "text":
        text = notes.text(source.get("data"), f"{where}.source.data")
        return Text(f"{title}\n\n{text}" if isinstance(title, str) else text)
    return File(_source(block, where, notes), title if isinstance(title, str) else None)


def _tool(tool: JSONObject, notes: Notes) -> Tool:
    if tool.get("type", "custom") != "custom" or "input_schema" not in tool:
        raise notes.refuse(f"tools[].type={tool.get('type')}", "the provider's own tool, past the tool wire")
    if tool.get("cache_control") is not None:
        notes.drop("cache_control")
    notes.drop_others(tool, ("type", "name", "description", "input_schema", "strict", "cache_control"), "tools[]")
    description = tool.get("description")
    return Tool(
        notes.text(tool.get("name"), "tools[].name"),
        None if description is None else notes.text(description, "tools[].description"),
        notes.object(tool["input_schema"], "tools[].input_schema"),
        notes.flag(tool.get("strict"), "tools[].strict"),
    )


def _choice(choice: JSONObject, notes: Notes) -> Choice:
    kind = choice.get("type")
    if kind == "tool":
        return Choice("named", notes.text(choice.get("name"), "tool_choice.name"))
    if kind not in ("auto", "any", "none"):
        raise notes.malformed("tool_choice.type", "auto, any, tool or none")
    return Choice(_CHOICES[kind])  # type: ignore[arg-type]


def _format(value: JSONValue, notes: Notes) -> Format | None:
    if value is None:
        return None
    form = notes.object(value, "output_config.format")
    if form.get("type") != "json_schema":
        raise notes.malformed("output_config.format.type", "json_schema")
    return Format(notes.object(form.get("schema"), "output_config.format.schema"), strict=True)


def write_request(request: Request, notes: Notes) -> JSONObject:
    """The request as Messages. Raises RefusedRequest for what they cannot say."""
    if request.bound is None:
        notes.added["max_tokens"] = DEFAULT_BOUND
    leading = tuple(takewhile(lambda turn: turn.speaker in ("system", "developer"), request.turns))
    body: JSONObject = {
        "max_tokens": DEFAULT_BOUND if request.bound is None else request.bound,
        "messages": list(_messages(request.turns[len(leading) :], notes)),
    }
    if system := [part for turn in leading for part in turn.parts]:
        plain = len(system) == 1 and isinstance(system[0], Text)
        body["system"] = joined(system, Text) if plain else [_block_json(p, notes) for p in system]
    if request.tools:
        body["tools"] = [_tool_json(tool) for tool in request.tools]
    if (choice := _choice_json(request)) is not None:
        body["tool_choice"] = choice
    if isinstance(request.temperature, (int, float)) and request.temperature > 1:
        raise notes.refuse("temperature", "its scale ends at 1")
    if request.verbosity is not None:
        notes.drop("verbosity")
    given: tuple[tuple[str, JSONValue], ...] = (
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("stop_sequences", list(request.stop) or None),
    )
    body.update({name: value for name, value in given if value is not None})
    _configure(body, request, notes)
    return body


def _configure(body: JSONObject, request: Request, notes: Notes) -> None:
    """Thinking and the form of the answer."""
    config: JSONObject = {}
    if request.effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif request.effort is not None:
        if request.effort not in _EFFORTS:
            raise notes.refuse("reasoning_effort", f"it knows none, {', '.join(_EFFORTS)}")
        config["effort"] = request.effort
    if request.format is not None:
        if request.format.schema is None:
            raise notes.refuse("response_format.type=json_object", "it takes a schema, `json_schema`")
        config["format"] = {"type": "json_schema", "schema": request.format.schema}
    if config:
        body["output_config"] = config


def _messages(turns: Sequence[Turn], notes: Notes) -> Iterator[JSONValue]:
    """Turns as messages. Results of tools stand together, and first in the message that follows their calls."""
    waiting: list[Part] = []
    for turn in turns:
        only_results = all(isinstance(p, ToolOutput) for p in turn.parts)
        if turn.speaker == "user" and only_results and turn.parts:
            waiting += turn.parts
            continue
        if turn.speaker == "user":
            yield _message(turn.speaker, (*waiting, *turn.parts), notes)
        else:
            if waiting:
                yield _message("user", waiting, notes)
            message = _message("assistant" if turn.speaker == "assistant" else "system", turn.parts, notes)
            if message["content"]:  # an assistant that said nothing said no message
                yield message
        waiting = []
    if waiting:
        yield _message("user", waiting, notes)


def _message(role: str, parts: Sequence[Part], notes: Notes) -> JSONObject:
    """One message; texts that are empty are left out where there is more, for the dialect refuses them."""
    if len(parts) == 1 and isinstance(parts[0], Text):
        return {"role": role, "content": parts[0].text}
    blocks: list[JSONValue] = [_block_json(p, notes) for p in parts if not (isinstance(p, Text) and not p.text)]
    return {"role": role, "content": [b for b in blocks if b is not None]}


def _block_json(part: Part, notes: Notes) -> JSONValue:
    """A part as a block; None for a thought that nobody sealed: the provider would not take it."""
    if isinstance(part, (Text, Refusal)):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        if part.detail not in (None, "auto"):
            notes.drop("image.detail")
        return {"type": "image", "source": _source_json(part.url)}
    if isinstance(part, File):
        return _document_json(part, notes)
    if isinstance(part, ToolUse):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part.arguments)}
    if isinstance(part, ToolOutput):
        return _result_json(part, notes)
    return _thought_json(part, notes)


def _thought_json(thought: Reasoning, notes: Notes) -> JSONValue:
    if thought.seal is None:
        notes.drop("reasoning without the provider's seal")
        return None
    return thought_block(thought)


def thought_block(thought: Reasoning) -> JSONObject:
    """A thought as a block."""
    if thought.redacted:
        return {"type": "redacted_thinking", "data": thought.seal}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.seal or ""}


def _result_json(output: ToolOutput, notes: Notes) -> JSONObject:
    plain = len(output.parts) == 1 and isinstance(output.parts[0], Text)
    content: JSONValue = joined(output.parts, Text) if plain else [_block_json(p, notes) for p in output.parts]
    result: JSONObject = {"type": "tool_result", "tool_use_id": output.id, "content": content}
    if output.error:
        result["is_error"] = True
    return result


def _source_json(url: str) -> JSONObject:
    if (found := of_data_url(url)) is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": found[0], "data": found[1]}


def _document_json(file: File, notes: Notes) -> JSONObject:
    found = of_data_url(file.url)
    if found is not None and found[0] != "application/pdf":
        raise notes.refuse(f"document of type {found[0]}", "documents are PDF there")
    block: JSONObject = {"type": "document", "source": _source_json(file.url)}
    if file.name is not None:
        block["title"] = file.name
    return block


def _tool_json(tool: Tool) -> JSONObject:
    value: JSONObject = {"name": tool.name, "input_schema": tool.schema or {"type": "object", "properties": {}}}
    if tool.description is not None:
        value["description"] = tool.description
    if tool.strict is not None:
        value["strict"] = tool.strict
    return value


def _choice_json(request: Request) -> JSONObject | None:
    choice = request.choice
    if not request.tools or (choice is None and request.parallel is None):
        return None
    value: JSONObject = {"type": "auto"}
    if choice is not None and choice.mode == "named":
        value = {"type": "tool", "name": choice.name}
    elif choice is not None:
        value = {"type": _CHOICES_BACK[choice.mode]}
    if request.parallel is not None and value["type"] != "none":
        value["disable_parallel_tool_use"] = not request.parallel
    return value


# ── responses ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_response(body: JSONObject) -> Answer:
    """What a response says; blocks of a provider's own tools are left, for those are never asked for."""
    content = body.get("content")
    parts = tuple(p for b in content if isinstance(b, dict) for p in _answered(b)) if isinstance(content, list) else ()
    sequence = body.get("stop_sequence")
    stop = _STOPS.get(str(body.get("stop_reason")), "end")
    details = body.get("stop_details")
    explained = details.get("explanation") if isinstance(details, dict) else None
    if stop == "refusal" and isinstance(explained, str) and explained:
        parts = (*(p for p in parts if not isinstance(p, ToolUse)), Refusal(explained))
    return Answer(
        id=str(body.get("id") or "msg_0"),
        model=str(body.get("model") or ""),
        parts=parts,
        stop=stop,
        usage=usage_from_messages(body),
        stop_sequence=sequence if isinstance(sequence, str) else None,
    )


def _answered(block: JSONObject) -> Iterator[Part]:
    kind = block.get("type")
    if kind == "text":
        yield Text(str(block.get("text") or ""))
    elif kind == "thinking":
        seal = block.get("signature")
        yield Reasoning(str(block.get("thinking") or ""), seal if isinstance(seal, str) and seal else None)
    elif kind == "redacted_thinking":
        yield Reasoning(seal=str(block.get("data") or ""), redacted=True)
    elif kind == "tool_use":
        given = block.get("input")
        arguments = arguments_of(given) if isinstance(given, dict) else ""
        yield ToolUse(str(block.get("id") or ""), str(block.get("name") or ""), arguments)


def write_response(answer: Answer) -> JSONObject:
    """The answer as a Messages response."""
    reason, sequence = stop_of(answer)
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [response_block(p) for p in answer.parts if not (isinstance(p, Text) and not p.text)],
        "stop_reason": reason,
        "stop_sequence": sequence,
        "stop_details": stop_details(answer),
        "usage": usage_json(answer.usage),
    }


def stop_of(answer: Answer) -> tuple[str, str | None]:
    """Why it ended, in the dialect's words, and the sequence that ended it."""
    return _REASONS[answer.stop], answer.stop_sequence


def stop_details(answer: Answer) -> JSONValue:
    """A refusal's own words."""
    words = joined(answer.parts, Refusal)
    return {"type": "refusal", "category": None, "explanation": words} if words else None


def response_block(part: Part) -> JSONValue:
    """A part of an answer as a block; a refusal's words are text, for whoever reads only that."""
    if isinstance(part, (Text, Refusal)):
        return {"type": "text", "text": part.text, "citations": None}
    if isinstance(part, ToolUse):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part.arguments)}
    assert isinstance(part, Reasoning)
    return thought_block(part)


def usage_json(usage: Usage) -> JSONObject:
    """Usage in the dialect's words: `input_tokens` is what was neither read from a cache nor written to one."""
    return {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }
