"""OpenAI Chat Completions, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from evalcore.values.json import JSONObject, JSONValue, exact_text, from_exact_text
from evalcore.values.usage import Usage, usage_from_chat
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
    joined,
    moment,
)

_STOPS: Final[Mapping[str, Stop]] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "filter",
}
_REASONS: Final[Mapping[Stop, str]] = {
    "end": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "tools": "tool_calls",
    "refusal": "content_filter",
    "filter": "content_filter",
    "pause": "stop",
}
_MODES: Final = ("auto", "none", "required")
_ASSISTANT: Final = ("role", "content", "refusal", "tool_calls", "reasoning_content", "reasoning", "reasoning_details")
OURS: Final = "evalcore"  # the `format` of sealed reasoning that we wrote
DETAILS: Final = "details:"  # a seal that is another gateway's `reasoning_details`


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_request(body: JSONObject, notes: Notes) -> Request:
    """What a Chat Completions request says. Raises RefusedRequest."""
    said = sift(body, notes)
    stop = said.get("stop", [])
    bound = "max_completion_tokens" if "max_completion_tokens" in said else "max_tokens"
    return Request(
        turns=tuple(_turn(m, notes) for m in notes.objects(said.get("messages"), "messages")),
        tools=tuple(_tool(t, notes) for t in notes.objects(said.get("tools", []), "tools")),
        choice=_choice(said["tool_choice"], notes) if "tool_choice" in said else None,
        parallel=notes.flag(said.get("parallel_tool_calls"), "parallel_tool_calls"),
        bound=notes.whole(said.get(bound), bound),
        temperature=said.get("temperature"),
        top_p=said.get("top_p"),
        stop=(stop,) if isinstance(stop, str) else notes.texts(stop, "stop"),
        effort=notes.word(said.get("reasoning_effort"), "reasoning_effort"),
        verbosity=notes.word(said.get("verbosity"), "verbosity"),
        format=_format(notes.object(said["response_format"], "response_format"), notes)
        if "response_format" in said
        else None,
    )


def _turn(message: JSONObject, notes: Notes) -> Turn:
    role = message.get("role")
    if role == "assistant":
        return Turn("assistant", tuple(_said(message, notes)))
    if role == "tool":
        notes.drop_others(message, ("role", "content", "tool_call_id"), "messages[]")
        parts = _parts(message.get("content"), notes)
        kept = tuple(Text(p.text) if isinstance(p, Refusal) else p for p in parts)
        return Turn("user", (ToolOutput(notes.text(message.get("tool_call_id"), "tool_call_id"), kept),))
    if role not in ("system", "developer", "user"):
        if role == "function":
            raise notes.refuse("messages[].role=function", "`tools` replaced it")
        raise notes.malformed("messages[].role", "system, developer, user, assistant or tool")
    notes.drop_others(message, ("role", "content"), "messages[]")
    return Turn(cast(Speaker, role), tuple(_parts(message.get("content"), notes)))


def _said(message: JSONObject, notes: Notes) -> Iterator[Part]:
    """An assistant's message, in the order in which a model says it."""
    for name in ("audio", "function_call"):
        if message.get(name) is not None:
            raise notes.refuse(f"messages[].{name}", "text and `tool_calls` are translated")
    notes.drop_others(message, _ASSISTANT, "messages[]")
    yield from thoughts_of(message)
    yield from _parts(message.get("content"), notes)
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        yield Refusal(refusal)
    for call in notes.objects(message.get("tool_calls") or [], "messages[].tool_calls"):
        yield _call(call, notes)


def thoughts_of(message: JSONObject) -> Iterator[Reasoning]:
    """Reasoning in the forms that servers have given it: sealed details, else plain text under either name."""
    text = message.get("reasoning_content") or message.get("reasoning")
    details = message.get("reasoning_details")
    listed = [d for d in details if isinstance(d, dict)] if isinstance(details, list) else []
    if listed and all(d.get("format") == OURS for d in listed):
        for detail in listed:
            seal = detail.get("signature") or detail.get("data")
            redacted = detail.get("type") == "reasoning.encrypted"
            yield Reasoning(str(detail.get("text") or ""), str(seal) if seal else None, redacted)
    elif listed:  # another gateway's: they are one seal
        yield sealed_by_details(text if isinstance(text, str) else "", listed)
    elif isinstance(text, str) and text:
        yield Reasoning(text)


