"""Harness `command`: any agent that a file describes (`command_file`), as a process of its own before both wires.

The process sees an allow-list of our environment, the addresses of its trial, and dummies in place of keys. It and
everything it starts are ended with it: when it exits, at a limit, and when the trial is cancelled.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from evalcore.builtin.command_file import Agent, all_filled, filled, read_agent
from evalcore.contracts import HarnessVersion, Job, Services
from evalcore.errors import AgentError, ConfigError, InfraError
from evalcore.process.environment import clean_environment
from evalcore.process.runner import Completed, run
from evalcore.values.json import JSONObject, JSONValue, parse
from evalcore.values.task import Message
from evalcore.values.trial import HarnessExit

DUMMY: Final = "evalcore-keeps-the-keys"  # in place of a key; the address is what opens a door
FOR_EVER_S: Final = 30 * 86400.0  # the engine ends a trial by its own clock
EVIDENCE_CAP: Final = 64 << 10  # bytes of each output that the trace keeps
ARGUMENT_CAP: Final = 120_000  # bytes: Linux takes 131,072 for one argument
PROBE_S: Final = 20.0

_TOKEN: Final = re.compile(r"/([em])/[0-9a-f]{32}")


class CommandHarness:
    """Runs what the axis `agent` names."""

    def __init__(self, services: Services | None = None, info: object = None) -> None:
        self._base = services.base if services else Path()
        self._read: dict[Path, Agent] = {}
        self._versions: dict[Path, HarnessVersion] = {}
        self._asking = asyncio.Lock()

    async def probe(self) -> HarnessVersion:
        """Of this harness; an agent's own is what `probe_agent` finds."""
        return HarnessVersion("1")

    def commands(self, options: Mapping[str, JSONValue]) -> Sequence[Sequence[str]]:
        """What an arm would execute, as its file has it, for a person to look at first. Raises ConfigError."""
        agent, path = self._agent(options)
        values = {"agent_dir": str(path.parent), "python": sys.executable}
        argvs = [argv for argv in (agent.argv, agent.version) if argv]
        return [[_partly(text, values) for text in argv] for argv in argvs]

    async def probe_agent(self, options: Mapping[str, JSONValue]) -> HarnessVersion:
        """What the agent says of itself, asked once; `build` names its file and the programs beside it."""
        agent, path = self._agent(options)
        async with self._asking:
            if path not in self._versions:
                self._versions[path] = HarnessVersion(await self._version(agent, path), _build(agent, path))
        return self._versions[path]

    async def _version(self, agent: Agent, path: Path) -> str:
        if not agent.version:
            return ""
        with _own_folder() as own:
            argv = all_filled(agent.version, {"agent_dir": str(path.parent), "python": sys.executable})
            env = _environment(agent, own, {})
            try:
                done = await run(argv, timeout_s=PROBE_S, cwd=own, env=env, max_output_bytes=4096)
            except InfraError as error:
                raise ConfigError(
                    f"{path}: {error.message}", hint="`version` names the program that tells it"
                ) from None
        said = (done.stdout.strip() or done.stderr.strip()).decode(errors="replace").splitlines()
        return said[0][:200] if said else ""

    def varies(self, options: Mapping[str, JSONValue]) -> Sequence[str]:
        """What its file says."""
        return self._agent(options)[0].varies

    async def run(self, job: Job) -> HarnessExit:
        """One task, from the prompt to the answer. Raises ConfigError for a file or program that cannot be used."""
        agent, path = self._agent(job.options)
        version = await self.probe_agent(job.options)
        with _own_folder() as own:
            place = _Place(agent, path, own, job)
            stdin = place.prompt.encode("utf-8", "replace") if agent.prompt == "stdin" else b""
            program = shutil.which(place.argv[0], path=place.env.get("PATH"))
            if program is None:
                raise ConfigError(
                    f"{path}: no program {place.argv[0]!r}", hint="argv names one on PATH, or {agent_dir}/…"
                )
            done = await run(
                (program, *place.argv[1:]),
                stdin=stdin,
                timeout_s=agent.timeout_s or FOR_EVER_S,
                cwd=place.workdir,
                env=place.env,
                max_output_bytes=agent.max_output_bytes,
            )
            answer, why = _answer(agent, done, place.workdir)
        return _exit(agent, done, answer, why, version)

    def _agent(self, options: Mapping[str, JSONValue]) -> tuple[Agent, Path]:
        named = options.get("agent")
        if not isinstance(named, str):
            raise ConfigError("the harness `command` runs an agent, and none is named", hint="--set agent=AGENT.toml")
        path = (self._base / named).resolve()
        if path not in self._read:
            self._read[path] = read_agent(path)
        return self._read[path], path


