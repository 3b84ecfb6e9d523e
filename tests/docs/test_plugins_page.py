"""What the page about plugins shows is so: its benchmark reaches a green conformance run, its snippets run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Final, get_args

import attrs
import pytest

from evalcore import hookspecs, testing
from evalcore.plugins import PluginRef, Registry, load
from evalcore.values import descriptors as d
from evalcore.values.arm import Owner
from tests.oracles import ROOT

PAGE: Final = (ROOT / "docs" / "plugins.md").read_text("utf-8")
BLOCK: Final = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS: Final = [(m[1], m[2], m[3]) for m in BLOCK.finditer(PAGE)]
SNIPPETS: Final = [text for language, file, text in BLOCKS if language == "python" and not file]
COMMANDS: Final = [line[2:] for language, _, text in BLOCKS if language == "console" for line in text.splitlines()]
INFOS: Final = [getattr(d, name) for name in sorted(vars(d)) if re.fullmatch(r"[A-Z]\w+Info", name)]


@pytest.fixture(scope="module")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page, and what `pip install -e .` would leave of them on the import path."""
    folder = tmp_path_factory.mktemp("quiz")
    for _, file, text in BLOCKS:
        if file:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / "src" / f"evalcore_quiz-{project['version']}.dist-info"
    info.mkdir()
    requires = "".join(f"Requires-Dist: {text}\n" for text in project["dependencies"])
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head + requires)
    points = "".join(f"{name} = {module}\n" for name, module in project["entry-points"]["evalcore"].items())
    (info / "entry_points.txt").write_text(f"[evalcore]\n{points}")
    return folder


def run(command: str, folder: Path) -> str:
    """What a command of the page prints. It must succeed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVALCORE_", "PYTEST"))}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**kept, "PATH": path, "PYTHONPATH": str(folder / "src"), "EVALCORE_PLUGINS": "quiz"}
    done = subprocess.run(
        command.split(), cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr and "warning" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "command, says",
    [
        ("evalcore plugins --load", "evalcore-quiz 0.1.0"),
        ("evalcore show quiz-capitals", "grader"),
        ("pytest", " passed"),
        ("evalcore run quiz-capitals", "oracle (ceiling)"),
        ("evalcore run quiz-capitals --harness react --model scripted/answers.toml", "react × scripted/answers.toml"),
    ],
)
def test_a_stranger_gets_from_nothing_to_a_green_run(quiz: Path, command: str, says: str) -> None:
    assert command in COMMANDS
    assert says in run(command, quiz)


def test_every_command_of_the_page_is_run_here_but_the_installation() -> None:
    assert len(COMMANDS) == 6 and COMMANDS[0] == "pip install -e ."


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_runs(number: int) -> None:
    module = ModuleType(f"snippet_{number}")
    exec(compile(SNIPPETS[number], f"docs/plugins.md, snippet {number + 1}", "exec"), vars(module))
    hooks = [name for name in vars(module) if name.startswith("evalcore_")]
    registry = Registry()
    registry.add(PluginRef("snippet", "docs", "1", module.__name__), module)
    assert registry.failures == []
    for hook in hooks:
        if hook not in ("evalcore_trial_finished", "evalcore_run_finished"):
            assert getattr(module, hook)(), f"the example of {hook} gives nothing"


def test_the_examples_of_all_hooks_make_one_sound_plugin() -> None:
    module = ModuleType("atlas")
    for snippet in SNIPPETS:
        if "@hookimpl" in snippet:
            exec(snippet, vars(module))
    registry = load(only=())
    registry.add(PluginRef("atlas", "docs", "1", "atlas"), module)
    assert registry.failures == []


@pytest.mark.parametrize("info", INFOS, ids=lambda info: info.__name__)
def test_a_descriptor_is_listed_with_all_its_fields(info: type[attrs.AttrsInstance]) -> None:
    assert info.__name__ in hookspecs.__all__
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{info.__name__}` |")]
    own = {a.name for a in attrs.fields(info)} - {"name", "summary", "factory", "docs"}
    assert own == set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row.split("|")[2])))
    assert ("no factory" in row) == ("factory" not in {a.name for a in attrs.fields(info)})


def test_every_owner_of_axes_is_listed() -> None:
    section = PAGE.partition("### `evalcore_axes`")[2].partition("### ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(get_args(Owner))


@pytest.mark.parametrize("suite", [name for name in testing.__all__ if name.endswith("Conformance")])
def test_what_a_suite_takes_is_there(suite: str) -> None:
    if suite == "Conformance":
        return
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{suite}` |")]
    base = getattr(testing, suite)
    told = set(re.findall(r"`(\w+)`", row.split("|", 2)[2]))
    known = {*vars(base), *base.__annotations__}
    assert told <= known, told - known


def test_all_that_the_page_names_can_be_imported() -> None:
    section = PAGE.partition("## Fakes")[2].partition("```")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert named <= set(testing.__all__), named - set(testing.__all__)
    assert all(getattr(testing, name) for name in testing.__all__)


GOOD: Final = (
    "from evalcore.hookspecs import AdapterInfo, hookimpl\n@hookimpl\ndef evalcore_adapters():\n    return []\n"
)


@pytest.mark.parametrize(
    "stage, entry, requires, twice",
    [
        ("conflict", GOOD, "evalcore-core", True),
        ("version", GOOD, "evalcore-core>=99", False),
        ("import", "raise ImportError('no module named heavy')", "evalcore-core", False),
        ("validate", GOOD.replace("evalcore_adapters", "evalcore_adaptors"), "evalcore-core", False),
    ],
)
def test_a_failure_reads_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, entry: str, requires: str, twice: bool
) -> None:
    module = f"zoo_at_{stage}"
    (tmp_path / f"{module}.py").write_text(entry)
    for name in ["evalcore-zoo", "evalcore-zoo-fork"][: 1 + twice]:
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n")
        (info / "entry_points.txt").write_text(f"[evalcore]\nzoo = {module}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = load(only=("zoo",)).failures[0]
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {stage} |")]
    assert row.rstrip(" |").endswith(f"`{first}`"), first
