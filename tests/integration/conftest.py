"""Plugins as distributions on the import path, made for tests and found as any that is installed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen
from click.testing import CliRunner

from tests.oracles import ROOT

TOY_ENTRY: Final = '''
"""The entry module of the plugin `toy-echo`."""
from evalcore.hookspecs import AdapterInfo, AxisInfo, GraderInfo, GroupInfo, ImporterInfo, ModelInfo, hookimpl

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

@hookimpl
def evalcore_importers():
    return [ImporterInfo("toy-lines", "a word said in a file (toy)", "toy_echo_parts:EchoLines")]
'''

TOY_PARTS: Final = '''
"""The parts of the plugin `toy-echo`."""
from evalcore.engine.trial import standard_deliverable
from evalcore.errors import ConfigError
from evalcore.values.task import Assignment, BridgeSpec, Call, Dataset, GoldCalls, Limits, Message, Task
from evalcore.values.imported import ImportedArm, ImportedBenchmark, ImportedRun, ImportedTask, ImportedTrial
from evalcore.values.trial import Evidence, Exit, Verdict

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


class EchoLines:
    def __init__(self, services, info):
        pass

    def knows(self, source):
        return source.suffix == ".toy"

    def read(self, source):
        word, when = source.read_text(), "2026-01-01T00:00:00+00:00"
        dataset = Dataset("toy-lines", "1", "2026-01-01", "CC0-1.0", "made up")
        trial = ImportedTrial("lines", word, "old", 1, Exit("completed"), None, Verdict("pass", 1.0), when, 1.0)
        benchmark = ImportedBenchmark("lines", dataset, (ImportedTask(word, word),), "ear")
        arms = (ImportedArm("old", {"harness": "mouth"}),)
        return ImportedRun("lines", when, {"tool": "mouth"}, (benchmark,), arms, (trial,))


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


@pytest.fixture
def cli(tmp_path: Path, toy_site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Called]:
    """`cli("run", "toy-echo")`: the program in this process, in an empty folder, with no plugin but `toy-echo`."""
    from evalcore.cli.main import program

    logger = logging.getLogger("evalcore")
    monkeypatch.setattr(logger, "handlers", logger.handlers)
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    monkeypatch.setattr(logger, "level", logger.level)
    monkeypatch.syspath_prepend(toy_site.folder)
    monkeypatch.chdir(tmp_path)
    environ = dict.fromkeys(_unwanted()) | {"EVALCORE_CACHE": str(tmp_path / "cache"), "EVALCORE_PLUGINS": "toy-echo"}

    def call(*arguments: str, **more: str) -> Called:
        result = CliRunner().invoke(program, arguments, env={"COLUMNS": "100", **environ, **more}, prog_name="evalcore")
        return Called(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def start(tmp_path: Path, toy_site: Site) -> Callable[..., subprocess.Popen[str]]:
    """`start("run", "toy-echo")`: the same in a process of its own, not waited for; `sites` are what is installed."""

    def call(*arguments: str, sites: tuple[Site, ...] = (toy_site,), **environ: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([*(str(s.folder) for s in sites), str(ROOT / "src")])
        kept = {k: v for k, v in os.environ.items() if k not in _unwanted()}
        own = {"PYTHONPATH": path, "COLUMNS": "100", "EVALCORE_CACHE": str(tmp_path / "cache")}
        return subprocess.Popen(
            [sys.executable, "-c", "from evalcore.cli.main import main; main()", *arguments],
            cwd=tmp_path,
            env=kept | own | environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return call


@pytest.fixture
def program(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Called]:
    """`program("run", "toy-echo")`: the same, and waited for."""

    def call(*arguments: str, sites: tuple[Site, ...] | None = None, **environ: str) -> Called:
        with start(*arguments, **({} if sites is None else {"sites": sites}), **environ) as process:
            out, err = process.communicate(timeout=100)
        return Called(process.returncode, out, err)

    return call


def _unwanted() -> list[str]:
    """Variables of whoever runs the tests that would decide what they see."""
    return [name for name in os.environ if name.startswith(OURS) or name.endswith("_API_KEY")]
