"""`evalcore init`: what it writes runs at once, and nothing that was there is touched."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.wire_rig import stdio

FILES = [".github/workflows/evalcore.yml", ".mcp.json", "model.toml", "server.py", "study.toml", "tasks.jsonl"]


def evalcore(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("evalcore")), *arguments]
    environ = {k: v for k, v in os.environ.items() if k != "GITHUB_STEP_SUMMARY"}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=100)


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_what_it_writes_runs_at_once(tmp_path: Path) -> None:
    made = evalcore(tmp_path, "init", "evals")
    assert made.returncode == 0, made.stderr
    assert written(tmp_path / "evals") == FILES
    assert "evalcore run evals/study.toml" in made.stdout
    done = evalcore(tmp_path, "run", "evals/study.toml", "--name", "r", "--json")
    assert done.returncode == 0, done.stderr
    cells = {cell["arm"]["handle"]: cell for cell in json.loads(done.stdout)["scorecard"]["cells"]}
    passed = {handle: (cell["outcomes"]["pass"], cell["trials"]) for handle, cell in cells.items()}
    assert passed == {"oracle": (6, 6), "noop": (0, 6), "agent": (4, 6)}  # one task shows what a failure looks like
    assert {c["exits"]["completed"] for c in cells.values()} == {6}


def test_its_servers_are_one_more_arm_once_the_comments_are_taken_away(tmp_path: Path) -> None:
    assert evalcore(tmp_path, "init").returncode == 0
    study = tmp_path / "study.toml"
    text = study.read_text()
    for line in ("[arms.with_servers]", 'mcp_servers = ".mcp.json"', 'sandbox = "none"'):
        assert f"# {line}" in text
        text = text.replace(f"# {line}", line)
    study.write_text(text.replace('# extends = "real"', 'extends = "agent"'))
    done = evalcore(tmp_path, "run", "study.toml", "--name", "r", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    cells = {cell["arm"]["handle"]: cell for cell in json.loads(done.stdout)["scorecard"]["cells"]}
    assert (cells["with_servers"]["outcomes"]["pass"], cells["with_servers"]["voids"]) == (4, 0)
    arm = cells["with_servers"]["arm"]["digest"][:12]
    trial = evalcore(tmp_path, "trace", "r", f"capital/{arm}/1", "--json")
    assert '"env.server"' in trial.stdout, trial.stdout  # the server of .mcp.json answered


def test_its_ci_job_runs_from_the_top_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert "move .github there" in evalcore(tmp_path, "init", "evals").stdout
    job = (tmp_path / "evals" / ".github" / "workflows" / "evalcore.yml").read_text()
    steps = re.findall(r"^      - run: evalcore (.*)$", job, re.MULTILINE)
    assert [step.split()[0] for step in steps] == ["run", "report"]
    for step in steps:
        done = evalcore(tmp_path, *step.split())
        assert done.returncode == 0, done.stderr
    assert "move .github" not in evalcore(tmp_path, "init").stdout


def test_it_overwrites_nothing_and_then_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text("mine")
    (tmp_path / ".mcp.json").symlink_to("nowhere")
    refused = evalcore(tmp_path, "init")
    assert refused.returncode == 2
    assert "tasks.jsonl: is there already" in refused.stderr and ".mcp.json: is there already" in refused.stderr
    assert written(tmp_path) == ["tasks.jsonl"] and (tmp_path / "tasks.jsonl").read_text() == "mine"
    assert evalcore(tmp_path, "init", "tasks.jsonl").returncode == 2


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = evalcore(tmp_path, "init", "file/evals")
    assert refused.returncode == 2 and "cannot write" in refused.stderr and "Traceback" not in refused.stderr


def test_the_server_that_it_writes_speaks_mcp(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters

    assert evalcore(tmp_path, "init").returncode == 0
    servers = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]
    assert servers == {"notes": {"command": "python3", "args": ["${EVALCORE_MCP_DIR:-.}/server.py"]}}

    async def talk() -> tuple[list[str], str]:
        program = StdioServerParameters(command=sys.executable, args=["server.py"], cwd=str(tmp_path))
        async with Client(stdio(program), cache=None) as session:
            names = [tool.name for tool in (await session.list_tools()).tools]
            result: Any = await session.call_tool("count_words", {"text": "one two three"})
            return names, result.content[0].text

    assert asyncio.run(talk()) == (["count_words"], "3")
