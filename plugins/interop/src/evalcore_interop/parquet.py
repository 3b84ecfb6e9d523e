"""Every attempt of a run as a row of a Parquet file: the columns of `evalcore.load(run).attempts_df()`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import evalcore
from evalcore.contracts import Services
from evalcore.errors import ConfigError
from evalcore.values.descriptors import RendererInfo


class Table:
    """Renderer `parquet`."""

    def __init__(self, services: Services | None = None, info: RendererInfo | None = None) -> None:
        pass

    def render(self, run: Path, out: Path, grading: str | None = None, public: bool = False) -> Sequence[Path]:
        """Write `attempts.parquet` below `out`. Raises ConfigError where nothing is installed that can.

        `public` changes nothing: no column holds a word of what was asked or answered.
        """
        library = _library()
        frame: Any = evalcore.load(run, grading).attempts_df(library)
        out.mkdir(parents=True, exist_ok=True)
        path = out / "attempts.parquet"
        if library == "polars":
            frame.write_parquet(path)
        else:
            frame.to_parquet(path, index=False)
        return [path]


def _library() -> Any:
    """Who can write Parquet: polars by itself, pandas with pyarrow."""
    if find_spec("polars") is not None:
        return "polars"
    if find_spec("pandas") is not None and find_spec("pyarrow") is not None:
        return "pandas"
    raise ConfigError("nothing that writes Parquet is installed", hint="pip install polars; or pandas and pyarrow")
