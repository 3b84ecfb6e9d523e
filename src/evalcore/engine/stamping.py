"""The stamp of a run: everything that its numbers depend on, gathered before the first trial."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from evalcore import API_VERSION, __version__
from evalcore.contracts import Harness, HarnessVersion
from evalcore.engine.benchmarks import Benchmark, grading_digest
from evalcore.engine.services import LocalServices
from evalcore.plugins import Registry
from evalcore.values.arm import Arm
from evalcore.values.descriptors import GroupInfo, HarnessInfo, ModelInfo
from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.stamp import ArmStamp, GroupStamp, RunStamp
from evalcore.values.study import Study


async def make_stamp(
    study: Study,
    run: str,
    arms: tuple[Arm, ...],
    harnesses: Mapping[str, tuple[HarnessInfo, Harness, HarnessVersion]],
    benchmarks: list[Benchmark],
    registry: Registry,
    services: LocalServices,
    prices: JSONObject,
) -> RunStamp:
    """The stamp, with what is installed, set up and found on this machine."""
    plugins: JSONObject = {p.name: f"{p.distribution} {p.version}" for p in registry.plugins}
    return RunStamp(
        run=run,
        created=services.clock.now(),
        study_name=study.name,
        study_digest=study.digest,
        study=study.as_json(),
        seed=study.seed,
        repeats=study.repeats,
        arms=tuple(_arm_stamp(a, *harnesses[a.harness], registry) for a in arms),
        benchmarks=tuple(b.stamp for b in benchmarks),
        grading=grading_digest(benchmarks),
        groups=_groups(study, registry),
        versions={"evalcore": __version__, "api": API_VERSION, "python": platform.python_version(), "plugins": plugins},
        toolkits={k: _json(v) for k, v in (await services.toolkit_stamps()).items()},
        prices=prices,
        host={
            "system": sys.platform,
            "machine": platform.machine(),
            "cpus": os.cpu_count() or 1,
            "base": str(services.base),
        },
    )


def _groups(study: Study, registry: Registry) -> tuple[GroupStamp, ...]:
    known = registry.all(GroupInfo)
    return tuple(GroupStamp(name, dict(known[name].members)) for name in study.benchmarks if name in known)


def _json(value: object) -> JSONValue:
    return value if isinstance(value, dict) else {}


def _arm_stamp(arm: Arm, info: HarnessInfo, _: Harness, version: HarnessVersion, registry: Registry) -> ArmStamp:
    provider = registry.all(ModelInfo).get((arm.model or "").partition("/")[0])
    note = provider.note if provider else ""
    return ArmStamp(arm, version.version, version.build, info.control, info.uses_model, note)


def base_of(stamp: RunStamp) -> Path:
    """The folder that relative paths of a stored study are relative to."""
    return Path(str(stamp.host.get("base", ".")))
