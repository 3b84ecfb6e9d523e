"""Reads an Inspect log (`.eval`, or its JSON form; log schema 2) as a run: a sample and epoch are a trial.

The first scorer's score is the verdict: `C` passes, `I`, `P` and `N` fail (a part is no solution; its score is kept), a
number passes at 1 and above, true and false as they are; any other value is left ungraded. A sample with an error is
void: Inspect does not say whose fault it was. A sample that met a limit ended by it. A log that evalcore wrote gives
back what stands under `metadata.evalcore`: its own outcomes, limits and usage by role.
"""

from __future__ import annotations

import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import zstandard

from evalcore.contracts import Services
from evalcore.datasets.reading import MAX_BYTES, Place, read_file, read_json
from evalcore.errors import ConfigError
from evalcore.values.descriptors import ImporterInfo
from evalcore.values.imported import ImportedArm, ImportedBenchmark, ImportedRun, ImportedTask, ImportedTrial
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.task import ROLES, Dataset, Role
from evalcore.values.trial import EXIT_KINDS, RESULTS, SUCCESSES, Exit, Verdict, Void
from evalcore.values.usage import Usage

LOG_VERSION: Final = 2
# What reading a member may raise, by how it is compressed; RuntimeError: it is encrypted, or in a way not known.
_BROKEN: Final = (
    *(zipfile.BadZipFile, OSError, EOFError, RuntimeError, struct.error),
    *(zlib.error, lzma.LZMAError, zstandard.ZstdError),
)
_CONVERT: Final = "`inspect log convert --to eval --output-dir DIR` writes it anew"
_WHOLE: Final = re.compile(r"_epoch_\d+\.json\Z")
_NO_MODEL: Final = "none/none"
_ZSTD: Final = 93  # zip's number for it, which Python's zipfile does not know before 3.14
_LETTERS: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_ROLES: Final[dict[str, Role]] = {"user": "user", "judge": "judge", "grader": "judge"}  # Inspect's name for a role
_LIMITS: Final = {"token": "tokens", "time": "wall_s", "working": "wall_s", "cost": "cost_usd", "turn": "turns"}


class InspectLog:
    """Importer `inspect`."""

    def __init__(self, services: Services | None = None, info: ImporterInfo | None = None) -> None:
        pass

    def knows(self, source: Path) -> bool:
        """A `.eval` file, whatever is wrong with it, or a JSON file that begins as a log does."""
        if not source.is_file():
            return False
        if source.suffix == ".eval":
            return True
        with source.open("rb") as file:
            return b'"eval"' in file.read(4096) and source.suffix == ".json"

    def read(self, source: Path) -> ImportedRun:
        """The run. Raises ConfigError for a log that is broken, or of another schema."""
        header, samples = _plain(source) if source.suffix == ".json" else _archive(source)
        version = header.integer("version")
        if version != LOG_VERSION:
            raise ConfigError(f"{source}: log schema {version}, and {LOG_VERSION} is read", hint=_CONVERT)
        if not samples:
            raise ConfigError(f"{source}: the log holds no sample", hint="was it written with --no-log-samples?")
        spec = header.object("eval")
        arm = _arm(header, spec)
        return ImportedRun(
            name=f"inspect-{spec.text('task')}-{spec.text('run_id', 'x')[:12]}",
            created=spec.text("created"),
            source={"tool": "inspect_ai", "version": _version(spec), "format": f"log schema {version}"},
            benchmarks=(_benchmark(spec, samples),),
            arms=(arm,),
            trials=_trials(spec, samples, arm.handle),
            repeats=max(sample.integer("epoch", 1) for sample in samples),
        )


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(source: Path) -> tuple[Place, list[Place]]:
    header = Place(read_json(read_file(source), str(source)), str(source))
    return header, header.objects("samples")


