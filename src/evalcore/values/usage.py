"""Tokens and money, in one meaning whoever reports them."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue


@frozen
class Usage:
    """Token counts of one or more model calls. `input` includes what was cached or written to a cache."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    unreported: int = 0  # calls whose response carried no usage: the sums are then lower bounds
    cost_usd: float | None = None  # None: unknown, never 0 for want of a price

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input + self.output

    def as_json(self) -> JSONObject:
        """All counts by name; cost null where unknown."""
        return {
            "calls": self.calls,
            "input": self.input,
            "output": self.output,
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
            "reasoning": self.reasoning,
            "unreported": self.unreported,
            "cost_usd": self.cost_usd,
        }


def usage_from_chat(body: JSONObject) -> Usage:
    """The usage of one Chat Completions response (`prompt_tokens` already includes cached ones)."""
    raw = body.get("usage")
    if not isinstance(raw, dict):
        return Usage(calls=1, unreported=1)
    cost = raw.get("cost")  # some providers report what they charge: it is preferred to any price table
    prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    return Usage(
        calls=1,
        input=_count(raw.get("prompt_tokens")),
        output=_count(raw.get("completion_tokens")),
        cache_read=_count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else 0,
        cache_write=_count(prompt.get("cache_write_tokens")) if isinstance(prompt, dict) else 0,
        reasoning=_count(completion.get("reasoning_tokens")) if isinstance(completion, dict) else 0,
        cost_usd=_money(cost),
    )


def usage_from_responses(body: JSONObject) -> Usage:
    """The usage of one OpenAI Responses response (`input_tokens` already includes cached ones)."""
    raw = body.get("usage")
    if not isinstance(raw, dict):
        return Usage(calls=1, unreported=1)
    given, made = raw.get("input_tokens_details"), raw.get("output_tokens_details")
    return Usage(
        calls=1,
        input=_count(raw.get("input_tokens")),
        output=_count(raw.get("output_tokens")),
        cache_read=_count(given.get("cached_tokens")) if isinstance(given, dict) else 0,
        cache_write=_count(given.get("cache_write_tokens")) if isinstance(given, dict) else 0,
        reasoning=_count(made.get("reasoning_tokens")) if isinstance(made, dict) else 0,
        cost_usd=_money(raw.get("cost")),
    )


def usage_from_messages(body: JSONObject) -> Usage:
    """The usage of one Anthropic Messages response, whose `input_tokens` leave out what a cache read or took."""
    raw = body.get("usage")
    if not isinstance(raw, dict):
        return Usage(calls=1, unreported=1)
    read, written = _count(raw.get("cache_read_input_tokens")), _count(raw.get("cache_creation_input_tokens"))
    made = raw.get("output_tokens_details")
    return Usage(
        calls=1,
        input=_count(raw.get("input_tokens")) + read + written,
        output=_count(raw.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=_count(made.get("thinking_tokens")) if isinstance(made, dict) else 0,
        cost_usd=_money(raw.get("cost")),
    )


def usage_of(body: JSONObject, dialect: JSONValue = None) -> Usage:
    """The usage of one response in any dialect of the model wire; None is Chat Completions."""
    return _USAGE.get(str(dialect), usage_from_chat)(body)


_USAGE: Final = {"openai-responses": usage_from_responses, "anthropic-messages": usage_from_messages}


_TOKENS_MAX: Final = 10**9  # of one call: beyond any context window there is
_USD_MAX: Final = 10**5  # of one call


def implausible(usage: JSONValue) -> list[str]:
    """The numbers of a response's `usage` that cannot be, by their path: negative, NaN, or beyond all measure."""
    wrong: list[str] = []
    if isinstance(usage, dict):
        _look(usage, "", wrong)
    return wrong


def _look(usage: JSONObject, above: str, wrong: list[str]) -> None:
    for key, value in usage.items():
        kind = type(value)
        if kind is int or kind is float:
            if not 0 <= value <= (_USD_MAX if "cost" in key else _TOKENS_MAX):  # type: ignore[operator]  # NaN is neither
                wrong.append(above + key)
        elif kind is dict:
            _look(value, f"{above}{key}.", wrong)  # type: ignore[arg-type]


def _count(value: JSONValue) -> int:
    return value if type(value) is int and value >= 0 else 0


def _money(value: JSONValue) -> float | None:
    """An amount of US dollars; None for what is none."""
    return float(value) if type(value) in (int, float) and 0 <= value <= 1e12 else None  # type: ignore[operator,arg-type]
