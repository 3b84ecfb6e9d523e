"""An MCP server over standard input and output in plain Python, quick to start and able to misbehave.

Its tools are those of its first argument, separated by commas: put and get keep a value in `state.json` of the folder;
the others are in `call`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STATE = Path("state.json")
ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}
ODD = {
    "title": "Odd",
    "annotations": {"readOnlyHint": True, "x-unknown": [1, None]},
    "inputSchema": {**ANYTHING, "$defs": {"a": {"type": "integer"}}, "x-extra": [1, 5.0, None]},
}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def call(name: str, arguments: dict[str, Any], token: object) -> dict[str, Any] | None:
    """The result; None if there is to be no answer."""
    if name == "hang":
        return None
    if name in PLAIN:
        return PLAIN[name]
    return DOING[name](arguments, token) if name in DOING else where(arguments, token)


def put(arguments: dict[str, Any], _: object) -> dict[str, Any]:
    STATE.write_text(json.dumps(arguments.get("value")))
    return text("put")


def get(_: dict[str, Any], __: object) -> dict[str, Any]:
    held = STATE.read_text() if STATE.exists() else "null"
    return text(held, structuredContent={"value": json.loads(held)})


def steps(_: dict[str, Any], token: object) -> dict[str, Any]:
    for step in range(1, 4):
        say(method="notifications/progress", params={"progressToken": token, "progress": step, "total": 3})
    return text("done")


def chatter(arguments: dict[str, Any], __: object) -> dict[str, Any]:
    for number in range(arguments["times"]):
        say(method="notifications/message", params={"level": "info", "data": f"line {number}"})
    return text("said")


def die(_: dict[str, Any], __: object) -> dict[str, Any]:
    sys.stderr.write("Traceback\nRuntimeError: out of ideas\n")
    sys.stderr.flush()
    os._exit(3)


def grow(_: dict[str, Any], __: object) -> dict[str, Any]:
    TOOLS.append("fail")
    say(method="notifications/tools/list_changed")
    return text("grown")


def where(arguments: dict[str, Any], _: object) -> dict[str, Any]:
    return text(json.dumps({"cwd": str(Path.cwd()), "pid": os.getpid(), "children": CHILDREN, "arguments": arguments}))


PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}
HELD = {"type": "resource", "resource": {"uri": "file:///b", "text": "B"}}
PLAIN = {
    "fail": text("it failed", isError=True),
    "see": {"content": [PICTURE, LINK, HELD, {"type": "text", "text": "seen"}], "structuredContent": {"n": 1}},
    "hostile": text("\x1b]0;owned\x07<script>alert(1)</script>\u202e"),
}
DOING = {
    "put": put,
    "get": get,
    "steps": steps,
    "die": die,
    "chatter": chatter,
    "grow": grow,
    "long": lambda arguments, _: text("x" * int(arguments["size"])),
    "environment": lambda _, __: text(json.dumps(dict(os.environ))),
}


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def ask(params: dict[str, Any]) -> dict[str, Any]:
    """A tool of the newest revision that wants input first, and says what it got."""
    given = params.get("inputResponses")
    if given is not None:
        return text(json.dumps([given, params.get("requestState")]))
    wanted = {"mode": "form", "message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}}
    requests = {"who": {"method": "elicitation/create", "params": wanted}}
    if "sample" in sys.argv:
        messages = [{"role": "user", "content": {"type": "text", "text": "x"}}]
        requests = {"say": {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 9}}}
    return {"resultType": "input_required", "inputRequests": requests, "requestState": "as it was"}


def modern(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """A result as the newest revision has it."""
    return None if result is None else {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    method, params = request["method"], request.get("params") or {}
    if "modern" in sys.argv and method == "server/discover":
        info = {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1"}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": info}
    if method == "tools/call" and params["name"] == "ask":
        return ask(params)
    if method == "initialize":
        info = {"name": "raw", "version": "1"}
        revision = os.environ.get("RAW_PROTOCOL") or params["protocolVersion"]
        return {"protocolVersion": revision, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, "description": f"does {name}", **ODD} for name in TOOLS]}
    if method == "tools/call":
        token = (params.get("_meta") or {}).get("progressToken")
        return call(params["name"], params.get("arguments") or {}, token)
    if method == "ping" and "deaf" not in sys.argv:
        return {}
    return None


def main() -> None:
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        CHILDREN.append(subprocess.Popen([sys.executable, "-c", child], start_new_session=True).pid)
    if "slow-start" in sys.argv:
        time.sleep(1.0)
    sys.stderr.write("ready\n" + "e" * int(os.environ.get("RAW_NOISE", "0")))
    sys.stderr.flush()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        known = request["method"] in METHODS
        result = answer(request) if known else None
        result = modern(result) if "modern" in sys.argv else result
        if result is not None:
            say(id=request["id"], result=result)
        elif not known:
            say(id=request["id"], error={"code": -32601, "message": "Method not found"})


TOOLS: list[str] = sys.argv[1].split(",") if len(sys.argv) > 1 else []
CHILDREN: list[int] = []
METHODS = (
    ("server/discover", "tools/list", "tools/call")
    if "modern" in sys.argv
    else ("initialize", "tools/list", "tools/call", "ping")
)

if __name__ == "__main__":
    main()
