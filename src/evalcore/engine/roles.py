"""Who speaks for the roles other than the agent's: the arm's choice, or upstream's own model; and whether they can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalcore.contracts import CheckedProvider
from evalcore.engine.benchmarks import Benchmark
from evalcore.engine.live import RoleModel
from evalcore.engine.parts import Parts, owned
from evalcore.errors import ConfigError, Fault
from evalcore.values.arm import Arm
from evalcore.values.descriptors import AdapterInfo, HarnessInfo
from evalcore.values.json import JSONValue
from evalcore.values.task import Role
from evalcore.wires.gateway.prices import PriceList

OTHERS: tuple[Role, ...] = ("user", "judge")


def model_of(role: Role, info: AdapterInfo, arm: Arm) -> str | None:
    """`provider/name` of a role in one cell; None where the benchmark has no such role."""
    if role not in info.roles:
        return None
    chosen = arm.axes.get(f"{role}_model")
    return str(chosen) if chosen is not None else info.roles[role] or None


def role_models(
    benchmark: Benchmark, arm: Arm, harness: HarnessInfo, parts: Parts, prices: PriceList
) -> dict[Role, RoleModel]:
    """The models of a cell's other roles. A control's user is scripted; a role that cannot be served is left out."""
    found: dict[Role, RoleModel] = {}
    for role in OTHERS:
        model = model_of(role, benchmark.info, arm)
        if model is None or (role == "user" and harness.control) or _unserved(model, arm, parts) is not None:
            continue
        settings = _settings(model, arm, parts)
        address = settings.get("base_url")
        price = prices.price(model, address if isinstance(address, str) else None)
        found[role] = RoleModel(model, parts.upstream(model, settings), {}, settings, price)
    return found


def check_roles(
    benchmarks: Sequence[Benchmark], arms: Sequence[Arm], harnesses: Mapping[str, HarnessInfo], parts: Parts
) -> list[str]:
    """Refuse what could not be run for want of a role's model; returns a note for each judge that is missing.

    Raises ConfigError with every fault.
    """
    faults = [*_unused(benchmarks, arms)]
    notes: dict[str, None] = {}
    for benchmark in benchmarks:
        for arm in arms:
            info = harnesses[arm.harness]
            user, judge = (model_of(role, benchmark.info, arm) for role in OTHERS)
            if user is not None and not info.control and (error := _unserved(user, arm, parts)) is not None:
                hint = f"{error.hint}; or another user: --user-model provider/name"
                faults.append(Fault(f"{benchmark.selector}: the simulated user {user}", error.message, hint))
            if judge is not None and (error := _unserved(judge, arm, parts)) is not None:
                notes[
                    f"{benchmark.selector}: no judge ({judge}: {error.message}); what only it decides is ungraded"
                ] = None
            if benchmark.info.tools_change and info.relists == "never":
                why = f"its tools change in the course of a trial, and {arm.harness!r} never lists them anew"
                faults.append(Fault(f"{benchmark.selector} with arm {arm.handle!r}", why))
    if faults:
        raise ConfigError("the study cannot be run", faults=list(dict.fromkeys(faults)))
    return list(notes)


def _unused(benchmarks: Sequence[Benchmark], arms: Sequence[Arm]) -> Iterator[Fault]:
    """A knob that turns nothing would make two equal arms look different."""
    for role in OTHERS:
        if not any(role in b.info.roles for b in benchmarks):
            for arm in arms:
                if arm.axes.get(f"{role}_model") is not None:
                    yield Fault(f"$.arms.{arm.handle}.{role}_model", f"no benchmark of the study has a {role}")


def _unserved(model: str, arm: Arm, parts: Parts) -> ConfigError | None:
    """Why a model cannot be called, if its provider can tell."""
    provider: object = parts.provider(model)
    if not parts.offline and isinstance(provider, CheckedProvider):
        try:
            provider.check(model.partition("/")[2], _settings(model, arm, parts))
        except ConfigError as error:
            return error
    return None


def _settings(model: str, arm: Arm, parts: Parts) -> dict[str, JSONValue]:
    """The arm's provider-owned axes, where the role is served by the same provider as the agent."""
    same = arm.model is not None and arm.model.partition("/")[0] == model.partition("/")[0]
    return owned(arm, "provider", parts.registry) if same else {}
