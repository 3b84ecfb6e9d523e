"""A program for tests to kill: `python -m tests.faults.study_process start|resume FOLDER OPTIONS`, options as JSON.

Prints `stop N` for each Ctrl-C that it is told of, and `end REASON EXECUTED` at its end; exits as the run did.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

from evalcore.engine.run import RunOptions, resume
from evalcore.engine.runner import RunEnd
from evalcore.errors import EvalcoreError
from tests.faults.rig import begin, registry, study


async def carry_out(verb: str, folder: Path, options: dict[str, Any]) -> RunEnd:
    """Begin the run `FOLDER/r`, or go on with it."""
    settings = {"concurrency": options.pop("concurrency", 4), "on_stop": lambda n: print("stop", n, flush=True)}
    if verb == "resume":
        return (await resume(folder / "r", registry(), RunOptions(**settings)))[1]
    arms = options.pop("arms", {"a": {"harness": "react", "model": "scripted/play.toml"}})
    playbook, delay_s = options.pop("playbook", ""), options.pop("delay_s", 0.0)
    what = study(options.pop("benchmark"), arms=arms, **options)
    return await begin(what, folder, playbook, delay_s, **settings)


def main() -> int:
    """The exit code of the run, or of the error that kept it from starting."""
    verb, folder, options = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    if (bytes_at_most := options.pop("file_bytes", None)) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_at_most, bytes_at_most))
    try:
        end = asyncio.run(carry_out(verb, folder, options))
    except EvalcoreError as error:
        print("error", type(error).__name__, error, flush=True)
        return error.exit_code
    print("end", end.reason, end.error or "", flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "KiB", flush=True)
    return end.exit_code


if __name__ == "__main__":
    sys.exit(main())
