"""The parts of a plan: each made once, shared between cells, and closed together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, evolve, field

from evalcore.contracts import (
    Bridge,
    CheckedProvider,
    Closable,
    Harness,
    HarnessVersion,
    PreparedProvider,
    Provider,
    Transform,
)
from evalcore.engine.arms import MODEL_AXES, Vocabulary
from evalcore.engine.benchmarks import Benchmark
from evalcore.engine.live import RoleModel
from evalcore.engine.replay import Recordings, varying
from evalcore.engine.services import LocalServices
from evalcore.engine.trial import Cell
from evalcore.errors import ConfigError, Fault
from evalcore.plugins import Registry
from evalcore.values.arm import Arm, Owner
from evalcore.values.descriptors import AxisInfo, BridgeInfo, HarnessInfo, MetricInfo, ModelInfo, TransformInfo
from evalcore.values.json import JSONValue
from evalcore.values.measure import measures_of
from evalcore.values.study import Study
from evalcore.values.task import Role
from evalcore.values.trial import Provenance
from evalcore.wires.gateway.prices import ModelPrice
from evalcore.wires.gateway.upstream import Upstream
from evalcore.wires.injection import Injector


@define
class Parts:
    """Parts made once and shared between cells."""

    registry: Registry
    services: LocalServices
    bridges: dict[str, Bridge] = field(factory=dict)
    providers: dict[str, Provider] = field(factory=dict)
    upstreams: dict[tuple[str, str, bool], Upstream] = field(factory=dict)  # by provider, address, and with faults?
    injector: Injector | None = None  # of the study's faults
    harnesses: dict[str, tuple[HarnessInfo, Harness, HarnessVersion]] = field(factory=dict)
    made: dict[str, Transform] = field(factory=dict)
    recordings: Recordings | None = None  # where models' answers come from, in a replay

    @property
    def offline(self) -> bool:
        """Whether no provider will be asked anything."""
        return self.recordings is not None and not self.recordings.replay.record_missing

    async def harness(self, name: str) -> tuple[HarnessInfo, Harness, HarnessVersion]:
        """A harness, probed once."""
        if name not in self.harnesses:
            info = self.registry.get(HarnessInfo, "harness", name)
            harness: Harness = self.registry.factory(info)(self.services, info)
            self.harnesses[name] = (info, harness, await harness.probe())
        return self.harnesses[name]

    def provider(self, model: str) -> Provider:
        """The provider of `provider/model`."""
        name = model.partition("/")[0]
        if name not in self.providers:
            info = self.registry.get(ModelInfo, "model provider", name)
            self.providers[name] = self.registry.factory(info)(self.services, info)
        return self.providers[name]

    def upstream(self, model: str, settings: Mapping[str, JSONValue], *, faults: bool = False) -> Upstream:
        """What every trial's calls to that model's provider go through; another address is another one.

        One with faults is another one too: what is done on purpose shall not slow the others down.
        """
        name, address = model.partition("/")[0], str(settings.get("base_url") or "")
        key = name, address, faults
        if key not in self.upstreams:
            provider, services = self.provider(model), self.services
            injector = self.injector if faults else None
            self.upstreams[key] = Upstream(name, provider, services.clock, services.random, injector)
        return self.upstreams[key]

    def transforms(self, arm: Arm) -> tuple[tuple[Transform, JSONValue], ...]:
        """What changes assignments for an arm, in order of registration, each with the value of its axis."""
        found = []
        for name, info in self.registry.all(TransformInfo).items():
            value = arm.axes.get(info.axis)
            if value is not None:
                if name not in self.made:
                    self.made[name] = self.registry.factory(info)(self.services, info)
                found.append((self.made[name], value))
        return tuple(found)

    def content(self, axis: str, value: str) -> Mapping[str, str]:
        """Digests of the files behind an axis' value."""
        if axis not in MODEL_AXES:
            return {}
        found = self.provider(value).content(value.partition("/")[2])
        return found if axis == "model" else {f"{axis}.{name}": sha256 for name, sha256 in found.items()}

    async def close(self) -> None:
        """Close what was made, last made kinds first; benchmarks are closed by their plan."""
        if self.recordings is not None:
            self.recordings.close()
        made: list[object] = [*self.made.values(), *(h for _, h, _ in self.harnesses.values())]
        await close_all([*made, *self.bridges.values(), *self.providers.values()])


async def close_all(parts: list[object]) -> None:
    """Close each part that can be closed, once."""
    for part in {id(p): p for p in parts}.values():
        if isinstance(part, Closable):
            await part.close()


def with_faults(cell: Cell, parts: Parts) -> Cell:
    """The same cell, its trials disturbed as the study says."""
    assert cell.arm.model is not None
    upstream = parts.upstream(cell.arm.model, cell.settings, faults=True)
    return evolve(cell, upstream=upstream, injector=parts.injector, provenance="fault-injected")


