"""What a benchmark's upstream code needs in order to run in an environment of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"https?://[^\s@]+")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def _is_name(_: object, __: object, value: str) -> None:
    if not _NAME.fullmatch(value):
        raise ValueError(f"a toolkit's name is lower-case letters, digits and single dashes, not {value!r}")


def _is_module(_: object, __: object, value: str) -> None:
    if not _MODULE.fullmatch(value):
        raise ValueError(f"{value!r} is no dotted module path")


def _are_modules(instance: object, attribute: object, value: tuple[str, ...]) -> None:
    for module in value:
        _is_module(instance, attribute, module)


def _are_files(_: object, __: object, value: Mapping[str, str]) -> None:
    for name, digest in value.items():
        if not name or name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} is no path inside site-packages")
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{name}: a sha256 is 64 lower-case hexadecimal digits, not {digest!r}")


def _are_variables(_: object, __: object, value: tuple[str, ...]) -> None:
    for name in value:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an environment variable")


# Typed, where the bare `tuple` and `dict` would leave a plugin's author with a type error for what is right.
def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


def _requirements(values: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(values)


def _mapping(values: Mapping[str, str]) -> Mapping[str, str]:
    return dict(values)


@attrs.frozen
class Requirement:
    """One distribution at one version; `hashes` lists every acceptable wheel of every platform as `sha256:<hex>`."""

    name: str = attrs.field()
    version: str = attrs.field()
    hashes: tuple[str, ...] = attrs.field(converter=_texts)

    def __attrs_post_init__(self) -> None:
        if not _DISTRIBUTION.fullmatch(self.name) or not _VERSION.fullmatch(self.version):
            raise ValueError(f"{self.name!r} at {self.version!r} is no distribution at an exact version")
        if not self.hashes or not all(_HASH.fullmatch(value) for value in self.hashes):
            raise ValueError(f"{self.name}: hashes are one or more of 'sha256:' and 64 hexadecimal digits")

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


@attrs.frozen
class ToolkitSpec:
    """Upstream code and the worker that serves it.

    `python` is a version range such as ">=3.10,<3.13"; `worker` the dotted path of the worker's module, which is found
    but never imported here; `files` maps upstream files, relative to site-packages, to their sha256; `imports` are
    modules that must import once everything is installed. `addresses` says where those of the `files` come from that no
    wheel brings: they are fetched into the environment, next to what is installed. `passes` names the environment
    variables of ours that the worker sees.
    """

    name: str = attrs.field(validator=_is_name)
    requirements: tuple[Requirement, ...] = attrs.field(converter=_requirements)
    python: str
    worker: str = attrs.field(validator=_is_module)
    files: Mapping[str, str] = attrs.field(factory=dict, converter=_mapping, validator=_are_files, hash=False)
    imports: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_modules)
    addresses: Mapping[str, str] = attrs.field(factory=dict, converter=_mapping, hash=False)
    passes: tuple[str, ...] = attrs.field(default=(), converter=_texts, validator=_are_variables)

    def __attrs_post_init__(self) -> None:
        for name, address in self.addresses.items():
            if name not in self.files:
                raise ValueError(f"{name} has an address and no digest: list it in `files` too")
            if not _ADDRESS.fullmatch(address):
                raise ValueError(f"{name}: {address!r} is no address of the web")

    @property
    def variable(self) -> str:
        """The environment variable that points to a checkout or a requirement instead."""
        return f"EVALCORE_TOOLKIT_{self.name.upper().replace('-', '_')}"
