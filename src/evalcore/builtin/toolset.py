"""Bridge `toolset`: tools declared as data. A call gets the declared result, or what its effect makes of a state.

The configuration, all but `tools` optional (the effect language is in `docs/suites.md`):

    tools           [{name, description, input_schema, output_schema, result, effect}]
    state           an object: what effects read and change, anew in every episode
    default_result  what a tool without a result of its own answers ("ok")
    echo            true: such a tool answers {ok, tool, arguments} instead
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evalcore.contracts import Driver, OpenTrial, ToolResult, text_result
from evalcore.errors import InfraError
from evalcore.values.faults import ROOT, Faults, described, did_you_mean, item_path, key_path, literal
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import BridgeSpec, ToolSpec

if TYPE_CHECKING:  # what has no effects need not load their language
    from evalcore.builtin.toolset_effects import Effect

_KEYS: Final = ("tools", "state", "default_result", "echo")
_KEPT: Final = 1024  # declarations that are remembered: a trial's are most often those of a trial before


class ToolsetBridge:
    """Opens episodes. A list of tools is read once, as long as it is the same list."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        self._read: dict[int, tuple[object, Declared]] = {}  # by identity; holding the list keeps it apart

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> ToolsetEpisode:
        """An episode with the declared tools. Raises InfraError for a declaration that is none, with its path."""
        config = spec.config
        tools = config.get("tools")
        known = self._read.get(id(tools))
        if known is None or known[0] is not tools:
            known = self._remember(config)
        state = config.get("state")
        if state is None:
            state = {} if known[1].effects else None
        elif not isinstance(state, dict):
            raise InfraError(f"bridge toolset: {ROOT}.state: expected an object, got {described(state)}")
        return ToolsetEpisode(known[1], config.get("default_result", "ok"), state, echo=config.get("echo") is True)

    def _remember(self, config: JSONObject) -> tuple[object, Declared]:
        faults = Faults()
        for key in config:
            if key not in _KEYS:
                faults.add(key_path(ROOT, key), "unknown key", did_you_mean(key, _KEYS))
        read = (config.get("tools"), read_tools(config.get("tools"), where=f"{ROOT}.tools", faults=faults))
        if faults:
            first, *more = faults
            also = f" (and {len(more)} more)" if more else ""
            raise InfraError(f"bridge toolset: {first}{also}")
        if len(self._read) >= _KEPT:
            self._read.clear()
        self._read[id(read[0])] = read
        return read


class ToolsetEpisode:
    """The calls and the state of one trial so far."""

    __slots__ = ("_calls", "_closed", "_declared", "_default", "_echo", "_state")

    def __init__(self, declared: Declared, default: JSONValue, state: JSONValue, *, echo: bool = False) -> None:
        self._declared = declared
        self._default = default
        self._echo = echo
        self._state = state
        self._calls: list[JSONValue] = []
        self._closed = False

    def tools(self) -> Sequence[ToolSpec]:
        """The declared tools."""
        return self._declared.specs

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """What the tool answers, as text; an unknown one, or arguments that are no object, are the caller's error."""
        if self._closed:
            return text_result("the trial is over", error=True)
        if name not in self._declared.names:
            return text_result(f"unknown tool: {name}", error=True)
        if not isinstance(arguments, dict):
            return text_result(f"arguments must be an object, not {type(arguments).__name__}", error=True)
        self._calls.append({"name": name, "arguments": arguments})
        effect = self._declared.effects.get(name)
        if effect is not None:
            return self._carry_out(name, effect, arguments)
        return text_result(self._declared_text(name, arguments))

    def _carry_out(self, name: str, effect: Effect, arguments: Mapping[str, JSONValue]) -> ToolResult:
        outcome = effect.apply(self._state, arguments)
        if outcome.error is not None:
            return text_result(outcome.error, error=True)
        self._state = outcome.state
        answer = outcome.answer
        return text_result(self._declared_text(name, arguments) if answer is None else _said(answer))

    def _declared_text(self, name: str, arguments: Mapping[str, JSONValue]) -> str:
        text = self._declared.texts.get(name)
        if text is not None:
            return text
        if self._echo:
            return exact_text({"ok": True, "tool": name, "arguments": dict(arguments)})
        return _said(self._default)

    def driver(self) -> Driver | None:
        """No dialogue."""
        return None

    async def state(self) -> JSONValue:
        """The state as the calls left it; where none is declared, the calls."""
        return list(self._calls) if self._state is None else self._state

    async def close(self) -> None:
        """From now on, calls are refused."""
        self._closed = True


