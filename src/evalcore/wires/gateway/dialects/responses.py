"""OpenAI Responses, read and written. Translated requests are stateless: the whole conversation is in `input`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.usage import Usage, usage_from_responses
from evalcore.wires.gateway.dialects.chat import detail_of, format_of, schema_json
from evalcore.wires.gateway.dialects.fields import SEALED, sift
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
    joined,
    moment,
)

_REDACTED: Final = "redacted:"  # before a seal that is a thought itself: this dialect has one field for both
_ITEM: Final = "item:"  # before an item's id and its seal, where they travel as one
_INCOMPLETE: Final = {"length": "max_output_tokens", "filter": "content_filter"}


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_request(body: JSONObject, notes: Notes) -> Request:
    """What a Responses request says. Raises RefusedRequest."""
    said = sift(body, notes)
    given = said.get("input")
    items: JSONValue = [{"role": "user", "content": given}] if isinstance(given, str) else given
    turns = list(_turns(notes.objects(items, "input"), notes))
    if "instructions" in said:
        turns.insert(0, Turn("system", (Text(notes.text(said["instructions"], "instructions")),)))
    text = notes.object(said.get("text", {}), "text")
    notes.drop_others(text, ("format", "verbosity"), "text")
    reasoning = notes.object(said.get("reasoning", {}), "reasoning")
    notes.drop_others(reasoning, ("effort",), "reasoning")
    include = body.get("include")
    return Request(
        turns=tuple(turns),
        tools=tuple(_tool(t, notes) for t in notes.objects(said.get("tools", []), "tools")),
        choice=_choice(said["tool_choice"], notes) if "tool_choice" in said else None,
        parallel=notes.flag(said.get("parallel_tool_calls"), "parallel_tool_calls"),
        bound=notes.whole(said.get("max_output_tokens"), "max_output_tokens"),
        temperature=said.get("temperature"),
        top_p=said.get("top_p"),
        effort=notes.word(reasoning.get("effort"), "reasoning.effort"),
        verbosity=notes.word(text.get("verbosity"), "text.verbosity"),
        format=_format(text.get("format"), notes),
        sealed=isinstance(include, list) and SEALED in include,
    )


def _turns(items: Iterator[JSONObject], notes: Notes) -> Iterator[Turn]:
    """Items as turns. What an assistant says and does without a word between is one turn, as in other dialects."""
    gathered: list[Part] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role") != "assistant":
            if gathered:
                yield Turn("assistant", tuple(gathered))
                gathered = []
            yield _message(item, notes)
        elif kind == "function_call_output":
            if gathered:
                yield Turn("assistant", tuple(gathered))
                gathered = []
            yield Turn("user", (_output(item, notes),))
        else:
            gathered += _said(item, kind, notes)
    if gathered:
        yield Turn("assistant", tuple(gathered))


def _said(item: JSONObject, kind: JSONValue, notes: Notes) -> list[Part]:
    """One item of an assistant's."""
    if kind == "message":
        notes.drop_others(item, ("type", "role", "content"), "input[]")
        return list(_parts(item.get("content"), notes))
    if kind == "function_call":
        if item.get("namespace") is not None:
            raise notes.refuse("input[].namespace", "functions have one name elsewhere")
        notes.drop_others(item, ("type", "call_id", "name", "arguments", "id", "status"), "input[]")
        return [
            ToolUse(
                notes.text(item.get("call_id"), "input[].call_id"),
                notes.text(item.get("name"), "input[].name"),
                notes.text(item.get("arguments"), "input[].arguments"),
            )
        ]
    if kind == "reasoning":
        return [_thought(item)]
    raise notes.refuse(f"input[].type={kind}", "messages, functions' calls and outputs, and reasoning are translated")


