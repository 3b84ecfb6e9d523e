"""The harness `command`: two agents of our own before both wires, and what any agent may see, leave behind, and say."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import psutil
import pytest

from evalcore.builtin.command import CommandHarness, mcp_config, redacted
from evalcore.builtin.command_file import Agent, Mcp, read_agent
from evalcore.contracts import Job
from evalcore.engine.plan import make_plan
from evalcore.engine.run import RunOptions, start
from evalcore.engine.services import LocalServices
from evalcore.engine.store import TraceStore, read_attempts, read_gradings
from evalcore.errors import ConfigError
from evalcore.plugins import PluginRef, load
from evalcore.testing import toy
from evalcore.values.json import JSONObject
from evalcore.values.study import Study
from evalcore.values.task import Limits, Message
from evalcore.values.trial import Attempt, HarnessExit
from tests.integration.conftest import Called
from tests.integration.wire_rig import on_loop, open_wires, serving, until
from tests.oracles import ROOT

Cli: TypeAlias = Callable[..., Called]

AGENTS: Final = ROOT / "examples" / "agents"
KEY: Final = "sk-parent-secret-0123456789"
PLAYBOOK: Final = """
[[reply]]
match = { call = 1 }
tool_calls = [{ name = "get_weather", arguments = { city = "Bern" } }]
usage = { input = 100, output = 20 }

[[reply]]
text = "It is 10 degrees in Bern."
usage = { input = 150, output = 10 }
"""


async def trial(folder: Path, agent: Path, limits: Limits | None = None) -> tuple[Attempt, str, list[JSONObject]]:
    """One trial of toy-weather: its attempt, outcome, and events."""
    (folder / "play.toml").write_text(PLAYBOOK)
    registry = load(only=())
    registry.add(PluginRef("toy", "toy", "1", "evalcore.testing.toy"), toy)
    services = LocalServices(registry, folder)
    arms = {"it": {"harness": "command", "model": "scripted/play.toml", "agent": str(agent)}}
    study = Study(name="c", benchmarks=("toy-weather:1",), arms=arms, limits=limits or Limits())
    try:
        plan = await make_plan(study, registry, services, "r")
        end = await start(plan, folder / "r", registry, services, RunOptions())
        assert end.error is None
    finally:
        await services.close()
    (attempt,) = read_attempts(folder / "r")
    (grading,) = read_gradings(folder / "r", plan.stamp.grading)
    store = TraceStore(folder / "r")
    events = list(store.read(attempt.trace).events())
    store.close()
    return attempt, grading.verdict.outcome, events


def write(folder: Path, script: str, **more: Any) -> Path:
    """An agent that is a Python script."""
    import tomli_w

    (folder / "agent.py").write_text(script)
    fields = {"argv": ["{python}", "{agent_dir}/agent.py", "{prompt}"], **more}
    (folder / "agent.toml").write_text(tomli_w.dumps(fields))
    return folder / "agent.toml"


async def once(folder: Path, script: str, task: str = "Do it.", **more: Any) -> HarnessExit:
    """What a script's exit says, before wires of their own."""
    path = write(folder, script, **more)
    workdir = folder / "work"
    workdir.mkdir(exist_ok=True)
    async with serving() as server:
        wires = await open_wires(server)
        wires.tools.url, wires.channel.url = wires.tool_door.url, wires.model_door.url
        messages = (Message("system", "Be kind."), Message("user", task))
        job = Job(messages, (wires.tools,), wires.channel, {"agent": str(path)}, Limits(), lambda: workdir)
        return await CommandHarness().run(job)


# ── whole trials ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["plain-http", "mcp-sdk"])
@on_loop
async def test_an_agent_of_its_own_kind_passes_and_is_measured_from_the_wires(name: str, tmp_path: Path) -> None:
    attempt, outcome, events = await trial(tmp_path, AGENTS / f"{name}.toml")
    assert outcome == "pass"
    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.code) == ("completed", 0)
    usage = attempt.usage["agent"]
    assert (usage.calls, usage.input, usage.output) == (2, 250, 30)
    assert (attempt.tool_calls, attempt.tool_errors) == (1, 0)
    assert [e["arguments"] for e in events if e["e"] == "tool.call"] == [{"city": "Bern"}]
    (left,) = (e for e in events if e["e"] == "harness.exit")
    evidence: Any = left["evidence"]
    assert evidence["version"].startswith(f"{name} 1, ") and len(evidence["build"]) == 16


