"""What a user names: `benchmark@split:parameter`, a group of benchmarks, or a suite by the path of its file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from evalcore.contracts import Selector
from evalcore.errors import ConfigError, UnknownNameError
from evalcore.plugins import Registry
from evalcore.values.descriptors import AdapterInfo, GroupInfo

SUITE: Final = "suite"  # the benchmark that a path to a file of tasks stands for
_TASKS: Final = ".jsonl"
_FORM: Final = re.compile(r"(?P<name>[a-z0-9][a-z0-9_.+-]*)(?:@(?P<split>[A-Za-z0-9_.+-]+))?(?::(?P<parameter>.+))?")


def parse_selector(text: str) -> Selector:
    """The parts of a selector; a path that ends in .jsonl is `suite:PATH`. Raises ConfigError."""
    found = _FORM.fullmatch(text)
    if text.endswith(_TASKS) and (found is None or found["parameter"] is None):
        return Selector(text, SUITE, None, text)
    if found is None:
        raise ConfigError(
            f"{text!r} is no selector",
            hint="a selector is name, name@split or name:parameter, or the path of a suite that ends in .jsonl",
        )
    return Selector(text, found["name"], found["split"], found["parameter"])


def find_benchmark(registry: Registry, text: str) -> tuple[AdapterInfo, Selector]:
    """The benchmark that a selector names. Raises ConfigError, with the nearest names and who provides them."""
    selector = parse_selector(text)
    info = registry.get(AdapterInfo, "benchmark", selector.name)
    if selector.split is not None and selector.split not in info.splits:
        raise UnknownNameError(
            f"split of {info.name}", selector.split, hint=f"it has {', '.join(info.splits) or 'no splits'}"
        )
    if selector.parameter is not None and not info.takes_parameter:
        raise ConfigError(f"{info.name} takes no parameter, {selector.parameter!r} was given")
    return info, selector


def expand(registry: Registry, texts: Iterable[str]) -> list[str]:
    """Selectors with each group replaced by its members, in order, none twice."""
    groups = registry.all(GroupInfo)
    expanded: dict[str, None] = {}
    for text in texts:
        members = groups[text].members if text in groups else (text,)
        expanded.update(dict.fromkeys(members))
    return list(expanded)
