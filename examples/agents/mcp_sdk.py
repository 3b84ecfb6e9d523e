"""An agent on the MCP SDK's client: its tools are where its configuration says, its task comes on standard input."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters


def servers(path: str) -> list[Any]:
    """What an `mcpServers` file names: addresses, or programs to start."""
    found = json.loads(Path(path).read_text())["mcpServers"].values()
    return [
        s["url"] if "url" in s else StdioServerParameters(command=s["command"], args=s["args"], env=s["env"])
        for s in found
    ]


async def main(config: str, name: str, answer: str) -> None:
    """Ask, call, repeat; the answer goes to a file."""
    messages: list[Any] = [{"role": "user", "content": sys.stdin.read()}]
    (server,) = servers(config)
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    async with httpx2.AsyncClient(trust_env=False, timeout=600) as http, Client(server, cache=None) as session:
        listed = (await session.list_tools()).tools
        tools = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description or "", "parameters": t.input_schema},
            }
            for t in listed
        ]
        while True:
            body = {"model": name, "messages": messages, "tools": tools}
            headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
            reply = await http.post(url, headers=headers, json=body)
            reply.raise_for_status()
            message = reply.json()["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                function = call["function"]
                result: Any = await session.call_tool(function["name"], json.loads(function["arguments"]))
                text = "\n".join(part.text for part in result.content if part.type == "text")
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    await asyncio.to_thread(Path(answer).write_text, message.get("content") or "")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