def sealed_by_details(text: str, details: Sequence[JSONValue]) -> Reasoning:
    """A thought whose seal is `reasoning_details`, whoever made them."""
    return Reasoning(text, DETAILS + exact_text(list(details)))


def _parts(content: JSONValue, notes: Notes) -> Iterator[Text | Refusal | Image | File]:
    if content is None:
        return
    if isinstance(content, str):
        yield Text(content)
        return
    for part in notes.objects(content, "messages[].content"):
        yield _part(part, notes)


def _part(part: JSONObject, notes: Notes) -> Text | Refusal | Image | File:
    where = "messages[].content[]"
    kind = part.get("type")
    if kind == "text":
        notes.drop_others(part, ("type", "text"), where)
        return Text(notes.text(part.get("text"), f"{where}.text"))
    if kind == "refusal":
        return Refusal(notes.text(part.get("refusal"), f"{where}.refusal"))
    if kind == "image_url":
        image = notes.object(part.get("image_url"), f"{where}.image_url")
        return Image(notes.text(image.get("url"), f"{where}.image_url.url"), detail_of(image))
    if kind == "file":
        file = notes.object(part.get("file"), f"{where}.file")
        if "file_data" not in file:
            raise notes.refuse(f"{where}.file.file_id", "the file is kept by the provider")
        name = file.get("filename")
        return File(notes.text(file["file_data"], f"{where}.file_data"), name if isinstance(name, str) else None)
    raise notes.refuse(f"{where}.type={kind}", "text, images and documents are translated")


def detail_of(image: JSONObject) -> str | None:
    """How closely a picture is to be looked at, if the agent said so."""
    detail = image.get("detail")
    return detail if isinstance(detail, str) and detail != "auto" else None


def _call(call: JSONObject, notes: Notes) -> ToolUse:
    where = "messages[].tool_calls[]"
    if call.get("type", "function") != "function":
        raise notes.refuse(f"{where}.type={call.get('type')}", "functions are translated")
    function = notes.object(call.get("function"), f"{where}.function")
    arguments = function.get("arguments")
    return ToolUse(
        notes.text(call.get("id"), f"{where}.id"),
        notes.text(function.get("name"), f"{where}.function.name"),
        arguments if isinstance(arguments, str) else "",
    )


def _tool(tool: JSONObject, notes: Notes) -> Tool:
    if tool.get("type") != "function":
        raise notes.refuse(f"tools[].type={tool.get('type')}", "functions are translated")
    function = notes.object(tool.get("function"), "tools[].function")
    notes.drop_others(tool, ("type", "function"), "tools[]")
    notes.drop_others(function, ("name", "description", "parameters", "strict"), "tools[].function")
    description, schema = function.get("description"), function.get("parameters")
    return Tool(
        notes.text(function.get("name"), "tools[].function.name"),
        None if description is None else notes.text(description, "tools[].function.description"),
        None if schema is None else notes.object(schema, "tools[].function.parameters"),
        notes.flag(function.get("strict"), "tools[].function.strict"),
    )


def _choice(value: JSONValue, notes: Notes) -> Choice:
    if isinstance(value, str) and value in _MODES:
        return Choice(value)  # type: ignore[arg-type]
    wanted = notes.object(value, "tool_choice")
    if wanted.get("type") != "function":
        raise notes.refuse(f"tool_choice.type={wanted.get('type')}", "one function, or any, or none can be asked for")
    function = notes.object(wanted.get("function"), "tool_choice.function")
    return Choice("named", notes.text(function.get("name"), "tool_choice.function.name"))


def _format(value: JSONObject, notes: Notes) -> Format:
    kind = value.get("type")
    if kind == "json_object":
        return Format()
    if kind != "json_schema":
        raise notes.refuse(f"response_format.type={kind}", "`json_schema` and `json_object` are translated")
    return format_of(notes.object(value.get("json_schema"), "response_format.json_schema"), notes, "response_format")