SPY: Final = """
import json, os, pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
orphan = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!"], stdout=subprocess.PIPE, start_new_session=True)
seen = {
    "environment": dict(os.environ), "argv": pathlib.Path("/proc/self/cmdline").read_text(),
    "files": sorted(os.listdir(".")), "home": sorted(os.listdir(os.environ["HOME"])),
    "pids": [os.getpid(), child.pid, orphan.pid, int(orphan.stdout.readline())],
    "descriptors": len(os.listdir("/proc/self/fd")),
}
pathlib.Path(sys.argv[2]).write_text(json.dumps(seen))
if sys.argv[3] == "hang":
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
print(os.environ["OPENAI_BASE_URL"], "it is 10 degrees in Bern")
"""


def runs(pid: int) -> bool:
    """Whether a process lives; one that only waits to be buried does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def spied(folder: Path, then: str) -> Path:
    return write(
        folder, SPY, argv=["{python}", "{agent_dir}/agent.py", "{prompt}", str(folder / "seen.json"), then]
    )  # fmt: skip


@on_loop
async def test_no_key_reaches_it_no_token_is_in_its_argv_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_TOKEN"):
        monkeypatch.setenv(name, KEY)
    _, outcome, events = await trial(tmp_path, spied(tmp_path, "end"))
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert outcome == "pass"
    assert KEY not in json.dumps(seen)
    assert seen["environment"]["OPENAI_API_KEY"] == seen["environment"]["ANTHROPIC_API_KEY"]
    token = seen["environment"]["EVALCORE_MCP_URL"].split("/")[4]
    assert len(token) == 32 and token not in seen["argv"]
    assert (seen["files"], seen["home"]) == ([], []) and seen["descriptors"] <= 6
    assert not any(map(runs, seen["pids"]))
    model_token = seen["environment"]["OPENAI_BASE_URL"].split("/")[4]
    (left,) = (e for e in events if e["e"] == "harness.exit")
    assert model_token not in json.dumps(left["evidence"])
    assert not os.access(seen["environment"]["HOME"], os.F_OK)


@on_loop
async def test_the_trials_time_ends_the_whole_tree(tmp_path: Path) -> None:
    attempt, _, _ = await trial(tmp_path, spied(tmp_path, "hang"), Limits(wall_s=3.0))
    assert attempt.exit is not None and (attempt.exit.kind, attempt.exit.limit) == ("limit", "wall_s")
    pids = json.loads((tmp_path / "seen.json").read_text())["pids"]
    assert not any(map(runs, pids))


@on_loop
async def test_cancelling_ends_the_whole_tree(tmp_path: Path) -> None:
    task = asyncio.ensure_future(
        once(tmp_path, SPY, argv=["{python}", "{agent_dir}/agent.py", "{prompt}", str(tmp_path / "seen.json"), "hang"])
    )
    await asyncio.wait_for(until(lambda: _whole(tmp_path / "seen.json")), 60)
    pids = json.loads((tmp_path / "seen.json").read_text())["pids"]
    assert sum(map(runs, pids)) >= 3  # the shell in between has ended
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert not any(map(runs, pids))


def _whole(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except (OSError, ValueError):
        return False
    return True


# ── prompts, answers, exits ──────────────────────────────────────────────────────────────────────────────────────────

TELL: Final = 'import sys, json; print(json.dumps(sys.argv[1:])); print(\'{"deep": [{"text": "found"}]}\')'


@on_loop
async def test_arguments_are_filled_one_by_one_and_never_meet_a_shell(tmp_path: Path) -> None:
    argv = [
        "{python}",
        "{agent_dir}/agent.py",
        "{prompt}",
        "--model={model}",
        "{{model}}",
        '{"a":{"b":1}}',
        "$HOME;*",
        "{system}",
    ]
    done = await once(tmp_path, TELL, "a b; $(touch /x) {workdir}\n'\"", argv=argv)
    assert done.answer is not None
    assert json.loads(done.answer.splitlines()[0]) == [
        "a b; $(touch /x) {workdir}\n'\"", "--model=it", "{model}", '{"a":{"b":1}}', "$HOME;*", "Be kind."
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["stdin", "file"])
@on_loop
async def test_a_long_prompt_by_standard_input_or_file(how: str, tmp_path: Path) -> None:
    text = "ü" * 200_000
    argv = ["{python}", "{agent_dir}/agent.py", *(["{prompt_file}"] if how == "file" else [])]
    script = "import sys; t = (open(sys.argv[1]) if sys.argv[1:] else sys.stdin).read(); print(len(t), t[:8])"
    done = await once(tmp_path, script, text, argv=argv, prompt=how, env={"PYTHONUTF8": "1"})
    assert done.answer == "200010 Be kind."
    with pytest.raises(ConfigError, match="too long for an argument"):
        await once(tmp_path, script, text)


@pytest.mark.parametrize(
    "answer, expected",
    [
        ({"source": "last_line"}, '{"deep": [{"text": "found"}]}'),
        ({"source": "json", "key": "deep.0.text"}, "found"),
        ({"source": "json", "key": "deep.-1"}, '{"text": "found"}'),
        ({"source": "json", "key": "deep.1"}, None),
        ({"source": "json", "key": "no.such"}, None),
        ({"source": "file", "path": "a.txt"}, None),
    ],
)
@on_loop
async def test_the_answer_is_where_the_file_says(
    answer: Mapping[str, str], expected: str | None, tmp_path: Path
) -> None:
    done = await once(tmp_path, TELL, answer=answer)
    assert (done.answer, done.claim) == (expected, "completed")
    assert ("detail" in done.evidence) == (expected is None)


@pytest.mark.parametrize("trick", ["os.symlink('/etc/hostname', 'a')", "os.mkfifo('a')", "os.mkdir('a')"])
@on_loop
async def test_an_answer_that_is_no_file_is_none(trick: str, tmp_path: Path) -> None:
    done = await once(tmp_path, f"import os; {trick}", answer={"source": "file", "path": "a"})
    assert done.answer is None and "detail" in done.evidence


@on_loop
async def test_exit_codes_mean_what_the_file_says(tmp_path: Path) -> None:
    script = "import sys; print('why', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    exits = {"3": "refused", "4": "completed"}
    claims = [
        (await once(tmp_path, script, code, exits=exits, argv=["{python}", "{agent_dir}/agent.py", code, "{prompt}"]))
        for code in "0345"
    ]
    assert [c.claim for c in claims] == ["completed", "refused", "completed", "crashed"]
    assert [c.exit_code for c in claims] == [0, 3, 4, 5]
    assert claims[3].evidence["detail"] == "the agent ended with exit code 5: why"
    killed = await once(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert (killed.claim, killed.exit_code, killed.evidence["signal"]) == ("crashed", None, 9)


@on_loop
async def test_its_own_time_and_its_output_are_bounded(tmp_path: Path) -> None:
    script = (
        "import time\nfor _ in range(300): print('x' * 100_000, flush=True)\nprint('end', flush=True)\ntime.sleep(600)"
    )
    done = await once(tmp_path, script, timeout_s=5.0, max_output_bytes=200_000, answer={"source": "last_line"})
    assert (done.claim, done.evidence["limit"]) == ("limit", "timeout_s")
    assert done.answer == "end" and done.evidence["truncated"] is True
    assert len(str(done.evidence["stdout"])) < 70_000


def test_tokens_of_doors_are_taken_out_of_evidence() -> None:
    url = "http://127.0.0.1:5/m/0123456789abcdef0123456789abcdef/v1"
    assert redacted(f"at {url}, {url}") == "at http://127.0.0.1:5/m/[token]/v1, http://127.0.0.1:5/m/[token]/v1"


# ── configuration that it writes, and files that it refuses ──────────────────────────────────────────────────────────


def test_the_mcp_configuration_in_each_format() -> None:
    import tomllib

    urls = {"toolset": "http://h/e/t/mcp"}
    http = json.loads(mcp_config(Agent(("a",)), urls))
    assert http == {"mcpServers": {"toolset": {"type": "http", "url": "http://h/e/t/mcp"}}}
    stdio = json.loads(mcp_config(Agent(("a",), mcp=Mcp(transport="stdio")), urls))["mcpServers"]["toolset"]
    assert stdio["env"] == {"EVALCORE_MCP_URL": "http://h/e/t/mcp"} and "http" not in str(stdio["args"])
    toml = tomllib.loads(mcp_config(Agent(("a",), mcp=Mcp(format="toml")), urls))
    assert toml == {"mcp_servers": {"toolset": {"url": "http://h/e/t/mcp"}}}


@on_loop
async def test_the_configuration_is_also_where_the_agent_looks_for_it(tmp_path: Path) -> None:
    script = "import os; print(oct(os.stat('.a/mcp.json').st_mode)[-3:]); print(open('.a/mcp.json').read())"
    done = await once(tmp_path, script, mcp={"file": ".a/mcp.json"})
    assert done.answer is not None and done.answer.startswith("600") and "mcpServers" in done.answer
    script = "import os; print(open(os.path.expanduser('~/.codex/config.toml')).read())"
    done = await once(tmp_path, script, mcp={"file": "~/.codex/config.toml", "format": "toml"})
    assert done.answer is not None and done.answer.startswith("[mcp_servers.odd]")


BAD: Final = """
argv = ["x", "{mcp_url}", "{promt}"]
version = ["x", "{model}"]
timeout_s = 0
colour = "red"
"""
WORSE: Final = """
argv = ["x", "{mcp_url}", "{promt}"]
version = ["x", "{model}"]
exits = { "-1" = "refused", 300 = "crashed" }

