"""The strict hooks behind `convert.structure`. Nothing else imports this module: cattrs must stay out of start-up.

cattrs walks attrs classes and gathers what goes wrong; every leaf and container is checked here, because its own hooks
cast ("3" is an integer to them, and text a list) and lose the messages of validators.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import attrs
from cattrs import (
    AttributeValidationNote,
    ClassValidationError,
    Converter,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn_from_attrs, override

from evalcore.errors import Fault
from evalcore.values.faults import Wrong, described, did_you_mean, item_path, key_path, one_of
from evalcore.values.json import JSONObject

Hook: TypeAlias = Callable[[object, object], object]
Tags: TypeAlias = Mapping[type, tuple[str, str]]  # class -> the key of its tag, and the tag

_MAX_DEPTH: Final = 200  # as json.py: deeper values are no configuration
_UNIONS: Final = (Union, types.UnionType)
_SEQUENCES: Final = (tuple, list, Sequence)
_MAPPINGS: Final = (dict, Mapping, MutableMapping)
_WORDS: Final[Mapping[object, str]] = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


class AnyJSON:
    """Stands for JSONValue in resolved annotations: that alias is recursive, and not every module can evaluate it."""


class AnyObject:
    """Stands for JSONObject likewise."""


def faults(converter: Converter, raw: object, kind: object, where: str) -> tuple[object, list[Fault]]:
    """The value of `kind` that `raw` says, or everything wrong with it."""
    try:
        return converter.structure(raw, cast(Any, AnyObject if kind == JSONObject else kind)), []
    except (ClassValidationError, IterableValidationError, Wrong) as error:
        return None, list(_faults(error, where, None))


def make_converter(tags: Tags) -> Converter:
    """The converter; `tags` may grow later, as long as nothing of the union has been structured."""
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (str, int, float, bool, type(None)):
        converter.register_structure_hook(kind, _scalar)
    converter.register_structure_hook(AnyJSON, lambda raw, _: _json(raw, _MAX_DEPTH))
    converter.register_structure_hook(AnyObject, _json_object)
    made: list[tuple[Callable[[Any], bool], Callable[[Any], Hook]]] = [
        (attrs.has, lambda kind: _class_hook(kind, converter, tags)),
        (lambda kind: get_origin(kind) is Literal, lambda _: _literal),
        (lambda kind: get_origin(kind) in _SEQUENCES, lambda kind: _sequence_hook(kind, converter)),
        (lambda kind: get_origin(kind) in _MAPPINGS, lambda kind: _mapping_hook(kind, converter)),
        (lambda kind: get_origin(kind) in _UNIONS, lambda kind: _union_hook(kind, converter, tags)),
    ]
    for fits, make in made:
        converter.register_structure_hook_factory(fits, make)
    return converter


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scalar(raw: object, kind: object) -> object:
    """No coercion, but that an integer is also a number."""
    if kind is float and type(raw) is int:
        try:
            return float(raw)
        except OverflowError:
            raise Wrong("too large for a number") from None
    if type(raw) is not kind:
        raise Wrong(f"expected {expected(kind)}, got {described(raw)}")
    if isinstance(raw, float) and not math.isfinite(raw):
        raise Wrong(f"expected a finite number, got {raw}")
    return raw


def _literal(raw: object, kind: object) -> object:
    choices = get_args(kind)
    if any(type(c) is type(raw) and c == raw for c in choices):
        return raw
    hint = did_you_mean(raw, [c for c in choices if isinstance(c, str)]) if isinstance(raw, str) else None
    raise Wrong(f"expected {expected(kind)}, got {described(raw)}", hint)


def _json_object(raw: object, _: object) -> object:
    if not isinstance(raw, dict):
        raise Wrong(f"expected a table, got {described(raw)}")
    return _json(raw, _MAX_DEPTH)


def _json(raw: object, depth: int) -> object:
    """`raw` itself, if it is JSON all the way down: a TOML date is not."""
    if depth <= 0:
        raise Wrong(f"nested deeper than {_MAX_DEPTH} levels")
    if isinstance(raw, list):
        _each(list, [(i, item, lambda v: _json(v, depth - 1)) for i, item in enumerate(raw)])
    elif isinstance(raw, dict):
        _each(dict, [(_text_key(k), item, lambda v: _json(v, depth - 1)) for k, item in raw.items()])
    elif raw is not None and not isinstance(raw, (bool, int, float, str)):
        raise Wrong(f"expected text, a number, true or false, an array or a table, got {described(raw)}")
    return raw


# ── containers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _each(cls: type, items: Sequence[tuple[int | str, object, Callable[[object], object]]]) -> list[object]:
    """Each item through its hook; every failure is kept, with its index."""
    done, failed = [], []
    for index, item, hook in items:
        try:
            done.append(hook(item))
        except Exception as error:  # noqa: BLE001 - as cattrs: the walk below re-raises what is no fault
            error.add_note(IterableValidationNote(f"at {index}", index, None))
            failed.append(error)
    if failed:
        raise IterableValidationError("faults", failed, cls)
    return done


def _sequence_hook(kind: Any, converter: Converter) -> Hook:
    """Arrays: tuple[T, ...] and list[T] of any length, tuple[A, B] of exactly that."""
    origin, args = get_origin(kind), get_args(kind)
    fixed = origin is tuple and not (len(args) == 2 and args[1] is ...)

    def hook(raw: object, _: object) -> object:
        if not isinstance(raw, (list, tuple)):
            raise Wrong(f"expected an array, got {described(raw)}")
        if fixed and len(raw) != len(args):
            raise Wrong(f"expected an array of {len(args)}, got one of {len(raw)}")
        kinds = args if fixed else (args[0],) * len(raw)
        items = [(i, item, _to(converter, k)) for i, (item, k) in enumerate(zip(raw, kinds, strict=True))]
        return (list if origin is list else tuple)(_each(tuple, items))

    return hook


def _mapping_hook(kind: Any, converter: Converter) -> Hook:
    key_kind, value_kind = get_args(kind)

    def entry(pair: object) -> object:
        key, value = cast("tuple[object, object]", pair)
        return converter.structure(key, key_kind), converter.structure(value, value_kind)

    def hook(raw: object, _: object) -> object:
        if not isinstance(raw, Mapping):
            raise Wrong(f"expected a table, got {described(raw)}")
        return dict(cast(Any, _each(dict, [(_text_key(k), (k, v), entry) for k, v in raw.items()])))

    return hook


def _to(converter: Converter, kind: Any) -> Callable[[object], object]:
    return lambda raw: converter.structure(raw, kind)


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise Wrong(f"expected text for every key, got {described(key)}")
    return key


# ── attrs classes and unions ─────────────────────────────────────────────────────────────────────────────────────────


@cache
def _fields(cls: type) -> tuple[attrs.Attribute[Any], ...]:
    """The fields with their annotations resolved, on a copy: the class itself keeps what it says."""
    names = {"JSONValue": AnyJSON, "JSONObject": AnyObject}
    hints = get_type_hints(cls, localns=names)
    return tuple(a.evolve(type=hints[a.name]) for a in attrs.fields(cls) if a.init)


def _class_hook(cls: Any, converter: Converter, tags: Tags) -> Hook:
    fields = _fields(cls)
    overrides: dict[str, Any] = {a.name: override(struct_hook=_field_hook(a, converter)) for a in fields}
    inner = make_dict_structure_fn_from_attrs(list(fields), cls, converter, **overrides)

    def hook(raw: object, _: object) -> object:
        if not isinstance(raw, Mapping):
            raise Wrong(f"expected a table, got {described(raw)}")
        if cls in tags and raw.get(tags[cls][0]) == tags[cls][1]:
            raw = {k: v for k, v in raw.items() if k != tags[cls][0]}
        return inner(raw, cls)

    return hook


def _field_hook(field: attrs.Attribute[Any], converter: Converter) -> Hook:
    """The field's value, then its validator: here, so that one class can have more than one bad value."""

    def hook(raw: object, kind: object) -> object:
        value: object = converter.structure(raw, cast(Any, kind))
        if field.validator is not None:
            try:
                field.validator(None, field, value)
            except Wrong:
                raise
            except (ValueError, TypeError) as error:
                raise Wrong(_said(error, field.name)) from None
            except AttributeError:
                pass  # it looks at the other fields: the class itself runs it once more, with them
        return value

    return hook