def _archive(source: Path) -> tuple[Place, list[Place]]:
    try:
        with zipfile.ZipFile(source) as archive, source.open("rb") as file:
            names = archive.namelist()
            if "header.json" not in names:
                raise ConfigError(
                    f"{source}: no header: the log was not finished", hint="`inspect log recover` mends it"
                )
            found = [n for n in dict.fromkeys(names) if n.startswith("samples/") and n.endswith(".json")]
            if any(not _WHOLE.search(name) for name in found):
                raise ConfigError(f"{source}: its samples are in chunks", hint=_CONVERT)
            header, *samples = (
                Place(read_json(_member(archive, file, n), f"{source}: {n}"), f"{source}: {n}: $")
                for n in ("header.json", *found)
            )
            return header, samples
    except _BROKEN as error:
        raise ConfigError(f"{source}: the archive is broken: {error}") from None


def _member(archive: zipfile.ZipFile, file: io.BufferedReader, name: str) -> bytes:
    """A member's bytes, also where it is compressed as only newer Pythons know."""
    info = archive.getinfo(name)  # of several by one name the last, as Inspect has it
    if info.file_size > MAX_BYTES:
        raise ConfigError(f"{name} is larger than {MAX_BYTES >> 20} MiB")
    if info.compress_type != _ZSTD:
        return archive.read(name)
    file.seek(info.header_offset)
    name_length, extra_length = struct.unpack("<HH", file.read(30)[26:30])
    file.seek(info.header_offset + 30 + name_length + extra_length)
    return zstandard.ZstdDecompressor().decompress(file.read(info.compress_size), max_output_size=info.file_size or 1)


# ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _version(spec: Place) -> str:
    return spec.object("packages").text("inspect_ai", "unknown")


def _arm(header: Place, spec: Place) -> ImportedArm:
    steps = [step.text("solver", "") for step in header.object("plan").objects("steps")]
    solver = spec.value.get("solver") or " + ".join(s for s in steps if s) or "unknown"
    model = spec.text("model")
    axes: dict[str, JSONValue] = {"harness": str(solver)}
    if model != _NO_MODEL:
        axes["model"] = model
    given = spec.object("model_generate_config").value.items()
    axes |= {name: value for name, value in given if isinstance(value, (str, int, float, bool))}
    axes |= {name: found for name in ("task_args", "solver_args") if (found := spec.object(name).value)}
    return ImportedArm("inspect", axes, _version(spec))


def _benchmark(spec: Place, samples: list[Place]) -> ImportedBenchmark:
    dataset = spec.object("dataset")
    tasks: dict[str, ImportedTask] = {}
    for sample in samples:
        content: JSONValue = {"input": sample.value.get("input"), "target": sample.value.get("target")}
        tasks.setdefault(_id(sample), ImportedTask(_id(sample), content))
    scorers = [s.text("name", "") for s in spec.objects("scorers")]
    return ImportedBenchmark(
        name=spec.text("task"),
        dataset=Dataset(
            (dataset.value.get("name") and str(dataset.value["name"])) or spec.text("task"),
            str(spec.value.get("task_version", 0)),
            spec.text("created")[:10],
            "unknown",
            "an Inspect log",
        ),
        tasks=tuple(tasks.values()),
        grader=scorers[0] if scorers and scorers[0] else "unknown",
        grader_stamp={"inspect_ai": _version(spec), "scorers": list(scorers)},
    )


def _id(sample: Place) -> str:
    identifier = sample.value.get("id")
    if not isinstance(identifier, (str, int)):
        raise ConfigError(f"{sample.where}.id: expected a text or a number")
    return str(identifier)


def _trials(spec: Place, samples: list[Place], arm: str) -> Iterator[ImportedTrial]:
    task = spec.text("task")
    for sample in samples:
        error = sample.value.get("error")
        void = None
        if isinstance(error, dict):
            void = Void("imported", f"an error of the sample: {str(error.get('message'))[:500]}")
        calls, errors = _tool_calls(sample)
        yield ImportedTrial(
            benchmark=task,
            task=_id(sample),
            arm=arm,
            repeat=sample.integer("epoch", 1),
            exit=None if void else _exit(sample),
            void=void,
            verdict=None if void else _verdict(sample),
            started=str(sample.value.get("started_at") or spec.text("created")),
            wall_s=sample.number("total_time", 0.0),
            usage=_usage(sample, spec.text("model") != _NO_MODEL),
            tool_calls=calls,
            tool_errors=errors,
            events=tuple(_events(sample)),
        )