# ── reading declarations ─────────────────────────────────────────────────────────────────────────────────────────────


class Declared(NamedTuple):
    """Tools as they are served. `texts` holds the declared results as they are sent, `effects` what calls do."""

    specs: tuple[ToolSpec, ...]
    names: KeysView[str]
    texts: Mapping[str, str]
    effects: Mapping[str, Effect]


def read_tools(raw: JSONValue, *, where: str, faults: Faults) -> Declared:
    """The tools of a list of `{name, description?, input_schema?, output_schema?, result?, effect?}`."""
    specs: dict[str, ToolSpec] = {}
    texts: dict[str, str] = {}
    effects: dict[str, Effect] = {}
    if not isinstance(raw, list):
        faults.add(where, f"expected an array of tools, got {described(raw)}")
        raw = []
    for index, tool in enumerate(raw):
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str) or not name or name in specs:
            _misnamed(tool, item_path(where, index), faults)
            continue
        get = tool.get
        description, schema, output = get("description", ""), get("input_schema"), get("output_schema")
        if type(description) is not str or type(schema) is not dict or output is not None:
            description, schema, output = _checked(description, schema, output, item_path(where, index), faults)
        specs[name] = ToolSpec(name, description, schema, output)
        if (result := get("result")) is not None:
            texts[name] = result if type(result) is str else _said(result)
        if (effect := get("effect")) is not None:
            from evalcore.builtin.toolset_syntax import read_effect

            place = key_path(item_path(where, index), "effect")
            effects[name] = read_effect(effect, where=place, faults=faults, arguments=arguments_of(specs[name]))
    return Declared(tuple(specs.values()), specs.keys(), texts, effects)


def _misnamed(tool: JSONValue, where: str, faults: Faults) -> None:
    """Says why a tool has no name of its own."""
    if not isinstance(tool, dict):
        faults.add(where, f"expected a tool, got {described(tool)}")
    elif isinstance(name := tool.get("name"), str) and name:
        faults.add(key_path(where, "name"), f"{literal(name)} is the name of another tool, too")
    else:
        faults.add(key_path(where, "name"), "missing: expected text")


def _checked(
    description: JSONValue, schema: JSONValue, output: JSONValue, where: str, faults: Faults
) -> tuple[str, JSONObject, JSONObject | None]:
    """What a tool says of itself, each part replaced by a plain one where it is left out or wrong."""
    if not isinstance(description, str):
        faults.add(f"{where}.description", f"expected text, got {described(description)}")
        description = ""
    if not isinstance(schema, dict):
        if schema is not None:
            faults.add(f"{where}.input_schema", f"expected a JSON Schema, got {described(schema)}")
        schema = {"type": "object", "properties": {}}
    if output is not None and not isinstance(output, dict):
        faults.add(f"{where}.output_schema", f"expected a JSON Schema, got {described(output)}")
        output = None
    return description, schema, output


def arguments_of(spec: ToolSpec) -> frozenset[str] | None:
    """The arguments that a tool's schema names, if it names any and allows no others."""
    properties = spec.input_schema.get("properties")
    if not isinstance(properties, dict) or not properties or spec.input_schema.get("additionalProperties"):
        return None
    return frozenset(properties)


def _said(value: JSONValue) -> str:
    """Text as it is, anything else as JSON."""
    return value if isinstance(value, str) else exact_text(value)