def _message(item: JSONObject, notes: Notes) -> Turn:
    role = item.get("role")
    if role not in ("system", "developer", "user"):
        raise notes.malformed("input[].role", "system, developer, user or assistant")
    notes.drop_others(item, ("type", "role", "content"), "input[]")
    return Turn(cast(Speaker, role), tuple(_parts(item.get("content"), notes)))


def _parts(content: JSONValue, notes: Notes) -> Iterator[Text | Refusal | Image | File]:
    if isinstance(content, str):
        yield Text(content)
        return
    for part in notes.objects(content, "input[].content"):
        yield _part(part, notes)


def _part(part: JSONObject, notes: Notes) -> Text | Refusal | Image | File:
    where = "input[].content[]"
    kind = part.get("type")
    if kind in ("input_text", "output_text"):
        notes.drop_others(part, ("type", "text"), where)
        return Text(notes.text(part.get("text"), f"{where}.text"))
    if kind == "refusal":
        return Refusal(notes.text(part.get("refusal"), f"{where}.refusal"))
    if kind == "input_image":
        if part.get("image_url") is None:
            raise notes.refuse(f"{where}.file_id", "the file is kept by the provider")
        return Image(notes.text(part["image_url"], f"{where}.image_url"), detail_of(part))
    if kind == "input_file":
        url = part.get("file_data") or part.get("file_url")
        if url is None:
            raise notes.refuse(f"{where}.file_id", "the file is kept by the provider")
        name = part.get("filename")
        return File(notes.text(url, f"{where}.file_data"), name if isinstance(name, str) else None)
    raise notes.refuse(f"{where}.type={kind}", "text, images and documents are translated")


def _output(item: JSONObject, notes: Notes) -> ToolOutput:
    parts = _parts(item.get("output"), notes)
    notes.drop_others(item, ("type", "call_id", "output", "id", "status"), "input[]")
    kept = tuple(Text(p.text) if isinstance(p, Refusal) else p for p in parts)
    return ToolOutput(notes.text(item.get("call_id"), "input[].call_id"), kept)


def _thought(item: JSONObject) -> Reasoning:
    """A reasoning item: its text or summary; its seal, with its id where that belongs to it."""
    said: list[str] = []
    for name in ("content", "summary"):
        parts = item.get(name)
        if not said and isinstance(parts, list):
            said = [str(p.get("text") or "") for p in parts if isinstance(p, dict)]
    seal, item_id = item.get("encrypted_content"), item.get("id")
    if not isinstance(seal, str) or not seal:
        return Reasoning("\n\n".join(said))
    if seal.startswith(_REDACTED):
        return Reasoning(seal=seal.removeprefix(_REDACTED), redacted=True)
    if isinstance(item_id, str) and item_id and not item_id.startswith("rs_evalcore"):
        seal = f"{_ITEM}{item_id}:{seal}"  # the provider's own: other dialects hand both back as one
    return Reasoning("\n\n".join(said), seal)


def _tool(tool: JSONObject, notes: Notes) -> Tool:
    if tool.get("type") != "function":
        raise notes.refuse(f"tools[].type={tool.get('type')}", "functions are translated")
    notes.drop_others(tool, ("type", "name", "description", "parameters", "strict"), "tools[]")
    description, schema = tool.get("description"), tool.get("parameters")
    return Tool(
        notes.text(tool.get("name"), "tools[].name"),
        None if description is None else notes.text(description, "tools[].description"),
        None if schema is None else notes.object(schema, "tools[].parameters"),
        notes.flag(tool.get("strict"), "tools[].strict"),
    )


def _choice(value: JSONValue, notes: Notes) -> Choice:
    if isinstance(value, str) and value in ("auto", "none", "required"):
        return Choice(value)  # type: ignore[arg-type]
    wanted = notes.object(value, "tool_choice")
    if wanted.get("type") != "function":
        raise notes.refuse(f"tool_choice.type={wanted.get('type')}", "one function, or any, or none can be asked for")
    return Choice("named", notes.text(wanted.get("name"), "tool_choice.name"))


