"""What a confined process can no longer do: held against what it says of itself."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "evalcore_bfcl"

CONFINED = """
import json, pathlib, socket, sys
sys.path.insert(0, sys.argv[1])
import confine

said = confine.confine()
can = {}
for name, attempt in {
    "network": lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])), timeout=10).close(),
    "memory": lambda: bytearray(confine.MEMORY + (1 << 30)),
    "small file": lambda: pathlib.Path("kept").write_text("kept"),
}.items():
    try:
        attempt()
        can[name] = True
    except (OSError, MemoryError):
        can[name] = False
print(json.dumps([said, can]))
"""


def test_it_can_do_what_it_says_is_not_enforced_and_nothing_else(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = [sys.executable, "-I", "-c", CONFINED, str(SOURCES), str(server.getsockname()[1])]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    said, can = json.loads(done.stdout)
    assert set(said) == {"network", "memory", "file size", "core dumps"}
    assert can["network"] == (said["network"] != "none")
    assert can["memory"] == (not said["memory"].startswith("at most "))
    assert can["small file"] and (tmp_path / "kept").read_text(encoding="utf-8") == "kept"
