"""What upstream's code cannot do in its worker: reach the network, start programs, keep memory or a processor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evalcore_tau2.worker
from evalcore.contracts import ToolkitHandle
from evalcore_tau2.worker.tau2_confine import Endless, processor_time
from plugins.tau2.tests.rig import with_toolkit

WORKER = Path(evalcore_tau2.worker.__file__).parent

TRIES = """
import json, os, socket, subprocess, sys
sys.path.append(sys.argv[1])
from tau2_confine import confine
told = confine()
def outcome(work):
    try:
        work()
    except BaseException as error:
        return type(error).__name__
    return "done"
print(json.dumps({
    "told": told,
    "connect": outcome(lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])), 5)),
    "listen": outcome(lambda: socket.socket().bind(("127.0.0.1", 0))),
    "program": outcome(lambda: subprocess.run([sys.executable, "-c", ""])),
    "shell": outcome(lambda: os.system("true")),
    "memory": outcome(lambda: bytearray(8 << 30)),
}))
"""


def test_network_programs_and_memory_are_out_of_reach() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        argv = [sys.executable, "-c", TRIES, str(WORKER), str(port)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    found: Any = json.loads(done.stdout)
    assert {name: found[name] for name in ("connect", "listen", "program", "shell")} == {
        "connect": "PermissionError",
        "listen": "PermissionError",
        "program": "PermissionError",
        "shell": "PermissionError",
    }
    if found["told"]["memory"] != "not limited":  # some systems have no such limit, and the stamp says so
        assert found["memory"] == "MemoryError"


def go_on() -> None:
    while True:
        pass


def test_a_computation_that_goes_on_is_interrupted() -> None:
    with pytest.raises(Endless), processor_time(0.05):
        go_on()


@pytest.mark.usefixtures("toolkit")
def test_the_stamp_says_how_far_that_goes() -> None:
    async def stamp(toolkit: ToolkitHandle) -> Any:
        return await toolkit.stamp()

    told = with_toolkit(stamp)["upstream"]["confinement"]
    assert set(told) == {"network", "memory", "files", "programs"} and all(told.values())
