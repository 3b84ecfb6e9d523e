"""Install the MCP servers that tests and examples run: `python tools/install_mcp_servers.py FOLDER`.

They are other people's programs, pinned: from npm into FOLDER/node_modules, from PyPI into two virtual environments,
since one of them needs an older `mcp`. What is there already, at these versions, is left alone. npm and the indexes are
used as they are set up.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

NPM = tuple(f"@modelcontextprotocol/server-{name}@2026.8.31" for name in ("filesystem", "memory", "everything"))
MODERN = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "mcp==2.3.0")
OLDER = ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0")


def main() -> int:
    """The exit code: 0 where all are there."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    folder = Path(sys.argv[1]).resolve()
    npm = shutil.which("npm")
    if npm is None:
        print("error: no program 'npm': install Node.js 20 or newer")
        return 1
    mark, wanted = folder / "installed", hashlib.sha256(repr((NPM, MODERN, OLDER)).encode()).hexdigest()
    if mark.is_file() and mark.read_text() == wanted:
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    print(f"installing MCP servers into {folder} …", flush=True)
    quiet = ("--silent", "--no-audit", "--no-fund", "--no-save")
    subprocess.run([npm, "install", *quiet, "--prefix", str(folder), *NPM], check=True, timeout=600)
    for name, requirements in (("modern", MODERN), ("older", OLDER)):
        venv.create(folder / name, with_pip=True, clear=True)
        python = folder / name / "bin" / "python"
        install = (str(python), "-m", "pip", "install", "-qq", "--no-user", "--disable-pip-version-check")
        subprocess.run([*install, *requirements], check=True, timeout=600)
    mark.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