class Bridges(Mapping[str, Bridge]):
    """Bridges by kind, each made when the first task asks for it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __getitem__(self, kind: str) -> Bridge:
        made = self._parts.bridges.get(kind)
        if made is None:
            info = self._parts.registry.get(BridgeInfo, "bridge", kind)
            made = self._parts.bridges[kind] = self._parts.registry.factory(info)(self._parts.services, info)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts.registry.all(BridgeInfo))

    def __len__(self) -> int:
        return len(self._parts.registry.all(BridgeInfo))


def vocabulary(registry: Registry) -> Vocabulary:
    """What arms may say, from everything that is registered."""
    return Vocabulary(
        tuple(registry.all(AxisInfo).values()),
        tuple(registry.all(HarnessInfo).values()),
        tuple(registry.all(ModelInfo).values()),
        measures_of(registry.all(MetricInfo).values()),
    )


def check_transforms(arms: tuple[Arm, ...], registry: Registry) -> None:
    """A knob that turns nothing would make two equal arms look different."""
    applied = {info.axis for info in registry.all(TransformInfo).values()}
    idle = {axis.name for axis in registry.all(AxisInfo).values() if axis.owner == "transform"} - applied
    for arm in arms:
        for axis in sorted(idle & arm.axes.keys()):
            if arm.axes[axis] != arm.defaults.get(axis):
                fault = Fault(f"$.arms.{arm.handle}.{axis}", "no transform applies this axis")
                raise ConfigError("the study sets an axis that has no effect", faults=[fault])


def check_providers(arms: tuple[Arm, ...], parts: Parts) -> None:
    """Providers that can tell before the first trial that they could not serve an arm are asked, all of them."""
    faults: list[Fault] = []
    for arm in () if parts.offline else arms:
        provider: object = parts.provider(arm.model) if arm.model else None
        if arm.model is None or not isinstance(provider, CheckedProvider):
            continue
        try:
            provider.check(arm.model.partition("/")[2], owned(arm, "provider", parts.registry))
        except ConfigError as error:
            faults.append(Fault(f"arm {arm.handle!r}", error.message, error.hint))
    if faults:
        raise ConfigError("models of the study cannot be called", faults=faults)


async def prepare_providers(arms: tuple[Arm, ...], parts: Parts) -> None:
    """Providers that must get ready do so before the first trial, each for each of its models once."""
    done: set[str] = set()
    for arm in arms:
        provider: object = parts.provider(arm.model) if arm.model else None
        if arm.model is not None and arm.model not in done and isinstance(provider, PreparedProvider):
            done.add(arm.model)
            await provider.prepare(arm.model.partition("/")[2], owned(arm, "provider", parts.registry))


def owned(arm: Arm, owner: Owner, registry: Registry) -> dict[str, JSONValue]:
    """The arm's axes of one owner, those that are set."""
    parts = {arm.harness, (arm.model or "").partition("/")[0]}
    mine = {
        axis.name
        for axis in registry.all(AxisInfo).values()
        if axis.owner == owner and (not axis.of or owner not in ("harness", "provider") or axis.of in parts)
    }
    return {k: v for k, v in arm.axes.items() if v is not None and k in mine}


def _provenance(benchmark: Benchmark) -> Provenance:
    """Of a trial that nothing stands between: by the code that grades it."""
    return "stand-in" if benchmark.stamp.grader_stamp.get("stand_in") is True else "live"


def make_cell(
    benchmark: Benchmark,
    arm: Arm,
    info: HarnessInfo,
    harness: Harness,
    study: Study,
    parts: Parts,
    price: ModelPrice | None,
    roles: Mapping[Role, RoleModel],
) -> Cell:
    """The parts of one benchmark × arm."""
    settings, options = owned(arm, "provider", parts.registry), owned(arm, "harness", parts.registry)
    replayed = parts.recordings is not None and arm.model is not None
    return Cell(
        benchmark=benchmark.selector,
        adapter=benchmark.adapter,
        grader=benchmark.grader,
        arm=arm,
        harness=harness,
        upstream=parts.upstream(arm.model, settings) if arm.model else None,
        bridges=Bridges(parts),
        options=options,
        parameters=owned(arm, "gateway", parts.registry),
        limits=study.limits,
        control=info.control,
        transforms=parts.transforms(arm),
        settings=settings,
        wire_server=parts.services.wire_server if info.wires == "http" else None,
        price=price,
        roles=roles,
        role_limits={role: choice.limits for role, choice in study.roles.items()},
        provenance="replayed" if replayed else _provenance(benchmark),
        recordings=parts.recordings,
        varies=varying(info, harness, options) if replayed else (),
    )
