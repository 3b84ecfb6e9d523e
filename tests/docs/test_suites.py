"""What the page about suites shows is so: its tasks run, its conditions are read, its errors are told so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from evalcore.builtin.suite.calls import GROUPS
from evalcore.builtin.suite.file import parse_suite
from evalcore.builtin.suite.format import (
    REFUSED,
    AtMost,
    Command,
    Forbidden,
    GoldLine,
    Grade,
    ServerCheck,
    TaskLine,
)
from evalcore.builtin.toolset_syntax import VERBS, read_effect
from evalcore.builtin.toolset_values import COMPARISONS
from evalcore.cli.render_errors import rendered_error
from evalcore.errors import ConfigError, EvalcoreError
from evalcore.values.faults import Faults
from evalcore.values.trial import EXIT_KINDS
from tests.integration.suite_parts import planned, ran
from tests.oracles import ROOT

PAGE: Final = (ROOT / "docs" / "suites.md").read_text()
NONE: Final = {name: {"harness": name, "sandbox": "none"} for name in ("oracle", "noop")}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def told(error: EvalcoreError) -> str:
    rendered = rendered_error(error)
    lines = [f"error: {rendered.message}", *(f"  {fault}" for fault in rendered.faults)]
    return "\n".join([*lines, *([f"hint: {rendered.hint}"] if rendered.hint else [])]) + "\n"


@pytest.mark.parametrize("block", blocks("jsonl"), ids=lambda block: json.loads(block.splitlines()[-1])["id"])
def test_every_task_of_the_page_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "page.jsonl").write_text(block)
    solved = {one.task.id for one in parse_suite(block.encode(), "page").tasks if one.gold is not None}
    done = ran("page.jsonl", tmp_path, NONE)
    assert set(map(tuple, done.outcomes("noop").values())) == {("fail",)}
    if len(solved) == len(done.outcomes("noop")):
        assert done.outcomes("oracle") == {task: ["pass"] for task in solved}


def test_every_condition_of_the_page_is_read() -> None:
    (block,) = blocks("json")
    for line in block.splitlines():
        faults = Faults()
        read_effect({"if": json.loads(line), "respond": "x"}, where="$", faults=faults)
        assert list(faults) == []


def test_faults_are_told_as_the_page_says(tmp_path: Path) -> None:
    lamp = json.loads(blocks("jsonl")[0].splitlines()[-1])
    lines = [json.dumps({**lamp, "id": f"t{n}"}) for n in range(600)]
    lines[416] = lines[416].replace('"value_arg"', '"vale"')
    lines[579] = lines[579].replace('"grade": {', '"grade": {"tool_calls": {"name": "swich"}, ')
    with pytest.raises(ConfigError) as refused:
        parse_suite("\n".join(lines).encode(), "tasks.jsonl")
    assert told(refused.value) == blocks("text")[0]


def test_a_missing_sandbox_is_told_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "greeting.jsonl").write_text(next(block for block in blocks("jsonl") if "hello.txt" in block))
    with pytest.raises(ConfigError) as refused:
        planned("greeting.jsonl", tmp_path, {"noop": {"harness": "noop"}})
    assert told(refused.value) == blocks("text")[1]


def test_every_name_of_the_format_is_on_the_page() -> None:
    names = [*VERBS, *COMPARISONS, *GROUPS, *EXIT_KINDS, *REFUSED]
    names += [
        a.name
        for kind in (TaskLine, Grade, AtMost, Command, Forbidden, GoldLine, ServerCheck)
        for a in kind.__attrs_attrs__
    ]  # type: ignore[attr-defined] # attrs
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []
