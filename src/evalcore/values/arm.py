"""Axes and arms: a complete assignment of the knobs that the arm's parts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from attrs import Factory, field, frozen

from evalcore.values.json import JSONObject, JSONValue, digest

Owner: TypeAlias = Literal["engine", "harness", "gateway", "provider", "adapter", "bridge", "transform"]


@frozen
class Arm:
    """One configuration under test.

    `axes` holds every axis of the parts it uses, declared defaults written out. `content` holds the digests of files
    that an axis names, so that an edited playbook or prompt is another arm. `handle` is only the key in a file.
    """

    handle: str
    axes: Mapping[str, JSONValue]
    defaults: Mapping[str, JSONValue] = field(factory=dict, eq=False)  # what each axis' declared default is
    content: Mapping[str, str] = Factory(dict)
    label: str = field(init=False)
    digest: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "label", self._label())
        object.__setattr__(self, "digest", digest(self._identity()))

    def _identity(self) -> JSONObject:
        """What the digest covers: axes that stand at their default are left out, so a new axis keeps old digests."""
        axes: JSONObject = {k: v for k, v in self.axes.items() if k not in self.defaults or self.defaults[k] != v}
        return {"axes": axes, "content": dict(self.content)}

    def _label(self) -> str:
        """Model and harness, then every axis that is not at its default: the same for the same assignment."""
        head = [str(self.axes[k]) for k in ("harness", "model") if self.axes.get(k) is not None]
        rest = [
            f"{k}={v}"
            for k, v in sorted(self.axes.items())
            if k not in ("harness", "model") and v is not None and self.defaults.get(k) != v
        ]
        return " ".join([" × ".join(head), *rest])

    @property
    def harness(self) -> str:
        """The harness's registered name."""
        return str(self.axes["harness"])

    @property
    def model(self) -> str | None:
        """`provider/model`, or None for a harness that uses none."""
        value = self.axes.get("model")
        return None if value is None else str(value)
