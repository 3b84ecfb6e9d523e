"""The file that describes an agent for the harness `command`, and what its placeholders stand for.

    argv = ["my-agent", "--model", "{model}", "--mcp-config", "{mcp_config}", "{prompt}"]

    version = ["my-agent", "--version"]     # optional: run by a probe
    varies = ["date", "uuid"]               # optional: what of its requests is another in each run, for replays
    prompt = "argument"                     # or "stdin", or "file" ({prompt_file} then names it)
    timeout_s = 600                         # beside the trial's own
    max_output_bytes = 1048576              # of standard output and of standard error
    home = "own"                            # an empty folder per trial; or "yours": with your settings, and your logins

    [env]                                   # beside what every agent gets
    MY_AGENT_URL = "{model_url}"

    [answer]
    source = "stdout"                       # or "last_line", "file" (with path), "json" (with key, "result.0.text")

    [exits]                                 # what an exit code means; 0 is completed, all else crashed
    3 = "refused"

    [mcp]
    format = "json"                         # {"mcpServers": …}; or "toml": [mcp_servers.NAME]
    transport = "http"                      # or "stdio": a light program that the agent starts
    file = ".mcp.json"                      # where else the agent looks for it: in its folder, or ~/… in its home

Arguments are substituted one by one and never meet a shell. `{{model}}` is the text `{model}` itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, Literal, TypeAlias

from attrs import Factory, field, frozen, validators

from evalcore.values.convert import from_toml
from evalcore.values.faults import Faults, did_you_mean, item_path, key_path

AgentClaim: TypeAlias = Literal["completed", "limit", "refused", "crashed"]

PLAIN: Final = ("prompt", "prompt_file", "system", "model", "workdir", "home", "mcp_config", "agent_dir", "python")
SECRET: Final = ("model_url", "model_root", "mcp_url")  # they hold the trial's token: for the environment only
_PLACEHOLDER: Final = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Found: TypeAlias = tuple[str, str, str | None]  # where, what, and what to do
_NOT_SET: Final = ("EVALCORE_", "LD_")


@frozen
class Answer:
    """Where the agent's answer is."""

    source: Literal["stdout", "last_line", "file", "json"] = "stdout"
    path: str | None = None
    key: str | None = None


@frozen
class Mcp:
    """How the agent is told where its tools are."""

    format: Literal["json", "toml"] = "json"
    transport: Literal["http", "stdio"] = "http"
    file: str | None = None


@frozen
class Agent:
    """An agent, as its file describes it."""

    argv: tuple[str, ...]
    version: tuple[str, ...] = ()
    varies: tuple[Literal["date", "uuid"], ...] = ()
    prompt: Literal["argument", "stdin", "file"] = "argument"
    timeout_s: float | None = field(default=None, validator=validators.optional(validators.gt(0)))
    max_output_bytes: int = field(default=1 << 20, validator=(validators.ge(1024), validators.le(64 << 20)))
    home: Literal["own", "yours"] = "own"
    env: Mapping[str, str] = Factory(dict)
    answer: Answer = Answer()
    exits: Mapping[str, AgentClaim] = Factory(dict)
    mcp: Mcp = Mcp()

    def uses(self, name: str) -> bool:
        """Whether a placeholder occurs anywhere."""
        return any(name in names_in(text) for text in (*self.argv, *self.env.values()))


def read_agent(path: Path) -> Agent:
    """The agent that a file describes. Raises ConfigError with everything that is wrong with it."""
    agent = from_toml(path, Agent)
    faults = Faults()
    for found in (*_argv_faults(agent), *_env_faults(agent), *_other_faults(agent)):
        faults.add(*found)
    faults.raise_if_any(str(path))
    return agent


def _argv_faults(agent: Agent) -> Iterator[Found]:
    for key, argv in (("argv", agent.argv), ("version", agent.version)):
        where = f"$.{key}"
        if key == "argv" and not (argv and argv[0]):
            yield where, "names no program", None
        for index, text in enumerate(argv):
            place = item_path(where, index)
            if "\0" in text:
                yield place, "a null character", None
            for name in names_in(text):
                if name in SECRET:
                    yield place, f"{{{name}}} holds the trial's token", "give it in [env]: everybody can read an argv"
                elif name not in PLAIN or (key == "version" and name not in ("agent_dir", "python")):
                    yield place, f"unknown placeholder {{{name}}}", _known(name)
    given = {name for text in agent.argv for name in names_in(text)}
    needs = {"argument": "prompt", "file": "prompt_file", "stdin": ""}[agent.prompt]
    if needs and not (needs in given or (needs == "prompt_file" and agent.uses(needs))):
        hint = 'or prompt = "stdin"' if needs == "prompt" else None
        yield "$.argv", f"has no {{{needs}}}, and prompt = {agent.prompt!r}", hint
    if agent.prompt != "argument" and "prompt" in given:
        yield "$.prompt", "argv has {prompt}: it would be told twice", None


def _env_faults(agent: Agent) -> Iterator[Found]:
    for name, text in agent.env.items():
        where = key_path("$.env", name)
        if not _VARIABLE.fullmatch(name):
            yield where, "not the name of a variable", None
        if name.startswith(_NOT_SET) or name in ("HOME", "TMPDIR"):
            yield where, "is evalcore's to set", None
        if "\0" in text:
            yield where, "a null character", None
        for used in names_in(text):
            if used not in (*PLAIN, *SECRET):
                yield where, f"unknown placeholder {{{used}}}", _known(used, *SECRET)


def _other_faults(agent: Agent) -> Iterator[Found]:
    wanted = {"file": "path", "json": "key"}.get(agent.answer.source)
    for name in ("path", "key"):
        value = getattr(agent.answer, name)
        if (name == wanted) != bool(value):
            yield (
                f"$.answer.{name}",
                "missing" if name == wanted else f"source = {agent.answer.source!r} takes none",
                None,
            )
    if agent.answer.path and not _inside(agent.answer.path):
        yield "$.answer.path", "must be within the agent's folder", None
    file = agent.mcp.file
    if file is not None and not _inside(file.removeprefix("~/")):
        yield "$.mcp.file", "must be within the agent's folder, or ~/… within its home", None
    if file is not None and file.startswith("~/") and agent.home == "yours":
        yield "$.mcp.file", "would be written into your own home", 'leave home = "yours" out'
    for code in agent.exits:
        if not (code.isdecimal() and int(code[:9]) < 256):
            yield key_path("$.exits", code), "an exit code is 0 to 255", None


def _inside(text: str) -> bool:
    path = PurePosixPath(text)
    return bool(text) and not path.is_absolute() and ".." not in path.parts and "\0" not in text


def _known(name: str, *more: str) -> str:
    names = (*PLAIN, *more)
    return did_you_mean(name, names) or f"there are {', '.join(f'{{{n}}}' for n in names)}"


def names_in(text: str) -> list[str]:
    """The placeholders of a text."""
    return [match[2] for match in _PLACEHOLDER.finditer(text) if match[2]]


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced; what replaces them is not looked at again."""
    return _PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], text)


def all_filled(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Each of them."""
    return tuple(filled(text, values) for text in texts)
