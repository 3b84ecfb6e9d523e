"""A run that goes on is carried out as it was begun, unless told otherwise."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from evalcore.contracts import CallContext
from evalcore.engine.execution import EXECUTION, Execution, keep_execution, read_execution
from evalcore.values.json import JSONObject
from tests.faults.parts import answer, behaving
from tests.faults.rig import ran, resumed, study


def test_a_resumed_run_keeps_its_concurrency(tmp_path: Path) -> None:
    at_once, most = 0, 0

    async def model(body: JSONObject, context: CallContext) -> JSONObject:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1
        return await answer(body, context)

    def peak(concurrency: int | None) -> int:
        """How many trials met, where the run is resumed without any result."""
        nonlocal most
        most = 0
        (tmp_path / "r" / "attempts.jsonl").unlink()
        for file in (*(tmp_path / "r" / "traces").iterdir(), *(tmp_path / "r" / "gradings").iterdir()):
            file.unlink()
        assert resumed(tmp_path / "r", concurrency=concurrency).reason == "done"
        return most

    with behaving(model=model):
        ran(study("in-test:12", model="in-test/m"), tmp_path, concurrency=2)
        assert most == 2
        assert peak(None) == 2
        assert peak(5) == 5
        assert peak(None) == 5


def test_how_a_run_is_carried_out_is_read_as_it_was_kept(tmp_path: Path) -> None:
    assert read_execution(tmp_path) == Execution()
    keep_execution(tmp_path, Execution(3, 12.5))
    assert read_execution(tmp_path) == Execution(3, 12.5)


@pytest.mark.parametrize("number", ["0", "true", "2.0", "null"])
def test_a_file_that_says_something_else_is_told_of_and_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: str
) -> None:
    (tmp_path / EXECUTION).write_text(f'{{"schema": "evalcore.execution/1", "concurrency": {number}, "outage_s": 5.0}}')
    with caplog.at_level(logging.WARNING, "evalcore"):
        assert read_execution(tmp_path) == Execution()
    assert "does not say how the run was carried out" in caplog.text