def format_of(value: JSONObject, notes: Notes, where: str) -> Format:
    """A format by schema, from the object that holds its name and schema."""
    description = value.get("description")
    return Format(
        notes.object(value.get("schema", {}), f"{where}.schema"),
        notes.text(value.get("name", "answer"), f"{where}.name"),
        description if isinstance(description, str) else None,
        notes.flag(value.get("strict"), f"{where}.strict"),
    )


def write_request(request: Request, notes: Notes) -> JSONObject:
    """The request as Chat Completions. Raises RefusedRequest for what they cannot say."""
    body: JSONObject = {"messages": [m for turn in request.turns for m in _messages(turn, notes)]}
    if request.tools:
        body["tools"] = [_tool_json(tool) for tool in request.tools]
    if request.choice is not None and (request.tools or request.choice.mode in ("required", "named")):
        named: JSONObject = {"type": "function", "function": {"name": request.choice.name}}
        body["tool_choice"] = named if request.choice.mode == "named" else request.choice.mode
    plain: tuple[tuple[str, JSONValue], ...] = (
        ("parallel_tool_calls", request.parallel if request.tools else None),
        ("max_completion_tokens", request.bound),
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("stop", list(request.stop) or None),
        ("reasoning_effort", request.effort),
        ("verbosity", request.verbosity),
    )
    body.update({name: value for name, value in plain if value is not None})
    if request.format is not None:
        body["response_format"] = _format_json(request.format)
    return body


def _messages(turn: Turn, notes: Notes) -> Iterator[JSONObject]:
    """A turn as messages: one for an assistant, one for each output of a tool."""
    if turn.speaker == "assistant":
        yield _assistant(turn.parts)
        return
    rest: list[Part] = []
    for part in turn.parts:
        if not isinstance(part, ToolOutput):
            rest.append(part)
            continue
        if rest:
            yield {"role": turn.speaker, "content": _content(rest, notes)}
            rest = []
        yield _tool_message(part, notes)
    if rest:
        yield {"role": turn.speaker, "content": _content(rest, notes)}


def _tool_message(output: ToolOutput, notes: Notes) -> JSONObject:
    if any(not isinstance(p, Text) for p in output.parts):
        raise notes.refuse("tool result", "what a tool gives is text there, and this holds an image or a document")
    if output.error:
        notes.drop("tool result.is_error")
    content = _content(output.parts, notes) if output.parts else ""
    return {"role": "tool", "tool_call_id": output.id, "content": content}


def _assistant(parts: Sequence[Part]) -> JSONObject:
    texts: list[JSONValue] = [{"type": "text", "text": p.text} for p in parts if isinstance(p, Text)]
    message: JSONObject = {"role": "assistant", "content": texts if len(texts) > 1 else joined(parts, Text) or None}
    if refusal := joined(parts, Refusal):
        message["refusal"] = refusal
    if calls := [_call_json(p) for p in parts if isinstance(p, ToolUse)]:
        message["tool_calls"] = list(calls)
    elif message["content"] is None and not refusal:
        message["content"] = ""
    message.update(thoughts_json(parts))
    return message


def _content(parts: Sequence[Part], notes: Notes) -> JSONValue:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [_part_json(part, notes) for part in parts]


def _part_json(part: Part, notes: Notes) -> JSONObject:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": part.url, **({"detail": part.detail} if part.detail else {})}}
    if isinstance(part, File):
        if not part.url.startswith("data:"):
            raise notes.refuse("document", "a document is sent whole there, not by its address")
        return {"type": "file", "file": {"filename": part.name or "document.pdf", "file_data": part.url}}
    if isinstance(part, (Text, Refusal)):
        return {"type": "text", "text": part.text}
    raise notes.refuse(type(part).__name__, "only an assistant says it")


def _call_json(call: ToolUse) -> JSONObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def thoughts_json(parts: Sequence[Part]) -> JSONObject:
    """Reasoning as servers write it, and its seal, so that an agent that keeps messages whole hands it back."""
    thoughts = [p for p in parts if isinstance(p, Reasoning)]
    text = "".join(p.text for p in thoughts)
    said: JSONObject = {"reasoning_content": text} if text else {}
    if any(p.seal for p in thoughts):
        said["reasoning_details"] = [detail for p in thoughts for detail in _details(p)]
    return said


