"""A user's own model server, asked over HTTP by the installed command, on real tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


class FirstTool(BaseHTTPRequestHandler):
    """A model that calls the first tool it is offered with guesses of the right types, then says it is done."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = any(m["role"] == "tool" for m in body["messages"])
        message = {"role": "assistant", "content": "done"} if told else _call(body["tools"][0]["function"])
        choice = {"index": 0, "message": message, "finish_reason": "stop" if told else "tool_calls"}
        usage = {"prompt_tokens": 50, "completion_tokens": 5}
        self._say({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

    def _say(self, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _call(function: dict[str, Any]) -> dict[str, Any]:
    guesses: dict[str, Any] = {"integer": 5, "number": 5.0, "string": "x", "boolean": True, "array": [], "object": {}}
    schema = function["parameters"]
    arguments = {n: guesses.get(schema["properties"][n].get("type"), "x") for n in schema.get("required", [])}
    call = {"name": function["name"], "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}


@pytest.fixture
def server() -> Iterator[str]:
    """The address of the server."""
    running = ThreadingHTTPServer(("127.0.0.1", 0), FirstTool)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/v1"
    running.shutdown()
    running.server_close()


def test_a_local_server_is_measured_on_real_tasks(server: str, toolkit: object, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("evalcore")), "run", "bfcl-simple-python", "--limit", "12", "--json"]
    named = ["--model", "openai-compatible/x", "--base-url", server, "--yes", "--quiet", "--name", "local"]
    done = subprocess.run(
        [*command, *named], cwd=tmp_path, env=dict(os.environ), check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["scorecard"]["cells"]
    assert (cell["trials"], cell["exits"]["completed"], cell["voids"]) == (12, 12, 0)
    assert cell["outcomes"]["pass"] + cell["outcomes"]["fail"] == 12
    assert cell["outcomes"]["pass"] == 2  # 5 is the right guess for two factorials
    assert cell["arm"]["axes"]["base_url"] == server
    assert cell["usage"]["agent"]["input"] == 12 * 2 * 50