[env]
"A=B" = "x"
EVALCORE_MCP_URL = "x"
HOME = "/"
Y = "{modl_url}"

[answer]
source = "file"
key = "a"

[mcp]
file = "../../x"
"""


@pytest.mark.parametrize(
    "text, places",
    [
        (BAD, ["$.colour", "$.timeout_s"]),
        (
            WORSE,
            ["$.argv[1]", "$.argv[2]", "$.version[1]", "$.argv", '$.env."A=B"', "$.env.EVALCORE_MCP_URL", "$.env.HOME",
             "$.env.Y", "$.answer.path", "$.answer.key", "$.mcp.file", '$.exits."-1"', '$.exits."300"'],
        ),
        ("argv = []", ["$.argv", "$.argv"]),
        ('prompt = "stdin"\nargv = ["x", "{prompt}"]', ["$.prompt"]),
    ],
)  # fmt: skip
def test_everything_wrong_with_a_file_is_told_with_its_path(text: str, places: list[str], tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_agent(tmp_path / "agent.toml")
    assert sorted(f.where for f in caught.value.faults) == sorted(places)


def test_the_examples_fit_in_fifteen_lines() -> None:
    for path in AGENTS.glob("*.toml"):
        read_agent(path)
        assert len(path.read_text().splitlines()) <= 15


@on_loop
async def test_a_program_that_is_not_there_stops_the_run_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no program 'no-such-agent'"):
        await once(tmp_path, "", argv=["no-such-agent", "{prompt}"])
    with pytest.raises(ConfigError, match="cannot start 'no-such-agent'"):
        await once(tmp_path, "", version=["no-such-agent"])


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_would_be_executed_is_shown_and_runs_after_a_yes_only(cli: Cli, tmp_path: Path) -> None:
    shutil.copy(AGENTS / "plain-http.toml", tmp_path)
    (tmp_path / "plain_http.py").write_text("open('ran', 'w'); print('\\x1b[31m')")
    (tmp_path / "play.toml").write_text(PLAYBOOK)
    flags = ("toy-echo", "--limit", "1", "--harness", "command", "--model", "scripted/play.toml")
    asked = cli("run", *flags, "--set", "agent=plain-http.toml")
    assert asked.exit_code == 2 and "nobody is here to be asked" in asked.stderr
    assert "plain_http.py '{prompt}'" in asked.stderr
    assert not (tmp_path / "runs").exists()
    assert "This executes 2 commands:" in cli("run", *flags, "--set", "agent=plain-http.toml", "--yes").stderr
    unnamed = cli("run", *flags, "--yes")
    assert unnamed.exit_code == 2 and "--set agent=AGENT.toml" in unnamed.stderr