class _Place:
    """What one run of an agent is given: its argv, its environment, its files."""

    def __init__(self, agent: Agent, path: Path, own: Path, job: Job) -> None:
        self.workdir = job.workdir()
        model_url = job.model.url if job.model else None
        urls = {tools.bridge: tools.url for tools in job.tools if tools.url is not None}
        if len(urls) < len(job.tools) or (job.model is not None and model_url is None):
            raise InfraError("the wires have no address: the harness `command` takes them over HTTP")
        system, self.prompt = _told(job.messages, apart=agent.uses("system"))
        if agent.prompt == "argument" and len(self.prompt.encode("utf-8", "replace")) > ARGUMENT_CAP:
            raise ConfigError(f"{path}: the task is too long for an argument", hint='prompt = "file", or "stdin"')
        values = {
            "prompt": self.prompt.replace("\0", " "),
            "system": system.replace("\0", " "),
            "prompt_file": str(own / "prompt.txt"),
            "model": job.model.model.partition("/")[2] if job.model else "",
            "workdir": str(self.workdir),
            "home": str(own / "home"),
            "mcp_config": str(own / f"mcp.{agent.mcp.format}"),
            "agent_dir": str(path.parent),
            "python": sys.executable,
            "model_url": model_url or "",
            "model_root": (model_url or "").removesuffix("/v1"),
            "mcp_url": next(iter(urls.values()), ""),
        }
        _write(own / "prompt.txt", self.prompt)
        config = mcp_config(agent, urls)
        _write(own / f"mcp.{agent.mcp.format}", config)
        if agent.mcp.file is not None:
            in_home = agent.mcp.file.startswith("~/")
            _write((own / "home" if in_home else self.workdir) / agent.mcp.file.removeprefix("~/"), config)
        self.argv = all_filled(agent.argv, values)
        self.env = {**_environment(agent, own, values), **job.environment}


def _environment(agent: Agent, own: Path, values: Mapping[str, str]) -> dict[str, str]:
    """All that the process sees: an allow-list, folders of its own, its wires, and what its file adds."""
    made = {"TMPDIR": str(own / "tmp")} | ({"HOME": str(own / "home")} if agent.home == "own" else {})
    if not values:
        return clean_environment(made)
    wires = {"EVALCORE_MCP_CONFIG": values["mcp_config"], "EVALCORE_MODEL": values["model"]}
    if values["mcp_url"]:
        wires["EVALCORE_MCP_URL"] = values["mcp_url"]
    if values["model_url"]:
        wires |= {
            "OPENAI_BASE_URL": values["model_url"],
            "OPENAI_API_KEY": DUMMY,
            # The wire speaks either's dialect. Left unset, a client would go to the provider.
            "ANTHROPIC_BASE_URL": values["model_root"],
            "ANTHROPIC_API_KEY": DUMMY,
        }
    return clean_environment(made | wires | {name: filled(text, values) for name, text in agent.env.items()})


def mcp_config(agent: Agent, urls: Mapping[str, str]) -> str:
    """The MCP configuration in the agent's format: each bridge's tools as a server."""
    servers = {name: _server(agent, url) for name, url in urls.items()}
    if agent.mcp.format == "json":
        return json.dumps({"mcpServers": servers}, indent=2)
    import tomli_w

    return tomli_w.dumps({"mcp_servers": {n: {k: v for k, v in s.items() if k != "type"} for n, s in servers.items()}})


def _server(agent: Agent, url: str) -> dict[str, object]:
    if agent.mcp.transport == "http":
        return {"type": "http", "url": url}
    shim = ["-m", "evalcore.wires.stdio_shim"]
    return {"type": "stdio", "command": sys.executable, "args": shim, "env": {"EVALCORE_MCP_URL": url}}


def _told(messages: Sequence[Message], *, apart: bool) -> tuple[str, str]:
    """The policy and the task as text. A history is told with who said what."""
    policy = [_text(m) for m in messages if m.role == "system"] if apart else []
    rest = [m for m in messages if not (apart and m.role == "system")]
    named = any(m.role == "assistant" for m in rest)
    said = [f"{m.role}: {_text(m)}" if named and m.role != "system" else _text(m) for m in rest]
    return "\n\n".join(policy), "\n\n".join(said)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    if any(part.get("type") != "text" for part in message.content):
        raise AgentError("the task has images or other content, and the harness `command` passes on text")
    return "\n".join(str(part.get("text", "")) for part in message.content)


