"""Inspect itself, from the package index: it reads what we write, and we read what it writes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import venv
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.engine.importing import write_imported
from evalcore.engine.store import read_attempts, read_gradings, read_stamp
from evalcore_interop.inspect_export import InspectLogs
from evalcore_interop.inspect_import import InspectLog
from tests.oracles import needs

INSPECT: Final = "inspect_ai==0.3.285"
SCRIPT: Final = Path(__file__).with_name("read_logs.py")
INSTALL_S: Final = 600.0
READ_S: Final = 300.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with Inspect."""
    folder = tmp_path_factory.mktemp("inspect")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "-qq", "--no-compile", "--disable-pip-version-check", INSPECT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode != 0:
        needs(f"{INSPECT} from the package index: {done.stderr[-300:]}")
    return python


@pytest.fixture(scope="module")
def both(
    inspect: Path, weather: Path, dialogue: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], Path]:
    """What Inspect says of our logs, and a log that it wrote."""
    folder = tmp_path_factory.mktemp("logs")
    InspectLogs().render(weather, folder / "ours")
    InspectLogs().render(dialogue, folder / "ours")
    own = folder / "own.eval"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("INSPECT_", "PYTHON"))}
    done = subprocess.run(
        [str(inspect), str(SCRIPT), str(folder / "ours"), str(own)],
        capture_output=True, text=True, timeout=READ_S, check=False, cwd=folder, env=environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout), own


def test_it_reads_ours(both: tuple[list[dict[str, Any]], Path]) -> None:
    logs = {(log["task"], log["model"]): log for log in both[0]}
    assert set(logs) == {
        ("toy-weather:3", "scripted/agent.toml"),
        ("toy-weather:3", "none/none"),
        ("toy-users", "scripted/talker.toml"),
    }
    native = logs["toy-weather:3", "scripted/agent.toml"]
    samples = {(s["id"], s["epoch"]): s for s in native["samples"]}
    assert len(samples) == native["summaries"] == 8
    assert native["accuracy"] == pytest.approx(3 / 7)
    assert [samples["t0", epoch]["scores"] for epoch in (1, 2, 3, 4)] == [{"toy": "C"}] * 3 + [{}]
    assert samples["t1", 1]["scores"] == {"toy": "I"}
    assert samples["t0", 1]["roles"] == ["system", "user", "assistant", "tool", "assistant"]
    assert (samples["t0", 1]["tokens"], samples["t0", 1]["answer"]) == (282, "It is 10 degrees in Bern.")
    assert samples["t0", 3]["limit"] == "token"
    assert samples["t0", 4]["error"] == "provider: the provider was not there"
    assert logs["toy-weather:3", "none/none"]["accuracy"] == 1.0
    (talk,) = logs["toy-users", "scripted/talker.toml"]["samples"]
    assert talk["user_tokens"] == 3 * 9 + 6  # three calls of the user, one of the judge
    assert talk["roles"].count("user") == 2


def test_we_read_its_own(both: tuple[list[dict[str, Any]], Path], tmp_path: Path) -> None:
    _, own = both
    with zipfile.ZipFile(own) as archive:
        assert {info.compress_type for info in archive.infolist()} <= {zipfile.ZIP_DEFLATED, 93}
    assert InspectLog().knows(own)
    asyncio.run(write_imported(InspectLog().read(own), tmp_path / "r"))
    verdicts = {g.attempt: g.verdict for g in read_gradings(tmp_path / "r", read_stamp(tmp_path / "r").grading)}
    found = [(a.key.task, a.key.repeat, verdicts[a.id].outcome, verdicts[a.id].score, a.usage["agent"].input)
             for a in read_attempts(tmp_path / "r")]  # fmt: skip
    assert found == [("a/1", 1, "pass", 1.0, 30), ("a/1", 2, "fail", 0.0, 30), ("b", 1, "fail", 0.5, 30)]


def test_its_own_command_dumps_ours(inspect: Path, weather: Path, tmp_path: Path) -> None:
    log = next(p for p in InspectLogs().render(weather, tmp_path) if "native" in p.name)
    command = [str(inspect.with_name("inspect")), "log", "dump", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=READ_S, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(json.loads(done.stdout)["samples"]) == 8


def test_its_viewer_takes_ours(inspect: Path, weather: Path, tmp_path: Path) -> None:
    logs = InspectLogs().render(weather, tmp_path / "logs")
    command = [str(inspect.with_name("inspect")), "view", "bundle", "--log-dir", "logs", "--output-dir", "page"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=READ_S, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    listing = json.loads((tmp_path / "page" / "logs" / "listing.json").read_text())
    assert set(listing) == {log.name for log in logs}
