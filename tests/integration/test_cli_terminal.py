"""What somebody at a terminal sees: the question before money is spent, and bars while a run goes on."""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.conftest import Site
from tests.oracles import ROOT

PROGRAM = [sys.executable, "-c", "from evalcore.cli.main import main; main()"]
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def typed(arguments: tuple[str, ...], cwd: Path, site: Site, answers: Mapping[bytes, bytes]) -> tuple[int, str]:
    """Call the program on a terminal of its own; each answer is typed once its question stands there."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("EVALCORE_") and not k.endswith("_API_KEY")}
    environ = kept | {"PYTHONPATH": f"{site.folder}:{ROOT / 'src'}", "COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execve(PROGRAM[0], [*PROGRAM, *arguments], environ)
    waiting, shown = dict(answers), b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        shown += part
        for question in [q for q in waiting if q in shown]:
            time.sleep(0.5)  # nobody answers sooner, and Python's readline loses a Ctrl-C that comes before it listens
            os.write(terminal, waiting.pop(question))
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "answer, code", [(b"y\n", 0), (b"n\n", 130), (b"\n", 130), (b"\x03", 130)], ids=["yes", "no", "enter", "ctrl-c"]
)
def test_money_is_spent_after_a_yes(answer: bytes, code: int, tmp_path: Path, toy_site: Site) -> None:
    arguments = ("run", "toy-echo", "--model", "dear/x", "--max-tokens", "100", "--name", "r")
    ended, shown = typed(arguments, tmp_path, toy_site, {b"Call dear/x? [y/N]: ": answer})
    assert ended == code, shown
    assert "models  dear/x, in 6 trials" in shown
    assert (tmp_path / "runs" / "r").exists() == (code == 0)
    assert ("interrupted: nothing more was done" in shown) == (code == 130)


def test_a_run_shows_bars_and_leaves_one_line(tmp_path: Path, toy_site: Site) -> None:
    (tmp_path / "slow.toml").write_text('[[reply]]\ntext = "no"\ndelay_s = 0.3\n')
    arguments = ("run", "toy-echo:40", "--model", "scripted/slow.toml", "--concurrency", "2", "--name", "r")
    code, shown = typed(arguments, tmp_path, toy_site, {b"2/40": b"\x03"})
    plain = STEERING.sub("", shown)
    assert code == 130
    assert "━" in shown and "0/40" in plain and "react × scripted/slow.toml" in plain
    assert "finishing what runs; Ctrl-C again stops it now" in plain
    assert re.search(r"\d/40 trials · \d+ fail · ", plain)