def _said(error: BaseException, field: str = "") -> str:
    """What a validator said, without the field's name, which the path already has."""
    text = str(error.args[0]) if error.args else type(error).__name__
    return text.removeprefix(f"'{field}' ")


def _union_hook(kind: Any, converter: Converter, tags: Tags) -> Hook:
    """T | None, kinds that look different (text or an array), and classes told apart by a tag."""
    members = get_args(kind)
    tagged = {tags[m][1]: m for m in members if m in tags}
    classes = [m for m in members if attrs.has(m)]
    if len(classes) > 1 and len(tagged) != len(classes):
        raise NotImplementedError(f"{kind}: classes need tags to be told apart, see convert.tag_union")

    def hook(raw: object, _: object) -> object:
        if isinstance(raw, Mapping) and len(classes) > 1:
            return converter.structure(raw, _by_tag(raw, tags[classes[0]][0], tagged))
        fitting = [m for m in members if _looks_like(raw, m)]
        if not fitting and len(some := [m for m in members if m is not type(None)]) == 1:
            fitting = some  # its own message says more
        if not fitting:
            raise Wrong(f"expected {expected(kind)}, got {described(raw)}")
        return converter.structure(raw, fitting[0])

    return hook


def _by_tag(raw: Mapping[str, object], key: str, tagged: Mapping[str, type]) -> type:
    if key not in raw:
        raise Wrong(f"missing key {key!r}: expected {one_of(tagged)}")
    tag = raw[key]
    if not isinstance(tag, str) or tag not in tagged:
        hint = did_you_mean(tag, tagged) if isinstance(tag, str) else None
        error = Wrong(f"expected {one_of(tagged)}, got {described(tag)}", hint)
        error.add_note(AttributeValidationNote("the tag", key, str))
        raise ClassValidationError("faults", [error], type(raw))
    return tagged[tag]