def _ours(sample: Place) -> Place:
    """What evalcore wrote there, if it did."""
    return sample.object("metadata").object("evalcore")


def _exit(sample: Place) -> Exit:
    kind, ours = sample.value.get("limit"), _ours(sample).value
    if isinstance(kind, dict):
        name = str(kind.get("type"))
        known = ours.get("limit")
        named = known if isinstance(known, str) else _LIMITS.get(name, name)
        return Exit("limit", named, str(kind.get("reason") or "")[:500] or None)
    return Exit(next((k for k in EXIT_KINDS if k == ours.get("exit") and k != "limit"), "completed"))


def _verdict(sample: Place) -> Verdict:
    scores = sample.object("scores").value
    if not scores:
        return Verdict("ungraded", bounds=(0.0, 1.0))
    name, first = next(iter(scores.items()))
    value = first.get("value") if isinstance(first, dict) else None
    details: JSONObject = {"scores": scores, "scorer": name}
    if isinstance(value, str) and value in _LETTERS:
        return _with_ours(first, value, details) if _ours(sample).value else _by_letter(value, details)
    if isinstance(value, (bool, int, float)):
        number = float(value)
        within = number if 0.0 <= number <= 1.0 else None
        return Verdict("pass" if number >= 1.0 else "fail", within, details=details)
    return Verdict("ungraded", details=details, bounds=(0.0, 1.0))


def _by_letter(value: str, details: JSONObject) -> Verdict:
    score = _LETTERS[value]
    return Verdict("pass" if value == "C" else "fail", score, details=details)


def _with_ours(score: JSONValue, value: str, details: JSONObject) -> Verdict:
    """The verdict that evalcore wrote beside its letter, if the two agree."""
    plain = _by_letter(value, details)
    beside = score.get("metadata") if isinstance(score, dict) else None
    found = beside if isinstance(beside, dict) else {}
    outcome = next((o for o in RESULTS if o == found.get("outcome")), plain.outcome)
    if (outcome in SUCCESSES) != (plain.outcome == "pass"):
        return plain
    harm, number, native = found.get("harm"), found.get("score"), found.get("details")
    within = float(number) if isinstance(number, (int, float)) and 0.0 <= number <= 1.0 else None
    return Verdict(
        outcome,
        within,
        harm=harm if isinstance(harm, bool) else None,
        details=native if isinstance(native, dict) else details,
    )


def _usage(sample: Place, with_model: bool) -> dict[Role, Usage]:
    """By role. A user's and a judge's is within its model's as well: the rest is the agent's."""
    if _ours(sample).value.get("usage"):
        ours = _ours(sample).object("usage")
        return {role: _our_usage(ours.object(role)) for role in ROLES if role in ours.value}
    models, roles = sample.object("model_usage"), sample.object("role_usage")
    asked = max(sum(m.value.get("role") == "assistant" for m in sample.objects("messages")), 1)
    if not models.value:  # what was used is not told, which is not the same as nothing
        return {"agent": Usage(calls=asked, unreported=asked)} if with_model else {}
    found: dict[Role, Usage] = {}
    for name, role in _ROLES.items():
        if name in roles.value:
            found[role] = _tokens(roles.object(name))
    whole = [_tokens(models.object(name)) for name in models.value]
    costs = [u.cost_usd for u in whole]
    others = list(found.values())
    costs_of_others = [u.cost_usd for u in others]
    cost = None
    if None not in costs and None not in costs_of_others:
        cost = max(sum(c or 0.0 for c in costs) - sum(c or 0.0 for c in costs_of_others), 0.0)
    found["agent"] = Usage(
        calls=asked,
        input=_rest((u.input for u in whole), (u.input for u in others)),
        output=_rest((u.output for u in whole), (u.output for u in others)),
        cache_read=_rest((u.cache_read for u in whole), (u.cache_read for u in others)),
        cache_write=_rest((u.cache_write for u in whole), (u.cache_write for u in others)),
        reasoning=_rest((u.reasoning for u in whole), (u.reasoning for u in others)),
        cost_usd=cost,
    )
    return found


