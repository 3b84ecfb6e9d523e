"""Find, load and check plugins. A broken plugin is reported, and fatal only where it is the one asked for.

pluggy's own entry-point loading is not enough: one ImportError would end the program, and a second distribution with
the same name would silently lose. Stages, in order: conflict, version, import, validate.
"""

from __future__ import annotations

import difflib
import importlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

import pluggy
from attrs import field, frozen

from evalcore import hookspecs
from evalcore._installed import entries
from evalcore.errors import PluginError, UnknownNameError
from evalcore.values import descriptors as d

Stage: TypeAlias = Literal["conflict", "version", "import", "validate"]
T = TypeVar("T")
D = TypeVar("D", bound=d.Descriptor)

CORE: Final = "evalcore-core"
BUILTIN: Final = "evalcore.builtin"

# hook -> what its descriptors may be
KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "evalcore_adapters": (d.AdapterInfo, d.GroupInfo),
    "evalcore_bridges": (d.BridgeInfo,),
    "evalcore_graders": (d.GraderInfo,),
    "evalcore_metrics": (d.MetricInfo,),
    "evalcore_harnesses": (d.HarnessInfo,),
    "evalcore_models": (d.ModelInfo,),
    "evalcore_sandboxes": (d.SandboxInfo,),
    "evalcore_executors": (d.ExecutorInfo,),
    "evalcore_axes": (d.AxisInfo,),
    "evalcore_transforms": (d.TransformInfo,),
    "evalcore_toolkits": (d.ToolkitInfo,),
    "evalcore_commands": (d.CommandInfo,),
    "evalcore_renderers": (d.RendererInfo,),
    "evalcore_importers": (d.ImporterInfo,),
}


@frozen
class PluginRef:
    """An entry point as its distribution's metadata has it; nothing is imported for this."""

    name: str
    distribution: str
    version: str
    module: str
    requires: tuple[str, ...] = field(default=(), repr=False)


@frozen
class PluginFailure:
    """Why a plugin is not in use; `stage` says how far it came."""

    ref: PluginRef
    stage: Stage
    message: str

    def __str__(self) -> str:
        who = f"{self.ref.name} ({self.ref.distribution} {self.ref.version})"
        return f"plugin {who} failed at {self.stage}: {self.message}"


@frozen
class Registered:
    """A descriptor and the plugin it came from."""

    info: Any
    plugin: str


class Registry:
    """Everything that is installed and sound, by kind and name, and what is not and why."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager("evalcore")
        self.manager.add_hookspecs(hookspecs)
        self.plugins: list[PluginRef] = []
        self.failures: list[PluginFailure] = []
        self._found: dict[str, dict[str, Registered]] = {hook: {} for hook in KINDS}

    def add(self, ref: PluginRef, module: object) -> None:
        """Register a module's hooks and descriptors. A fault leaves the registry as it was and becomes a failure."""
        try:
            self.manager.register(module, name=ref.name)
            self._check_hooks(ref, module)
            described = {hook: self._describe(ref, hook, module) for hook in KINDS}
        except (PluginError, pluggy.PluginValidationError, ValueError) as error:
            if self.manager.has_plugin(ref.name):
                self.manager.unregister(name=ref.name)
            self.failures.append(PluginFailure(ref, "validate", str(error).replace("\n", " ")))
            return
        for hook, infos in described.items():
            self._found[hook].update({_key(info): Registered(info, ref.name) for info in infos})
        self.plugins.append(ref)

    def _check_hooks(self, ref: PluginRef, module: object) -> None:
        for caller in self.manager.get_hookcallers(module) or ():
            unknown = not caller.has_spec()
            if unknown and not all(impl.optionalhook for impl in caller.get_hookimpls() if impl.plugin is module):
                nearest = difflib.get_close_matches(
                    caller.name, [n for n in vars(hookspecs) if n.startswith("evalcore_")]
                )
                hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
                raise _invalid(ref, f"unknown hook {caller.name!r}{hint}")

    def _describe(self, ref: PluginRef, hook: str, module: object) -> list[Any]:
        """The descriptors that one hook of a plugin returns, each checked for type and for a name still free."""
        function = getattr(module, hook, None)
        if function is None or getattr(function, "evalcore_impl", None) is None:
            return []
        try:
            infos: list[Any] = list(function())
        except (Exception, SystemExit) as error:
            raise _invalid(ref, f"{hook} raised {type(error).__name__}: {error}") from error
        kinds: Any = KINDS[hook]  # Any: a tuple of unrelated classes narrows to nothing useful
        own: set[str] = set()
        for info in infos:
            if not isinstance(info, kinds):
                wanted = " or ".join(k.__name__ for k in KINDS[hook])
                raise _invalid(ref, f"{hook} must return {wanted}, not {type(info).__name__}")
            name = _key(info)
            if (other := self._found[hook].get(name)) is not None:
                raise _invalid(ref, f"{hook}: {name!r} is already registered by {other.plugin!r}")
            if name in own:
                raise _invalid(ref, f"{hook}: {name!r} is there twice")
            own.add(name)
        return infos

    def all(self, kind: type[T]) -> dict[str, T]:
        """Every descriptor of a kind by name, in order of registration."""
        return {
            name: found.info
            for hook, kinds in KINDS.items()
            if kind in kinds
            for name, found in self._found[hook].items()
            if isinstance(found.info, kind)
        }

    def get(self, kind: type[T], word: str, name: str) -> T:
        """The descriptor of a kind by name. Raises UnknownNameError with the nearest names, or the failure to blame."""
        known = self.all(kind)
        if name in known:
            return known[name]
        for key, info in known.items():
            if key.endswith(f"/{name}"):  # an axis of one part: the first that has one of that name
                return info
        nearest = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
        blamed = [f for f in self.failures if name.startswith(f.ref.name)]
        hint = str(blamed[0]) if blamed else self._provider_hint(kind, nearest)
        raise UnknownNameError(word, name, nearest=nearest, hint=hint)

    def _provider_hint(self, kind: type, nearest: Sequence[str]) -> str | None:
        if not nearest:
            return "`evalcore list` shows everything that is installed"
        return f"{nearest[0]!r} comes from the plugin {self.plugin_of(kind, nearest[0])!r}"

    def plugin_of(self, kind: type, name: str) -> str:
        """The name of the plugin that registered a descriptor."""
        return next(
            self._found[h][name].plugin for h, kinds in KINDS.items() if kind in kinds and name in self._found[h]
        )

    def factory(self, info: d.Descriptor) -> Callable[..., Any]:
        """The object that a descriptor's `factory` names, imported now. Raises PluginError."""
        module, _, attribute = info.factory.partition(":")
        try:
            found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"{info.name}: cannot load {info.factory}: {type(error).__name__}: {error}",
                plugin=info.name,
                stage="import",
                hint="`evalcore plugins` shows which distribution it comes from",
            ) from error
        return found


