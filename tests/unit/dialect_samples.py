"""Requests and answers as hypothesis draws them: what every dialect can say, with texts that can be found again."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from evalcore.values.usage import Usage
from evalcore.wires.gateway.dialects.neutral import (
    Answer,
    Choice,
    File,
    Format,
    Image,
    Part,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolOutput,
    ToolUse,
    Turn,
)

PIXEL = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "x-extra": [1, 5.0, None]}

words = st.text(min_size=1, max_size=20)
names = st.text("abcXYZ019_-", min_size=1, max_size=12)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | st.text(max_size=5)
objects = st.dictionaries(names, leaves | st.lists(leaves, max_size=3), max_size=3)


@st.composite
def arguments(draw: st.DrawFn) -> str:
    """A call's arguments: mostly JSON objects, as `json` writes them; sometimes broken off."""
    text = json.dumps(draw(objects), ensure_ascii=False)
    return text if draw(st.booleans()) or text == "{}" else text[:-1]


texts = words.map(Text)
images = st.sampled_from([Image(PIXEL), Image("https://example.org/a.png")])
documents = st.builds(File, st.just(PDF), words)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Turn, ...]:
    """System, then user and assistant in turn; calls are answered where they were made."""
    turns: list[Turn] = [Turn("system", (draw(texts),))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 4))):
        turns.append(Turn("user", tuple(draw(st.lists(texts | images | documents, min_size=1, max_size=3)))))
        parts: list[Part] = [Reasoning(draw(words), draw(names))] if draw(st.booleans()) else []
        if draw(st.booleans()):
            parts.append(draw(texts))
        calls = [ToolUse(f"call_{number}_{n}", draw(names), draw(arguments())) for n in range(draw(st.integers(0, 3)))]
        parts += calls
        if not any(isinstance(p, (Text, ToolUse)) for p in parts):
            parts.append(draw(texts))
        turns.append(Turn("assistant", tuple(parts)))
        turns += [Turn("user", (ToolOutput(c.id, (draw(texts),)),)) for c in calls]
    return tuple(turns)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """What all three dialects can say."""
    tools = tuple(
        Tool(name, draw(st.none() | words), SCHEMA, draw(st.booleans()))
        for name in draw(st.lists(names, max_size=3, unique=True))
    )
    choices = [None, Choice("auto"), Choice("required"), Choice("none"), *(Choice("named", t.name) for t in tools)]
    return Request(
        turns=draw(conversations()),
        tools=tools,
        choice=draw(st.sampled_from(choices)) if tools else None,
        bound=draw(st.integers(1, 100_000)),
        temperature=draw(st.none() | st.sampled_from([0, 0.5, 1.0])),
        top_p=draw(st.none() | st.sampled_from([0.1, 1.0])),
        effort=draw(st.sampled_from([None, "low", "medium", "high", "xhigh", "max"])),
        format=draw(st.sampled_from([None, Format(SCHEMA, strict=True)])),
    )


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """What all three dialects can answer."""
    parts: list[Part] = [Reasoning(draw(words), draw(names))] if draw(st.booleans()) else []
    if draw(st.booleans()):
        parts.append(draw(texts))
    parts += [ToolUse(f"call_{n}", draw(names), draw(arguments())) for n in range(draw(st.integers(0, 3)))]
    calls = any(isinstance(p, ToolUse) for p in parts)
    if not calls and not any(isinstance(p, Text) for p in parts):
        parts.append(draw(texts))
    cached, written, fresh = draw(st.tuples(*[st.integers(0, 1000)] * 3))
    output = draw(st.integers(0, 1000))
    usage = Usage(1, fresh + cached + written, output, cached, written, draw(st.integers(0, output)))
    stop = "tools" if calls else draw(st.sampled_from(["end", "length"]))
    return Answer(draw(names), draw(names), tuple(parts), stop, usage)  # type: ignore[arg-type]
