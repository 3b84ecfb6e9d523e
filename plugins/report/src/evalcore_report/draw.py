"""Charts as pictures in the page: Vega-Altair says what is drawn, vl-convert draws it, when the page is made.

Colours are variables of the page's style, so one picture serves light and dark. Nothing in a picture is a link or a
script, and every text in it was escaped by Vega.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from evalcore.values.json import JSONObject
from evalcore_report.markup import Html, Markup, visible

WIDTH: Final = 290  # of what is drawn, without the names at its side
NAME_PX: Final = 180  # what names at the side may take
SERIES: Final = 8
_VERSION: Final = "6.1"  # of Vega-Lite, as Vega-Altair 6 writes it
_ROOT: Final = re.compile(r"<svg [^>]*?width=\"(\d+)\" height=\"(\d+)\" viewBox=\"([^\"]*)\">")
_GROUPS: Final = re.compile(r" (?:role|aria-roledescription|aria-hidden|pointer-events)=\"[^\"]*\"| class=\"[^\"]*\"")
_EMPTY: Final = re.compile(r'<path d="[^"]*"(?: display="none")?/>(?<=display="none"/>)')
_TAG: Final = re.compile(r"<[^>]*>")
_NUMBERS: Final = re.compile(r"-?\d+\.\d{3,}")

CONFIG: Final[Mapping[str, Any]] = {
    "aria": False,
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink)", "titleColor": "var(--quiet)", "gridColor": "var(--line)",
        "domainColor": "var(--line)", "tickColor": "var(--line)",
        "labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal",
        "labelLimit": NAME_PX, "titlePadding": 8,
    },
    "axisY": {"grid": False, "ticks": False, "domain": False, "labelPadding": 8},
    "legend": {
        "labelColor": "var(--ink)", "titleColor": "var(--quiet)", "labelFontSize": 13, "symbolSize": 90,
        "orient": "top", "title": None, "columnPadding": 14, "labelLimit": 300, "padding": 0, "offset": 6, "columns": 3,
    },
    "bar": {"cornerRadius": 2},
}  # fmt: skip


_importing: Final = threading.Lock()


def import_once() -> None:
    """Import what draws, one thread at a time.

    Vega-Altair looks into NumPy if anybody has imported it, and breaks on one that another thread is just importing.
    """
    with _importing:
        for name in ("numpy", "altair", "vl_convert"):
            import_module(name)


def series(index: int) -> str:
    """The colour of the n-th arm; they begin anew after the eighth, and every arm is named beside it."""
    return f"var(--s{index % SERIES + 1})"


def rows(values: Sequence[Mapping[str, Any]]) -> Any:
    """Data for a chart."""
    import altair

    data: Any = altair.Data
    return data(values=[{k: visible(v) if isinstance(v, str) else v for k, v in row.items()} for row in values])


def percent_axis(title: str | None = None, **more: Any) -> Any:
    """An axis from 0 to 100 %."""
    import altair

    return altair.Axis(format=".0%", title=title, tickCount=5, **more)


def svg(chart: Any, title: str, clean: Callable[[str], str] | None = None) -> Markup:
    """A chart as an inline picture, with the sentence that says what it shows."""
    import vl_convert

    spec: JSONObject = chart.to_dict(validate=False)  # vl-convert refuses what is no chart, in a tenth of the time
    spec["config"] = dict(CONFIG)
    drawn = vl_convert.vegalite_to_svg(spec, vl_version=_VERSION, allowed_base_urls=[])
    root = _ROOT.search(drawn)
    assert root is not None, "vl-convert has changed how it begins a picture"
    inner = _TAG.sub(_shorter, _GROUPS.sub("", drawn[root.end() :]))
    h = Html(clean)
    start = h(
        "svg", role="img", aria_label=title, viewBox=root[3], width=int(root[1]), height=int(root[2]), class_="chart"
    )
    return Markup(start.removesuffix("</svg>") + inner)


def _shorter(tag: re.Match[str]) -> str:
    """A tag with its coordinates to a hundredth of a pixel. What stands between tags is read, and left alone."""
    return _NUMBERS.sub(lambda n: f"{float(n[0]):.2f}", tag[0])
