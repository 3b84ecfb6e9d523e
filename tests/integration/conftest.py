"""Plugins as distributions on the import path, made for tests and found as any that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

from tests.oracles import ROOT

TOY_ENTRY: Final = '''
"""The entry module of the plugin `toy-echo`."""
from evalcore.hookspecs import AdapterInfo, AxisInfo, GraderInfo, GroupInfo, ModelInfo, hookimpl

@hookimpl
def evalcore_adapters():
    return [
        AdapterInfo("toy-echo", "say what you are told to say", "toy_echo_parts:EchoAdapter",
                    splits=("loud", "broken"), takes_parameter="the number of tasks", floor_note="the floor is 0 %"),
        GroupInfo("toy-all", "both forms of toy-echo", {"toy-echo": 1.0, "toy-echo@loud": 1.0}),
    ]

@hookimpl
def evalcore_graders():
    return [GraderInfo("toy-echo", "was the text said", "toy_echo_parts:EchoGrader"),
            GraderInfo("toy-broken", "a grader that fails", "toy_echo_parts:BrokenGrader")]

@hookimpl
def evalcore_models():
    return [ModelInfo("dear", "a model that costs money (toy)", "toy_echo_parts:DearProvider", keys=("TOY_DEAR_KEY",))]

@hookimpl
def evalcore_axes():
    return [AxisInfo("shout", "whether to shout (toy)", "adapter", "boolean", default=False)]
'''

TOY_PARTS: Final = '''
"""The parts of the plugin `toy-echo`."""
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import ConfigError
from evalcore.values.task import Assignment, BridgeSpec, Call, Dataset, GoldCalls, Limits, Message, Task
from evalcore.values.trial import Evidence, Verdict

WORDS = ("one", "two", "three", "fo\\x1b[31mur", "five", "six")
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class EchoAdapter:
    grader = "toy-echo"

    def __init__(self, services, info, selector):
        self.loud = selector.split == "loud"
        self.grader = "toy-broken" if selector.split == "broken" else "toy-echo"
        if selector.parameter is not None and not selector.parameter.isdigit():
            raise ConfigError(f"toy-echo: {selector.parameter!r} is no number of tasks")
        self.count = int(selector.parameter or len(WORDS))

    async def dataset(self):
        return Dataset("toy-echo", "1", "2026-01-01", "CC0-1.0", "made up")

    async def tasks(self):
        for number in range(self.count):
            word = WORDS[number % len(WORDS)]
            yield Task(f"echo-{number}", {"word": word.upper() if self.loud else word}, word)

    async def assign(self, task, arm):
        tool = {"name": "say", "description": "Say a text.", "input_schema": SCHEMA, "result": "said"}
        message = Message("user", f"Say {task.data['word']!r} with the tool. \\x1b]0;owned\\x07")
        return Assignment((message,), (BridgeSpec("toolset", {"tools": [tool]}),), limits=Limits(wall_s=60.0))

    async def capture(self, trial):
        return standard_deliverable(trial)

    async def collect(self, trial):
        return Evidence()

    async def gold(self, task):
        return GoldCalls(((Call("say", {"text": task.data["word"]}),),), "done")


class EchoGrader:
    def __init__(self, services, info):
        pass

    async def stamp(self):
        return {"toy": "1"}

    async def grade(self, task, deliverable, evidence, trace, judge):
        said = [c.arguments.get("text") for c in deliverable.calls if isinstance(c.arguments, dict)]
        passed = task.data["word"] in said
        return Verdict("pass" if passed else "fail", float(passed), details={"said": said})


class BrokenGrader(EchoGrader):
    async def grade(self, task, deliverable, evidence, trace, judge):
        raise LookupError("the toy grader is \\x1b[31mbroken")


class DearProvider:
    def __init__(self, services, info):
        pass

    def content(self, model):
        return {}

    async def complete(self, model, body, context):
        message = {"role": "assistant", "content": "I would rather not."}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.01}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    async def close(self):
        pass
'''

VERBS_ENTRY: Final = """
from evalcore.hookspecs import CommandInfo, hookimpl

@hookimpl
def evalcore_commands():
    return [CommandInfo("greet", "Say hello (toy).", "toy_verbs_parts:greet"),
            CommandInfo("limp", "A verb that cannot be loaded (toy).", "toy_verbs_parts:nothing"),
            CommandInfo("stumble", "A verb with a bug (toy).", "toy_verbs_parts:stumble")]
"""

VERBS_PARTS: Final = '''
import click

@click.command()
@click.argument("name", default="world")
def greet(name):
    """Say hello."""
    click.echo(f"hello {name}")

@click.command()
def stumble():
    """Fail."""
    secret = "sk-this-is-a-secret-value"
    raise LookupError("tripped over \\x1b[31m")
'''

BROKEN_ENTRY: Final = 'raise ImportError("the toy is \\x1b[31mbroken")\n'

OURS: Final = "EVALCORE_"  # what a developer's own environment says must not decide a test


@frozen
class Site:
    """A folder on the import path, with distributions in it."""

    folder: Path

    def add(self, name: str, entry: str, **modules: str) -> None:
        """A distribution `NAME 1.0` whose entry point is a module of the text `entry`; more modules by name."""
        module = name.replace("-", "_")
        info = self.folder / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[evalcore]\n{name} = {module}\n")
        (self.folder / f"{module}.py").write_text(entry)
        for other, text in modules.items():
            (self.folder / f"{other}.py").write_text(text)


@pytest.fixture(scope="session")
def toy_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The plugin `toy-echo` (benchmark `toy-echo`, model provider `dear`)."""
    site = Site(tmp_path_factory.mktemp("toy-site"))
    site.add("toy-echo", TOY_ENTRY, toy_echo_parts=TOY_PARTS)
    return site


@pytest.fixture(scope="session")
def verbs_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The plugin `toy-verbs`, with the verbs greet, limp and stumble."""
    site = Site(tmp_path_factory.mktemp("verbs-site"))
    site.add("toy-verbs", VERBS_ENTRY, toy_verbs_parts=VERBS_PARTS)
    return site


@pytest.fixture(scope="session")
def broken_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The plugin `toy-broken`, which cannot be imported."""
    site = Site(tmp_path_factory.mktemp("broken-site"))
    site.add("toy-broken", BROKEN_ENTRY)
    return site


@frozen
class Called:
    """What a call of the program left."""

    exit_code: int
    stdout: str
    stderr: str


def call_program(
    arguments: tuple[str, ...], sites: tuple[Site, ...], cwd: Path, environ: Mapping[str, str] | None = None
) -> Called:
    """`evalcore ARGUMENTS` in a process of its own, with these sites on its import path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OURS) and not k.endswith("_API_KEY")}
    path = [*(str(s.folder) for s in sites), str(ROOT / "src")]
    env = {**kept, "PYTHONPATH": os.pathsep.join(path), "COLUMNS": "100", "EVALCORE_CACHE": str(cwd / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", "from evalcore.cli.main import main; main()", *arguments],
        cwd=cwd,
        env=env | dict(environ or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return Called(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def program(tmp_path: Path, toy_site: Site) -> Callable[..., Called]:
    """`program("run", "toy-echo")` in an empty folder, with the toy benchmark installed."""

    def call(*arguments: str, sites: tuple[Site, ...] = (toy_site,), **environ: str) -> Called:
        return call_program(arguments, sites, tmp_path, environ)

    return call