def _looks_like(raw: object, kind: Any) -> bool:
    """Whether `raw` has the outer shape of `kind`; what is inside is judged later, with a path."""
    origin = get_origin(kind)
    if kind is AnyJSON:
        return True
    if kind is float:
        return type(raw) in (int, float)
    if origin is Literal:
        return any(type(c) is type(raw) and c == raw for c in get_args(kind))
    if origin in _SEQUENCES:
        return isinstance(raw, (list, tuple))
    if origin in _MAPPINGS or kind is AnyObject or attrs.has(kind):
        return isinstance(raw, Mapping)
    return type(raw) is kind


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def expected(kind: Any) -> str:
    """What a type is in the words of somebody who writes a file."""
    origin = get_origin(kind)
    if kind in _WORDS:
        return _WORDS[kind]
    if origin is Literal:
        return one_of(get_args(kind))
    if origin in _SEQUENCES:
        return "an array"
    if origin in _UNIONS:
        words = dict.fromkeys(expected(m) for m in get_args(kind) if m is not type(None))
        return " or ".join(words)
    return "a value" if kind is AnyJSON else "a table"


def _faults(error: BaseException, where: str, kind: object) -> Iterator[Fault]:
    """The leaves under a group, each with its path."""
    if isinstance(error, (ClassValidationError, IterableValidationError)):
        for inner in error.exceptions:
            note = _note(inner)
            yield from _faults(inner, _below(where, note), None if note is None else note.type)
    elif isinstance(error, ForbiddenExtraKeysError):
        names = [a.name for a in _fields(error.cl)]
        for key in sorted(error.extra_fields, key=str):
            yield Fault(key_path(where, str(key)), "unknown key", did_you_mean(str(key), names))
    elif isinstance(error, Wrong):
        yield Fault(where, error.message, error.hint)
    elif isinstance(error, KeyError) and kind is not None:  # cattrs found no such key; hooks raise no KeyError
        yield Fault(where, f"missing: expected {expected(kind)}")
    elif isinstance(error, (ValueError, TypeError)):  # a class's own check of its fields together
        yield Fault(where, _said(error))
    else:
        raise error


def _note(error: BaseException) -> AttributeValidationNote | IterableValidationNote | None:
    """Where in its parent the error happened."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, (AttributeValidationNote, IterableValidationNote)):
            return note
    return None


def _below(where: str, note: AttributeValidationNote | IterableValidationNote | None) -> str:
    if note is None:
        return where
    if isinstance(note, AttributeValidationNote):
        return key_path(where, note.name)
    return key_path(where, note.index) if isinstance(note.index, str) else item_path(where, note.index)
