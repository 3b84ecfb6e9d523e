"""A difference of rates on the command line: `5pp` or `0.05`, and nothing that could be read in two ways."""

from __future__ import annotations

import re
from typing import Final

import click

_POINTS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)pp", re.ASCII)
_SHARE: Final = re.compile(r"0?\.[0-9]+", re.ASCII)


class Points(click.ParamType[float]):
    """A share between 0 and 1, written as percentage points or as the share."""

    name = "points"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share. Fails for `5`, `5%` and `5 pp`, and for nothing and everything."""
        text = str(value)
        if found := _POINTS.fullmatch(text):
            share = float(found[1]) / 100.0
        elif _SHARE.fullmatch(text):
            share = float(text)
        else:
            self.fail(f"expected percentage points or a share, as in 5pp or 0.05, got {text!r}", param, ctx)
        if not 0.0 < share < 1.0:
            self.fail(f"expected more than 0pp and less than 100pp, got {text!r}", param, ctx)
        return share
