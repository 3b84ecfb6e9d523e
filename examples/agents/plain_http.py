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


def mcp(http: httpx2.Client, method: str, meta: dict[str, Any], **params: Any) -> Any:
    """One MCP request of the revision without a handshake."""
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Accept": "application/json, text/event-stream",
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": {**META, **meta}}}
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


def called(http: httpx2.Client, function: Any) -> str:
    """One tool call, its result as text. Arguments that are no JSON are reported as they are: the wire refuses them."""
    meta, arguments = {}, {}
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        meta = {"evalcore/raw-arguments": function["arguments"]}
    result = mcp(http, "tools/call", meta, name=function["name"], arguments=arguments)
    return "\n".join(part.get("text", "") for part in result["content"])


def main() -> None:
    """Ask, call, repeat; the answer goes to standard output."""
    messages: list[Any] = [{"role": "user", "content": sys.argv[1]}]
    with httpx2.Client(trust_env=False, timeout=600) as http:
        listed = mcp(http, "tools/list", {})["tools"]
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
                text = called(http, call["function"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    print(message.get("content") or "")


if __name__ == "__main__":
    main()