def _format(value: JSONValue, notes: Notes) -> Format | None:
    if value is None:
        return None
    form = notes.object(value, "text.format")
    kind = form.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return Format()
    if kind != "json_schema":
        raise notes.refuse(f"text.format.type={kind}", "`json_schema` and `json_object` are translated")
    return format_of(form, notes, "text.format")


def write_request(request: Request, notes: Notes) -> JSONObject:
    """The request as a stateless Responses request. Raises RefusedRequest for what it cannot say."""
    body: JSONObject = {"input": [item for turn in request.turns for item in _items(turn, notes)], "store": False}
    if request.tools:
        # Left out, `strict` means yes here, and no in other dialects.
        body["tools"] = [
            {
                "type": "function",
                "name": t.name,
                "description": t.description,
                "parameters": t.schema if t.schema is not None else {"type": "object", "properties": {}},
                "strict": bool(t.strict),
            }
            for t in request.tools
        ]
    if request.choice is not None:
        named: JSONObject = {"type": "function", "name": request.choice.name}
        body["tool_choice"] = named if request.choice.mode == "named" else request.choice.mode
    if request.stop:
        raise notes.refuse("stop", "Responses has no stop sequences")
    if request.sealed or request.effort not in (None, "none"):
        body["include"] = [SEALED]
    text: JSONObject = {} if request.format is None else {"format": _format_json(request.format)}
    if request.verbosity is not None:
        text["verbosity"] = request.verbosity
    plain: tuple[tuple[str, JSONValue], ...] = (
        ("parallel_tool_calls", request.parallel),
        ("max_output_tokens", request.bound),
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("reasoning", None if request.effort is None else {"effort": request.effort}),
        ("text", text or None),
    )
    body.update({name: value for name, value in plain if value is not None})
    return body


def _items(turn: Turn, notes: Notes) -> Iterator[JSONObject]:
    """A turn as items, in order; texts that follow each other are one message."""
    spoken: list[JSONValue] = []
    for part in turn.parts:
        if isinstance(part, (Text, Refusal, Image, File)):
            spoken.append(_part_json(part, turn.speaker == "assistant"))
            continue
        if spoken:
            yield {"type": "message", "role": turn.speaker, "content": spoken}
            spoken = []
        if isinstance(part, ToolUse):
            yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
        elif isinstance(part, ToolOutput):
            yield _output_json(part, notes)
        else:
            yield from _reasoning_items(part, notes)
    if spoken:
        yield {"type": "message", "role": turn.speaker, "content": spoken}


def _output_json(output: ToolOutput, notes: Notes) -> JSONObject:
    if output.error:
        notes.drop("tool result.is_error")
    plain = len(output.parts) == 1 and isinstance(output.parts[0], Text)
    content: JSONValue = joined(output.parts, Text) if plain else [_part_json(p, said=False) for p in output.parts]
    return {"type": "function_call_output", "call_id": output.id, "output": content if output.parts else ""}


def _reasoning_items(thought: Reasoning, notes: Notes) -> Iterator[JSONObject]:
    """The item that the provider sealed; what nobody sealed, or somebody else, it would not take."""
    head, _, seal = (thought.seal or "").removeprefix(_ITEM).partition(":")
    if thought.seal is None or not thought.seal.startswith(_ITEM):
        notes.drop("reasoning without the provider's seal")
        return
    summary: list[JSONValue] = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    yield {"type": "reasoning", "id": head, "summary": summary, "encrypted_content": seal}


def _part_json(part: Part, said: bool) -> JSONObject:
    if isinstance(part, Text):
        return (
            {"type": "output_text", "text": part.text, "annotations": []}
            if said
            else {"type": "input_text", "text": part.text}
        )
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}
    assert isinstance(part, File)
    if part.url.startswith("data:"):
        return {"type": "input_file", "file_data": part.url, "filename": part.name or "document.pdf"}
    return {"type": "input_file", "file_url": part.url}


