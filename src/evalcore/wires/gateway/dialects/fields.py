"""What becomes of each field of a request when its dialect is not the provider's. `docs/dialects.md` shows this table.

Same dialect in and out: nothing here applies, the request goes on as it came. Otherwise every field is of one class:

    exact      the other dialect can say it, and it is said
    dropped    a hint: left out, and named in the trace (`hints_dropped`)
    refused    it changes what the model would do, and the other dialect has no word for it: the agent is told, HTTP 400

A field that is not in the table is dropped and named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.dialects.neutral import Notes

CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
MESSAGES: Final = "anthropic-messages"
DIALECTS: Final = (CHAT, RESPONSES, MESSAGES)

SEALED: Final = "reasoning.encrypted_content"

Class: TypeAlias = Literal["exact", "dropped", "refused"]
_LETTERS: Final[Mapping[str, Class]] = {"E": "exact", "D": "dropped", "R": "refused"}


@frozen
class Row:
    """One field: its class for each of the other dialects."""

    field: str
    to: Mapping[str, Class]
    note: str = ""
    harmless: tuple[JSONValue, ...] = ()  # values that say nothing; null never does


def _row(others: tuple[str, str], field: str, letters: str, note: str, harmless: tuple[JSONValue, ...]) -> Row:
    return Row(field, dict(zip(others, (_LETTERS[c] for c in letters), strict=True)), note, harmless)


def _table(source: str, *rows: tuple[str, str, str] | tuple[str, str, str, tuple[JSONValue, ...]]) -> dict[str, Row]:
    others = tuple(d for d in DIALECTS if d != source)
    assert len(others) == 2
    return {r[0]: _row(others, r[0], r[1], r[2], r[3] if len(r) == 4 else ()) for r in rows}


_ROUTING: Final = "the gateway's own business"

TABLE: Final[Mapping[str, Mapping[str, Row]]] = {
    CHAT: _table(  # letters: to openai-responses, to anthropic-messages
        CHAT,
        ("model", "EE", "recorded as asked; the arm's model is asked for"),
        ("messages", "EE", "parts: see below"),
        ("tools", "EE", "functions; custom tools are refused"),
        ("tool_choice", "EE", "`allowed_tools` and custom tools are refused"),
        ("parallel_tool_calls", "EE", ""),
        ("max_tokens", "EE", ""),
        ("max_completion_tokens", "EE", "before `max_tokens`"),
        ("temperature", "EE", "above 1 refused by anthropic-messages, whose scale ends there"),
        ("top_p", "EE", ""),
        ("stop", "RE", "Responses has no stop sequences", ([],)),
        ("reasoning_effort", "EE", "to anthropic-messages: `minimal` is refused, `none` turns thinking off"),
        ("verbosity", "ED", ""),
        ("response_format", "EE", "`json_object` refused by anthropic-messages", ({"type": "text"},)),
        ("n", "RR", "one answer to a request", (1,)),
        ("logprobs", "RR", "they would be missing from the answer", (False,)),
        ("top_logprobs", "RR", "they would be missing from the answer", (0,)),
        ("logit_bias", "RR", "it changes what is sampled", ({},)),
        ("frequency_penalty", "RR", "it changes what is sampled", (0,)),
        ("presence_penalty", "RR", "it changes what is sampled", (0,)),
        ("modalities", "RR", "text alone is translated", (["text"],)),
        ("audio", "RR", "text alone is translated"),
        ("functions", "RR", "`tools` replaced it", ([],)),
        ("function_call", "RR", "`tool_choice` replaced it"),
        ("web_search_options", "RR", "a tool that the provider would run, past the tool wire"),
        ("seed", "DD", "a wish that no provider promises to meet"),
        ("prediction", "DD", "speed, not content"),
        ("metadata", "DD", ""),
        ("user", "DD", ""),
        ("safety_identifier", "DD", ""),
        ("store", "DD", ""),
        ("service_tier", "DD", ""),
        ("moderation", "DD", ""),
        ("prompt_cache_key", "DD", ""),
        ("prompt_cache_options", "DD", ""),
        ("prompt_cache_retention", "DD", ""),
        ("stream", "EE", _ROUTING),
        ("stream_options", "EE", _ROUTING),
    ),
    RESPONSES: _table(  # to openai-chat, to anthropic-messages
        RESPONSES,
        ("model", "EE", "recorded as asked; the arm's model is asked for"),
        ("input", "EE", "items: see below"),
        ("instructions", "EE", "the first system message"),
        ("tools", "EE", "functions; every other kind is refused"),
        ("tool_choice", "EE", "only functions"),
        ("parallel_tool_calls", "EE", ""),
        ("max_output_tokens", "EE", ""),
        ("temperature", "EE", "above 1 refused by anthropic-messages, whose scale ends there"),
        ("top_p", "EE", ""),
        ("reasoning", "EE", "its `effort`; `summary`, `context` and `mode` are dropped; see `reasoning_effort`"),
        ("text", "EE", "`format` as `response_format`, `verbosity` likewise"),
        ("previous_response_id", "RR", "the conversation is kept by the provider, and another one does not have it"),
        ("conversation", "RR", "the conversation is kept by the provider, and another one does not have it"),
        ("prompt", "RR", "the template is kept by the provider"),
        ("background", "RR", "an answer is waited for", (False,)),
        ("background_options", "RR", "an answer is waited for", ({},)),
        ("top_logprobs", "RR", "they would be missing from the answer", (0,)),
        (
            "include",
            "DD",
            "all but `reasoning.encrypted_content`, which is kept",
            ([], ["reasoning.encrypted_content"]),
        ),
        ("truncation", "DD", "a long conversation is an error", ("disabled",)),
        ("context_management", "DD", "nothing is taken out of a long conversation", ([],)),
        ("max_tool_calls", "DD", "it bounds the provider's own tools, and those are refused"),
        ("image", "DD", ""),
        ("access_programs", "DD", ""),
        ("metadata", "DD", "", ({},)),
        ("user", "DD", ""),
        ("safety_identifier", "DD", ""),
        ("store", "DD", "nothing is stored", (False,)),
        ("service_tier", "DD", ""),
        ("moderation", "DD", ""),
        ("prompt_cache_key", "DD", ""),
        ("prompt_cache_options", "DD", ""),
        ("prompt_cache_retention", "DD", ""),
        ("stream", "EE", _ROUTING),
        ("stream_options", "EE", _ROUTING),
    ),
    MESSAGES: _table(  # to openai-chat, to openai-responses
        MESSAGES,
        ("model", "EE", "recorded as asked; the arm's model is asked for"),
        ("messages", "EE", "blocks: see below"),
        ("system", "EE", "the first system message"),
        ("tools", "EE", "tools with an `input_schema`; Anthropic's own are refused"),
        ("tool_choice", "EE", "`disable_parallel_tool_use` as `parallel_tool_calls`"),
        ("max_tokens", "EE", ""),
        ("temperature", "EE", ""),
        ("top_p", "EE", ""),
        ("stop_sequences", "ER", "Responses has no stop sequences", ([],)),
        ("output_config", "EE", "`effort` as `reasoning_effort`, `format` as `response_format`"),
        ("thinking", "DD", "a budget has no equal elsewhere; `output_config.effort` has"),
        ("top_k", "RR", "it changes what is sampled"),
        ("container", "RR", "the provider's own sandbox"),
        ("mcp_servers", "RR", "tools that the provider would call, past the tool wire", ([],)),
        ("betas", "DD", "header `anthropic-beta`", ([],)),
        ("cache_control", "DD", "also on every block and tool"),
        ("context_management", "DD", "nothing is taken out of a long conversation", ({},)),
        ("diagnostics", "DD", ""),
        ("inference_geo", "DD", ""),
        ("metadata", "DD", "", ({},)),
        ("service_tier", "DD", ""),
        ("speed", "DD", ""),
        ("user_profile_id", "DD", ""),
        ("workspace_id", "DD", ""),
        ("stream", "EE", _ROUTING),
    ),
}

PARTS: Final[Mapping[str, Mapping[str, Row]]] = {
    CHAT: _table(
        CHAT,
        ("system, developer", "EE", "anthropic-messages: `system`, or a system message where it comes later"),
        ("text, refusal", "EE", "a refusal in a history becomes text for anthropic-messages"),
        ("tool_calls", "EE", 'arguments that are no JSON: `{"INVALID_JSON": …}` for anthropic-messages'),
        ("tool", "EE", ""),
        ("reasoning_content, reasoning_details", "EE", "what models of other dialects thought, and its seal"),
        ("image_url", "EE", "`detail` is dropped by anthropic-messages"),
        ("file", "EE", "with `file_data`; a `file_id` is refused, and so is what is no PDF by anthropic-messages"),
        ("input_audio", "RR", "text, images and documents are translated"),
        ("name", "DD", "of a speaker"),
        ("audio, function_call", "RR", "of an earlier answer"),
        ("annotations", "DD", "of an earlier answer", ([],)),
    ),
    RESPONSES: _table(
        RESPONSES,
        ("message", "EE", "all roles; `id`, `status` and `phase` are dropped"),
        ("input_text, output_text, refusal", "EE", "annotations and log probabilities are dropped"),
        ("function_call", "EE", "with a `namespace` refused"),
        ("function_call_output", "EE", "images in it are refused by openai-chat"),
        ("reasoning", "EE", "its text, and `encrypted_content` as the seal"),
        ("input_image", "EE", "a `file_id` is refused"),
        ("input_file", "EE", "with `file_data`; a `file_url` refused by openai-chat, a `file_id` by both"),
        ("item_reference", "RR", "the conversation is kept by the provider, and another one does not have it"),
        ("every other item", "RR", "of tools that the provider would run"),
    ),
    MESSAGES: _table(
        MESSAGES,
        ("text", "EE", "citations are dropped"),
        ("image", "EE", "base64 or URL; a file of the provider's is refused"),
        ("document", "EE", "base64 PDF, or text (as text); a URL refused by openai-chat; others refused"),
        ("tool_use", "EE", ""),
        ("tool_result", "EE", "`is_error` is dropped; images in it are refused by openai-chat"),
        ("thinking, redacted_thinking", "EE", "as reasoning, with the signature as its seal"),
        ("every other block", "RR", "of tools that the provider would run"),
    ),
}


def sift(body: JSONObject, notes: Notes) -> JSONObject:
    """The exact fields of a request; notes the dropped ones. Raises RefusedRequest for the others."""
    table = TABLE[notes.source]
    kept: JSONObject = {}
    for name, value in body.items():
        row = table.get(name)
        if value is None or (row is not None and value in row.harmless):
            continue
        what = "dropped" if row is None else row.to[notes.target]
        if what == "refused" and row is not None:
            raise notes.refuse(name, row.note)
        if what == "dropped":
            notes.drop(name)
        else:
            kept[name] = value
    return kept