def _rest(whole: Iterable[int], others: Iterable[int]) -> int:
    return max(sum(whole) - sum(others), 0)


def _tokens(one: Place) -> Usage:
    """Inspect's counts as ours: there, input leaves out what was read from a cache or written to one."""
    read, written = one.integer("input_tokens_cache_read", 0), one.integer("input_tokens_cache_write", 0)
    cost = one.value.get("total_cost")
    return Usage(
        calls=1,  # how many there were is not told
        input=one.integer("input_tokens", 0) + read + written,
        output=one.integer("output_tokens", 0),
        cache_read=read,
        cache_write=written,
        reasoning=one.integer("reasoning_tokens", 0),
        cost_usd=None if cost is None else one.number("total_cost"),
    )


def _our_usage(one: Place) -> Usage:
    return Usage(
        calls=one.integer("calls", 0),
        input=one.integer("input", 0),
        output=one.integer("output", 0),
        cache_read=one.integer("cache_read", 0),
        cache_write=one.integer("cache_write", 0),
        reasoning=one.integer("reasoning", 0),
        unreported=one.integer("unreported", 0),
        cost_usd=None if one.value.get("cost_usd") is None else one.number("cost_usd"),
    )


def _tool_calls(sample: Place) -> tuple[int, int]:
    ours = _ours(sample)
    if "tool_calls" in ours.value:
        return ours.integer("tool_calls"), ours.integer("tool_errors", 0)
    messages = [m for m in sample.objects("messages") if m.value.get("role") == "tool"]
    return len(messages), sum(m.value.get("error") is not None for m in messages)


def _events(sample: Place) -> Iterator[JSONObject]:
    """The conversation as a trace: without times, which the messages do not have."""
    said = sample.objects("messages")
    told = []
    while said and said[0].value.get("role") in ("system", "user"):
        told.append(said.pop(0).value)
    shown: list[JSONValue] = [{"role": m.get("role"), "content": m.get("content")} for m in told]
    yield {"t": 0.0, "e": "trial.start", "task": _id(sample), "messages": shown}
    number, calls = 0, 0
    for message in said:
        role, content = message.value.get("role"), message.value.get("content")
        if role == "assistant":
            number += 1
            body: JSONObject = {"choices": [{"message": _chat(message)}]}
            yield {"t": 0.0, "e": "model.response", "role": "agent", "call": number, "body": body, "wall_s": 0.0}
        elif role == "tool":
            calls += 1
            parts: list[JSONValue] = [{"type": "text", "text": content}] if isinstance(content, str) else []
            failed = message.value.get("error") is not None
            tool = message.value.get("function") or "tool"
            yield {"t": 0.0, "e": "tool.call", "call": calls, "tool": tool, "arguments": None, "bridge": "inspect"}
            yield {"t": 0.0, "e": "tool.result", "call": calls, "error": failed, "content": parts, "wall_s": 0.0}
        else:
            one: JSONObject = {"role": role, "content": content}
            yield {"t": 0.0, "e": "dialogue.turn", "turn": number + 1, "messages": [one]}
    output = sample.object("output").value.get("completion")
    deliverable: JSONObject = {"answer": output if isinstance(output, str) else None, "calls": [], "data": {}}
    yield {"t": 0.0, "e": "deliverable", **deliverable, "blobs": {}}
    yield {"t": 0.0, "e": "evidence", "data": {}, "blobs": {}}


def _chat(message: Place) -> JSONObject:
    """An Inspect assistant message as Chat Completions has it."""
    chat: JSONObject = {"role": "assistant", "content": message.value.get("content")}
    calls = message.objects("tool_calls")
    if calls:
        chat["tool_calls"] = [
            {
                "id": call.text("id", ""),
                "type": "function",
                "function": {
                    "name": call.text("function", ""),
                    "arguments": dumps(call.value.get("arguments") or {}).decode(),
                },
            }
            for call in calls
        ]
    return chat