def _format_json(value: Format) -> JSONObject:
    if value.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", **schema_json(value)}


# ── responses ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_response(body: JSONObject) -> Answer:
    """What a response says; items of a provider's own tools are left, for those are never asked for."""
    output = body.get("output")
    parts = (
        [p for item in output if isinstance(item, dict) for p in _answered(item)] if isinstance(output, list) else []
    )
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    stop: Stop = "tools" if any(isinstance(p, ToolUse) for p in parts) else "end"
    if any(isinstance(p, Refusal) for p in parts):
        stop = "refusal"
    if reason is not None:
        stop = "filter" if reason == "content_filter" else "length"
    return Answer(
        id=str(body.get("id") or "resp_0"),
        model=str(body.get("model") or ""),
        parts=tuple(parts),
        stop=stop,
        usage=usage_from_responses(body),
        created=moment(body.get("created_at")),
    )


def _answered(item: JSONObject) -> Iterator[Part]:
    kind = item.get("type")
    if kind == "reasoning":
        yield _thought(item)
    elif kind == "function_call":
        name, arguments = str(item.get("name") or ""), item.get("arguments")
        yield ToolUse(str(item.get("call_id") or ""), name, arguments if isinstance(arguments, str) else "")
    elif kind == "message":
        content = item.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "output_text":
                yield Text(str(part.get("text") or ""))
            elif isinstance(part, dict) and part.get("type") == "refusal":
                yield Refusal(str(part.get("refusal") or ""))


def write_response(answer: Answer) -> JSONObject:
    """The answer as a Responses response."""
    reason = _INCOMPLETE.get(answer.stop)
    output = list(output_items(answer.parts, answer.id))
    if answer.stop == "refusal" and not joined(answer.parts, Refusal):
        reason = "content_filter"
    return {
        **response_head(answer.id, answer.model, answer.created),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": cast("list[JSONValue]", output),
        "usage": None if answer.usage.unreported else usage_json(answer.usage),
    }


def response_head(name: str, model: str, created: int) -> JSONObject:
    """The fields that strict clients insist on, for a response that has only begun."""
    return {
        "id": name,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None,
    }


def output_items(parts: Sequence[Part], name: str) -> Iterator[JSONObject]:
    """Parts as output items: one each, so that they are the same streamed and whole."""
    for number, part in enumerate(parts):
        yield output_item(part, f"{name}_{number}", done=True)


def output_item(part: Part, name: str, *, done: bool) -> JSONObject:
    """One part as an item of its own; begun, it is empty."""
    status = "completed" if done else "in_progress"
    if isinstance(part, ToolUse):
        arguments = part.arguments if done else ""
        head: JSONObject = {"type": "function_call", "id": f"fc_{name}", "call_id": part.id, "name": part.name}
        return {**head, "arguments": arguments, "status": status}
    if isinstance(part, Reasoning):
        return {**_reasoning_item(part, name, done=done), "status": status}
    content: list[JSONValue] = [content_part(part, done=True)] if done else []
    return {"type": "message", "id": f"msg_{name}", "status": status, "role": "assistant", "content": content}


def content_part(part: Part, *, done: bool) -> JSONObject:
    """What a message item holds."""
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text if done else ""}
    text = part.text if isinstance(part, Text) and done else ""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _reasoning_item(part: Reasoning, name: str, *, done: bool) -> JSONObject:
    item: JSONObject = {"type": "reasoning", "id": f"rs_evalcore_{name}", "summary": []}
    if not done:
        return item
    if part.text:
        item["content"] = [{"type": "reasoning_text", "text": part.text}]
    if part.seal is not None:
        item["encrypted_content"] = _REDACTED + part.seal if part.redacted else part.seal
    return item


def usage_json(usage: Usage) -> JSONObject:
    """Usage in the dialect's words."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.tokens,
    }