# ── what it leaves ───────────────────────────────────────────────────────────────────────────────────────────────────


def _exit(agent: Agent, done: Completed, answer: str | None, why: str | None, version: HarnessVersion) -> HarnessExit:
    evidence: JSONObject = {
        "version": version.version,
        "build": version.build,
        "stdout": _shown(done.stdout),
        "stderr": _shown(done.stderr),
    }
    if done.truncated:
        evidence["truncated"] = True
    if done.signal is not None:
        evidence["signal"] = done.signal
    if done.timed_out:
        evidence |= {"limit": "timeout_s", "detail": f"the agent's own time of {agent.timeout_s:g} s was over"}
        return HarnessExit(answer, "limit", None, evidence)
    code = done.exit_code
    claim = agent.exits.get(str(code), "completed" if code == 0 else "crashed")
    if claim == "crashed":
        how = f"signal {done.signal}" if code is None else f"exit code {code}"
        evidence["detail"] = _detail(how, done)
    elif why is not None:
        evidence["detail"] = why
    return HarnessExit(answer, claim, code, evidence)


def _detail(how: str, done: Completed) -> str:
    lines = redacted(done.stderr.decode(errors="replace")).strip().splitlines()
    return f"the agent ended with {how}" + (f": {lines[-1][:300]}" if lines else "")


def _shown(data: bytes) -> str:
    text = redacted(data.decode(errors="replace"))
    if len(text) <= EVIDENCE_CAP:
        return text
    half = EVIDENCE_CAP // 2
    return f"{text[:half]}\n[evalcore: cut here; {len(text):,} characters]\n{text[-half:]}"


def redacted(text: str) -> str:
    """The text without the tokens of doors."""
    return _TOKEN.sub(r"/\1/[token]", text)


def _answer(agent: Agent, done: Completed, workdir: Path) -> tuple[str | None, str | None]:
    """The answer; or None, and why there is none."""
    source = agent.answer.source
    if source == "file":
        return _from_file(workdir, str(agent.answer.path), agent.max_output_bytes)
    text = done.stdout.decode(errors="replace").strip()
    if source == "last_line":
        text = text.rpartition("\n")[2].strip()
    if source == "json":
        return _from_json(text, str(agent.answer.key))
    return (text, None) if text else (None, "nothing was written to standard output")


def _from_file(workdir: Path, name: str, cap: int) -> tuple[str | None, str | None]:
    """A file's text. The agent may have left a link or a pipe in its place: neither is followed or waited for."""
    try:
        if not (workdir / name).parent.resolve().is_relative_to(workdir.resolve()):
            return None, f"{name} is outside of the agent's folder"
        descriptor = os.open(workdir / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return None, f"no answer in {name}: {error.strerror}"
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None, f"{name} is no file"
    with open(descriptor, "rb") as file:  # noqa: PTH123 - it is open already
        return file.read(cap).decode(errors="replace").strip(), None


def _from_json(text: str, key: str) -> tuple[str | None, str | None]:
    """The value at `a.0.b` of the output, or of its last line."""
    for candidate in dict.fromkeys((text, text.rpartition("\n")[2])):
        try:
            value: JSONValue = parse(candidate.encode())
        except (ValueError, RecursionError):
            continue
        for step in key.split("."):
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and re.fullmatch(r"-?\d{1,6}", step) and -len(value) <= int(step) < len(value):
                value = value[int(step)]
            else:
                return None, f"the output has no {key}"
        return (value if isinstance(value, str) else json.dumps(value)), None
    return None, "the output is no JSON"


# ── small things ─────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Beside the agent's empty folder: its home, its temporary files, its prompt and its configuration."""
    own = Path(tempfile.mkdtemp(prefix="evalcore-agent-"))  # nobody else may look into it
    try:
        for name in ("home", "tmp"):
            (own / name).mkdir()
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8", errors="replace")


def _partly(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _build(agent: Agent, path: Path) -> str:
    """The sha256 of its file and of what its argv names beside it: an edited script is another build."""
    known = hashlib.sha256(path.read_bytes())
    for text in agent.argv:
        file = Path(_partly(text, {"agent_dir": str(path.parent)}))
        if file.is_absolute() and file.is_relative_to(path.parent) and file.is_file():
            known.update(file.read_bytes())
    return known.hexdigest()[:16]
