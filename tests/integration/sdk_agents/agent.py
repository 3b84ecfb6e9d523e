"""An agent on an official SDK and the MCP SDK's client, all by default: `agent.py PROMPT DIALECT STYLE ERA`.

DIALECT is chat, responses or messages; STYLE is sync, async or stream; ERA is the mode of the MCP client. It knows no
address: the SDKs find theirs in the environment, the MCP client in EVALCORE_MCP_URL.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client

Said = tuple[str, list[tuple[str, str, Any]]]  # text, and calls: id, name, arguments


class Chat:
    """OpenAI Chat Completions."""

    def __init__(self, style: str, tools: list[Any], prompt: str) -> None:
        import openai

        self.style, self.client = style, openai.OpenAI() if style == "sync" else openai.AsyncOpenAI()
        self.messages: list[Any] = [{"role": "user", "content": prompt}]
        self.tools: Any = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description or "", "parameters": t.input_schema},
            }
            for t in tools
        ]

    async def ask(self) -> Said:
        request: Any = {"model": "what-it-likes", "messages": self.messages, "tools": self.tools}
        completions: Any = self.client.chat.completions
        if self.style == "stream":
            async with completions.stream(**request) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_completion()
        elif self.style == "sync":
            reply = await asyncio.to_thread(completions.create, **request)
        else:
            reply = await completions.create(**request)
        message = reply.choices[0].message
        self.messages.append(message.model_dump(exclude_none=True))
        calls = message.tool_calls or []
        return message.content or "", [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls]

    def give(self, results: list[tuple[str, str]]) -> None:
        self.messages += [{"role": "tool", "tool_call_id": name, "content": text} for name, text in results]


class Responses:
    """OpenAI Responses, without state at the provider."""

    def __init__(self, style: str, tools: list[Any], prompt: str) -> None:
        import openai

        self.style, self.client = style, openai.OpenAI() if style == "sync" else openai.AsyncOpenAI()
        self.items: list[Any] = [{"role": "user", "content": prompt}]
        self.tools: Any = [
            {
                "type": "function",
                "name": t.name,
                "description": t.description or "",
                "parameters": t.input_schema,
                "strict": False,
            }
            for t in tools
        ]

    async def ask(self) -> Said:
        request: Any = {"model": "what-it-likes", "input": self.items, "tools": self.tools, "store": False}
        responses: Any = self.client.responses
        if self.style == "stream":
            async with responses.stream(**request) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_response()
        elif self.style == "sync":
            reply = await asyncio.to_thread(responses.create, **request)
        else:
            reply = await responses.create(**request)
        self.items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
        calls = [item for item in reply.output if item.type == "function_call"]
        return reply.output_text, [(c.call_id, c.name, json.loads(c.arguments)) for c in calls]

    def give(self, results: list[tuple[str, str]]) -> None:
        self.items += [{"type": "function_call_output", "call_id": name, "output": text} for name, text in results]


class Messages:
    """Anthropic Messages."""

    def __init__(self, style: str, tools: list[Any], prompt: str) -> None:
        import anthropic

        self.style, self.client = style, anthropic.Anthropic() if style == "sync" else anthropic.AsyncAnthropic()
        self.messages: list[Any] = [{"role": "user", "content": prompt}]
        self.tools: Any = [
            {"name": t.name, "description": t.description or "", "input_schema": t.input_schema} for t in tools
        ]

    async def ask(self) -> Said:
        request: Any = {"model": "what-it-likes", "max_tokens": 500, "messages": self.messages, "tools": self.tools}
        messages: Any = self.client.messages
        if self.style == "stream":
            async with messages.stream(**request) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_message()
        elif self.style == "sync":
            reply = await asyncio.to_thread(messages.create, **request)
        else:
            reply = await messages.create(**request)
        self.messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in reply.content]})
        text = "".join(b.text for b in reply.content if b.type == "text")
        return text, [(b.id, b.name, b.input) for b in reply.content if b.type == "tool_use"]

    def give(self, results: list[tuple[str, str]]) -> None:
        content = [{"type": "tool_result", "tool_use_id": name, "content": text} for name, text in results]
        self.messages.append({"role": "user", "content": content})


KINDS: dict[str, Callable[[str, list[Any], str], Any]] = {"chat": Chat, "responses": Responses, "messages": Messages}


async def main(prompt: str, dialect: str, style: str, era: str) -> None:
    """Ask, call, repeat; print the answer."""
    async with Client(os.environ["EVALCORE_MCP_URL"], mode=era, cache=None) as session:
        model = KINDS[dialect](style, (await session.list_tools()).tools, prompt)
        ask: Callable[[], Awaitable[Said]] = model.ask
        while (said := await ask())[1]:
            results: list[tuple[str, str]] = []
            for name, tool, arguments in said[1]:
                result: Any = await session.call_tool(tool, arguments)
                results.append((name, "\n".join(part.text for part in result.content if part.type == "text")))
            model.give(results)
        print(said[0])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