def _details(thought: Reasoning) -> list[JSONValue]:
    """The entries of `reasoning_details` for one thought."""
    if thought.seal is not None and thought.seal.startswith(DETAILS):
        return cast("list[JSONValue]", from_exact_text(thought.seal.removeprefix(DETAILS)))
    if thought.redacted:
        return [{"type": "reasoning.encrypted", "data": thought.seal, "format": OURS}]
    return [{"type": "reasoning.text", "text": thought.text, "signature": thought.seal, "format": OURS}]


def _tool_json(tool: Tool) -> JSONObject:
    function: JSONObject = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _format_json(value: Format) -> JSONObject:
    if value.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": schema_json(value)}


def schema_json(value: Format) -> JSONObject:
    """Name, schema and what is said beside them."""
    said: JSONObject = {"name": value.name, "schema": value.schema}
    if value.description is not None:
        said["description"] = value.description
    if value.strict is not None:
        said["strict"] = value.strict
    return said


# ── responses ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_response(body: JSONObject) -> Answer:
    """What the first choice of a response says; a provider's own additions are left."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice: JSONObject = first if isinstance(first, dict) else {}
    message = choice.get("message")
    said = tuple(_said_parts(message if isinstance(message, dict) else {}))
    stop = _STOPS.get(str(choice.get("finish_reason")), "end")
    if stop == "end" and any(isinstance(p, ToolUse) for p in said):
        stop = "tools"
    if any(isinstance(p, Refusal) for p in said):
        stop = "refusal"
    return Answer(
        id=str(body.get("id") or "chatcmpl-0"),
        model=str(body.get("model") or ""),
        parts=said,
        stop=stop,
        usage=usage_from_chat(body),
        created=moment(body.get("created")),
    )


def _said_parts(message: JSONObject) -> Iterator[Part]:
    yield from thoughts_of(message)
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    if isinstance(content, str) and content:
        yield Text(content)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield Refusal(refusal)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            arguments = function.get("arguments")
            yield ToolUse(
                str(call.get("id") or ""),
                str(function.get("name") or ""),
                arguments if isinstance(arguments, str) else "",
            )


def write_response(answer: Answer) -> JSONObject:
    """The answer as a Chat Completions response."""
    calls: list[JSONValue] = [_call_json(p) for p in answer.parts if isinstance(p, ToolUse)]
    message: JSONObject = {"role": "assistant", "content": joined(answer.parts, Text) or (None if calls else "")}
    message["refusal"] = refusal_of(answer)
    if answer.stop == "refusal" and not joined(answer.parts, Refusal):
        message["content"] = None
    if calls:
        message["tool_calls"] = calls
    message.update(thoughts_json(answer.parts))
    return {
        "id": answer.id,
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(answer)}],
        **({} if answer.usage.unreported else {"usage": usage_json(answer.usage)}),
    }


def finish_reason(answer: Answer) -> str:
    """Why it ended, in the dialect's words: a refusal in words is an end like any other."""
    if answer.stop == "refusal" and joined(answer.parts, Refusal):
        return "stop"
    return _REASONS[answer.stop]


def refusal_of(answer: Answer) -> str | None:
    """The refusal's words. Where a provider's rule stopped the model, those that were said, else that it was so."""
    if words := joined(answer.parts, Refusal):
        return words
    if answer.stop != "refusal":
        return None
    return joined(answer.parts, Text) or "the provider's rules stopped the model"


def usage_json(usage: Usage) -> JSONObject:
    """Usage in the dialect's words."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


# ── what servers put beside a call ───────────────────────────────────────────────────────────────────────────────────

_OF_CALL: Final = ("id", "type", "function", "index")


def beside_calls(response: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """What a server put beside a tool call and wants back with it (Gemini: a thought's signature), by the call's id."""
    choices = response.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    for call in calls if isinstance(calls, list) else ():
        more = {k: v for k, v in call.items() if k not in _OF_CALL} if isinstance(call, dict) else {}
        if more and isinstance(call, dict):
            yield str(call.get("id") or ""), more


def put_back(body: JSONObject, beside: Mapping[str, JSONObject]) -> None:
    """Put it back into a request that was translated, where the call is still in the conversation."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                call.update(beside.get(str(call.get("id")), {}))