def _key(info: Any) -> str:
    """What a descriptor is registered under: its name, which for an axis of one part is that part's own."""
    name: str = info.name
    return f"{info.of}/{name}" if isinstance(info, d.AxisInfo) and info.of else name


def _invalid(ref: PluginRef, message: str) -> PluginError:
    return PluginError(message, plugin=ref.name, stage="validate")


def discover() -> list[PluginRef]:
    """Every entry point of the group, from metadata alone."""
    found = {
        PluginRef(entry.name, entry.distribution, entry.version, entry.value.partition(":")[0].strip(), entry.requires)
        for entry in entries(hookspecs.GROUP)
    }
    return sorted(found, key=lambda ref: (ref.name, ref.distribution))


def load(blocked: Iterable[str] = (), only: Iterable[str] | None = None) -> Registry:
    """The built-ins and every sound plugin. `only` names those to load (None: all), `blocked` those to leave out."""
    registry = Registry()
    registry.add(
        PluginRef("builtin", CORE, _core_version(), BUILTIN),
        importlib.import_module(BUILTIN),
    )
    barred, allowed = set(blocked), None if only is None else set(only)
    refs = [r for r in discover() if r.name not in barred and (allowed is None or r.name in allowed)]
    for ref in refs:
        failure = _conflict(ref, refs) or _version(ref)
        if failure is not None:
            registry.failures.append(failure)
            continue
        try:
            module = importlib.import_module(ref.module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one broken plugin is no reason to end
            registry.failures.append(PluginFailure(ref, "import", f"{type(error).__name__}: {error}"))
            continue
        registry.add(ref, module)
    return registry


def _conflict(ref: PluginRef, refs: Sequence[PluginRef]) -> PluginFailure | None:
    rivals = sorted({r.distribution for r in refs if r.name == ref.name})
    if len(rivals) < 2 and ref.name != "builtin":
        return None
    return PluginFailure(ref, "conflict", f"{len(rivals)} distributions register {ref.name!r}: {', '.join(rivals)}")


def _version(ref: PluginRef) -> PluginFailure | None:
    """A failure if the plugin's own metadata asks for another core than this one."""
    for text in ref.requires:
        if not _normal(text).startswith(CORE) or _plainly_met(text):
            continue
        from packaging.requirements import InvalidRequirement, Requirement  # 30 ms: only where it is not plain

        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            return PluginFailure(ref, "version", f"unreadable requirement {text!r}: {error}")
        if _normal(requirement.name) == CORE and not requirement.specifier.contains(_core_version(), prereleases=True):
            return PluginFailure(ref, "version", f"needs {text}, this is {CORE} {_core_version()}")
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


_PLAIN: Final = re.compile(
    r"evalcore[-_.]core *\(?(?P<bounds>(?: *[<>]=? *[0-9]+(?:\.[0-9]+)* *,?)+)\)?", re.IGNORECASE
)
_BOUND: Final = re.compile(r"([<>]=?) *([0-9.]+)")
_MEETS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _plainly_met(requirement: str) -> bool:
    """Whether it is bounds like `>=0.1,<0.2` alone, and this core is within them. False: somebody must look closer."""
    plain, version = _PLAIN.fullmatch(requirement.strip()), _release(_core_version())
    if plain is None or version is None:
        return False
    return all(_MEETS[sign](version, _release(bound)) for sign, bound in _BOUND.findall(plain["bounds"]))


def _release(text: str) -> tuple[int, ...] | None:
    """A version of numbers alone, without the zeros at its end, so that 1.0 equals 1; None for any other."""
    parts = text.split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _core_version() -> str:
    from evalcore import __version__

    return __version__
