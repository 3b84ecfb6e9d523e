"""Regular expressions of a suite, against text that an agent wrote: Python's own, never longer than their time.

`re` backtracks: a short pattern on a short text can take longer than anybody lives, and nothing in this process can
stop it. So only what its form and the text's length bound to some milliseconds is searched here. Everything else is
searched in a child process, whose processor time the system limits.
"""

from __future__ import annotations

import asyncio
import re
import sys
import warnings
from typing import Final

from evalcore.errors import GraderError
from evalcore.process.runner import run
from evalcore.values.faults import Wrong, literal
from evalcore.values.json import dumps

LONGEST: Final = 2000  # characters of a pattern
CPU_S: Final = 2  # of one search in a child
_WALL_S: Final = 60.0  # on a machine so busy that two seconds of processor time take this long
_STEPS: Final = 4_000_000  # of a search here at most: some milliseconds
_CHOICES: Final = 6  # `?` and `|` in a pattern that is searched here: each can double the work
_FLAGS: Final = re.compile(r"\(\?[aimsux]+\)")
_CHILD: Final = """
import json, re, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_CPU, (%(cpu)d, %(cpu)d + 1))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
warnings.simplefilter("ignore")
asked = json.loads(sys.stdin.buffer.read())
sys.stdout.write("found" if re.search(asked["pattern"], asked["text"]) else "none")
"""


def check_pattern(pattern: str) -> None:
    """Wrong for a pattern that is none, or is too long."""
    if len(pattern) > LONGEST:
        raise Wrong(f"a pattern of {len(pattern)} characters", f"at most {LONGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Wrong(f"no regular expression: {error}", f"in {literal(pattern)}") from None


def harmless(pattern: str, length: int) -> bool:
    """Whether a search in a text of that length cannot take long, judged so that it errs to the other side only.

    One repetition, of no group, costs the square of the length; two or more, or of a group, may cost anything.
    """
    body = _FLAGS.sub("", pattern, count=1) if pattern.startswith("(?") else pattern
    repetitions = sum(body.count(sign) for sign in "*+{")
    choices = body.count("?") + body.count("|")
    if choices > _CHOICES or repetitions > 1 or (repetitions and ("(" in body or "|" in body)):
        return False
    places = length * length if repetitions else length
    return places * len(pattern) << choices <= _STEPS


class Searcher:
    """Searches, at most two children at a time."""

    def __init__(self) -> None:
        self._children = asyncio.Semaphore(2)

    async def found(self, pattern: str, text: str) -> bool:
        """Whether the pattern is found in the text. Raises GraderError if that takes too long."""
        if harmless(pattern, len(text)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return re.search(pattern, text) is not None
        async with self._children:
            return await _in_a_child(pattern, text)


async def _in_a_child(pattern: str, text: str) -> bool:
    asked = dumps({"pattern": pattern, "text": text.encode("utf-8", "replace").decode()})
    argv = (sys.executable, "-I", "-S", "-c", _CHILD % {"cpu": CPU_S})
    done = await run(argv, stdin=asked, timeout_s=_WALL_S, env={}, grace_s=0.0)
    if done.exit_code == 0 and done.stdout in (b"found", b"none"):
        return done.stdout == b"found"
    if done.timed_out or done.signal is not None:
        raise GraderError(
            f"the pattern {literal(pattern)} took more than {CPU_S} s of processor time on {len(text)} characters",
            hint="write it so that no part can match the same text in many ways",
        )
    said = done.stderr[-300:].decode(errors="replace").strip()
    raise GraderError(f"the search for {literal(pattern)} failed: {said}")
