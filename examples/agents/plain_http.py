"""An agent with nothing but an HTTP client: Chat Completions at OPENAI_BASE_URL, MCP at EVALCORE_MCP_URL."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import httpx2

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "plain-http", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def mcp(http: httpx2.Client, method: str, **params: Any) -> Any:
    """One MCP request of the revision without a handshake."""
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    answer = http.post(os.environ["EVALCORE_MCP_URL"], headers=headers, json=body).json()
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["result"]


def model(http: httpx2.Client, messages: list[Any], tools: list[Any]) -> Any:
    """One model call."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = {"model": os.environ["EVALCORE_MODEL"], "messages": messages, "tools": tools}
    answer = http.post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", headers=headers, json=body)
    answer.raise_for_status()
    return answer.json()["choices"][0]["message"]


def main() -> None:
    """Ask, call, repeat; the answer goes to standard output."""
    messages: list[Any] = [{"role": "user", "content": sys.argv[1]}]
    with httpx2.Client(trust_env=False, timeout=600) as http:
        listed = mcp(http, "tools/list")["tools"]
        tools = [
            {
                "type": "function",
                "function": {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]},
            }
            for t in listed
        ]
        while (message := model(http, messages, tools)).get("tool_calls"):
            messages.append(message)
            for call in message["tool_calls"]:
                function = call["function"]
                result = mcp(http, "tools/call", name=function["name"], arguments=json.loads(function["arguments"]))
                text = "\n".join(part.get("text", "") for part in result["content"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    print(message.get("content") or "")


if __name__ == "__main__":
    main()
