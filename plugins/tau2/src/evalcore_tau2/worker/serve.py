"""τ²-bench behind a few requests; run inside the toolkit's environment, where evalcore's host loads it by its path.

Text from an agent reaches upstream as data only: as a message's content, and as the arguments of calls of its tools.
Upstream evaluates one kind of it, the expressions of `calculate`, of which it lets digits and operators through.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import locale
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MYPY = False
if MYPY:
    from evalcore_tau2.worker import tau2_pins
    from evalcore_tau2.worker.tau2_confine import confine, processor_time
    from evalcore_tau2.worker.tau2_dialogue import Dialogue, make_agent, make_environment, scripted
    from evalcore_tau2.worker.tau2_grade import grade, judge_request
    from evalcore_tau2.worker.tau2_upstream import DOMAINS, REPLACED, JSONObject, Refused, Upstream
else:
    import tau2_pins
    from tau2_confine import confine, processor_time
    from tau2_dialogue import Dialogue, make_agent, make_environment, scripted
    from tau2_grade import grade, judge_request
    from tau2_upstream import DOMAINS, REPLACED, Refused, Upstream

CALL_S, STEP_S, GRADE_S = 3.0, 30.0, 120.0
"""Processor time for one call (a millisecond usually), for the rest of a step, for a verdict."""

CONFINEMENT = confine()
DIALOGUES: dict[str, Dialogue] = {}


@functools.cache
def upstream() -> Upstream:
    """Upstream's code, imported at the first use."""
    # Upstream opens its UTF-8 files in the locale's encoding.
    if locale.getpreferredencoding(False).lower() not in {"utf-8", "utf8"}:
        raise RuntimeError("the worker must run in UTF-8 mode: set PYTHONUTF8=1")
    return Upstream()


# Tasks


def tasks(params: JSONObject) -> JSONObject:
    """A split's tasks as they are in the file, in its order; the splits that there are."""
    native, domain = upstream(), str(params["domain"])
    native.domain(domain)
    every, splits = _read_tasks(domain)
    split = str(params["split"])
    if split not in splits:
        raise Refused(f"{domain} has no split {split!r}; it has {', '.join(splits)}")
    wanted, others = set(splits[split]), tuple(f"domains/{d}/" for d in DOMAINS if d != domain)
    files = {name: digest for name, digest in native.files_loaded().items() if not name.startswith(others)}
    return {"tasks": [task for task in every if task["id"] in wanted], "splits": list(splits), "files": files}


def _read_tasks(domain: str) -> tuple[list[JSONObject], dict[str, list[str]]]:
    """Every task of a domain, and its splits."""
    names = tau2_pins.task_files(domain)
    read = [json.loads(upstream().check_file(name).read_text(encoding="utf-8")) for name in names]
    if domain == tau2_pins.LISTED:  # a file for each task, and no splits
        return read, {"base": [task["id"] for task in read]}
    every = read[0]["tasks"] if isinstance(read[0], dict) else read[0]
    return every, read[1]


def surface(params: JSONObject) -> JSONObject:
    """What an agent of a domain is told and given: upstream's system prompt, its greeting, the tools' schemas."""
    native, domain, solo = upstream(), str(params["domain"]), bool(params.get("solo"))
    task = native.tasks.Task.model_validate(params["task"])
    environment = make_environment(native, domain, task, solo, params.get("retrieval"))
    agent = make_agent(native, environment, task, solo)
    return {
        "system": agent.system_prompt,
        "greeting": native.orchestrator.DEFAULT_FIRST_AGENT_MESSAGE.content,
        "tools": [tool.openai_schema["function"] for tool in agent.tools],
    }


# Dialogues, one to a session


def open_dialogue(params: JSONObject, call: Any) -> JSONObject:
    """Begin a simulation for the session: everything up to the agent's first turn."""
    script = params.get("script")
    with processor_time(STEP_S):
        dialogue = DIALOGUES[call.session] = Dialogue(
            upstream(),
            str(params["domain"]),
            params["task"],
            solo=bool(params.get("solo")),
            seed=int(params["seed"]),
            script=None if script is None else scripted(script),
            retrieval=params.get("retrieval"),
        )
        return {"end": None, "heard": None, "events": []} if dialogue.solo else dialogue.listen()


def reply(params: JSONObject, call: Any) -> JSONObject:
    """The user's model answered."""
    with processor_time(STEP_S):
        return DIALOGUES[call.session].reply(params["response"])


def say(params: JSONObject, call: Any) -> JSONObject:
    """The agent's text to the user."""
    with processor_time(STEP_S):
        return DIALOGUES[call.session].say(str(params["content"]))


def call_tool(params: JSONObject, call: Any) -> JSONObject:
    """A call of the agent's."""
    with processor_time(CALL_S):
        return DIALOGUES[call.session].call(
            str(params["name"]), params["arguments"], identifier=str(params["id"]), message=params.get("message")
        )


def finish(params: JSONObject, call: Any) -> JSONObject:
    """The simulation as it stands."""
    return DIALOGUES[call.session].finish(params.get("reason"))


def digests(_: JSONObject, call: Any) -> JSONObject:
    """Upstream's digests of the databases as they stand."""
    return DIALOGUES[call.session].digests()


def close(params: JSONObject) -> None:
    """The session ended: its state goes."""
    DIALOGUES.pop(str(params["session"]), None)


# Grading


def wanted_judgement(params: JSONObject) -> JSONObject | None:
    """What upstream would ask its judge about a simulation; None where it asks nothing."""
    return judge_request(upstream(), params["task"], params["simulation"])


def verdict(params: JSONObject) -> JSONObject:
    """Upstream's verdict on a simulation. `judge` is the judge's response; null: none can be had."""
    with processor_time(GRADE_S):
        return grade(upstream(), params)


# What the host asks for


def stamp() -> JSONObject:
    """Which upstream code this is, what was replaced, and how far this process is confined."""
    native = upstream()
    for domain in ("retail", "airline", "telecom", "mock"):
        with contextlib.suppress(Refused):
            native.domain(domain)
    own = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(__file__).parent.glob("*.py"))
    }
    return {
        "package": "tau2",
        "version": native.version(),
        "stand_in": native.stand_in,
        "replaced": sorted(REPLACED),
        "files": native.code_files(),
        "data": native.files_loaded(),
        "worker": own,
        "confinement": CONFINEMENT,
    }


def quiet(handler: Callable[..., object]) -> Callable[..., object]:
    """The handler with everything that upstream prints sent to standard error."""

    @functools.wraps(handler)
    def call(*arguments: object) -> object:
        with contextlib.redirect_stdout(sys.stderr):
            return handler(*arguments)

    return call


def handlers() -> dict[str, Callable[..., object]]:
    """Each request's name and what answers it."""
    return {
        "tasks": quiet(tasks),
        "surface": quiet(surface),
        "open": quiet(open_dialogue),
        "reply": quiet(reply),
        "say": quiet(say),
        "call": quiet(call_tool),
        "finish": quiet(finish),
        "digests": quiet(digests),
        "session.close": quiet(close),
        "wanted_judgement": quiet(wanted_judgement),
        "verdict": quiet(verdict),
    }
