"""The published JSON Schemas of what evalcore writes, by their id: `evalcore.scorecard/1` and others."""

from __future__ import annotations

import json
from typing import Final, cast

from evalcore.values.json import JSONObject

FILES: Final = {
    "evalcore.scorecard/1": "scorecard.schema.json",
    "evalcore.comparison/1": "comparison.schema.json",
    "evalcore.gate/1": "gate.schema.json",
}


def schema(name: str) -> JSONObject:
    """The JSON Schema of that id. Raises KeyError for one that there is not."""
    from importlib.resources import files

    text = files("evalcore.report").joinpath(FILES[name]).read_text(encoding="utf-8")
    return cast(JSONObject, json.loads(text))
