"""What other programs read is described by a published schema, every field of it, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from attrs import evolve

from evalcore.report.compare import Comparison, compare
from evalcore.report.comparison_words import to_json
from evalcore.report.gate import gate, gate_json
from evalcore.report.schemas import FILES, schema
from evalcore.values.usage import Usage
from tests.unit.compare_samples import run, side, tasks, two
from tests.unit.report_samples import BFCL, CONSTRAINED, REACT


def strict(described: Any) -> Any:
    """The schema with every object closed: a field that it does not describe is a fault."""
    if isinstance(described, dict):
        closed = {key: strict(value) for key, value in described.items()}
        if "properties" in closed:
            closed["additionalProperties"] = False
        return closed
    return [strict(one) for one in described] if isinstance(described, list) else described


def declared() -> Comparison:
    stamp = run("r", (REACT, CONSTRAINED), study={"contrasts": [{"a": "constrained", "b": "plain", "margin": 0.2}]})
    return compare(side(tasks([1] * 18 + [0] * 2), stamp, CONSTRAINED), side(tasks([0] * 15 + [1] * 5), stamp, REACT))


def unpriced() -> Comparison:
    a = side(tasks([1] * 8), run("new"), usage={"agent": Usage(1, 100, 20)})
    return compare(a, side(tasks([1] * 8), run("old")), metric="cost_per_solve_usd")


def crossed() -> Comparison:
    other = run("old", benchmarks=(evolve(BFCL, grader_stamp={"bfcl-eval": "other"}),))
    return compare(side(tasks([1] * 8), run("new")), side(tasks([0] * 8), other), allow_cross_world=True)


COMPARISONS = [
    declared(),
    unpriced(),
    crossed(),
    two(tasks([1] * 6), tasks([1] * 6)),
    two({"x": (1,)}, {"y": (1,)}),
    two({"x": (1, 0), "y": (1, -1), "z": (0, 0)}, {"x": (1, 0), "y": (1, 1), "w": (0,)}, metric="tokens"),
]


@pytest.mark.parametrize("name", FILES)
def test_a_published_schema_is_one_and_names_itself(name: str) -> None:
    described = schema(name)
    jsonschema.Draft202012Validator.check_schema(described)
    assert described["$id"] == name


@pytest.mark.parametrize("made", COMPARISONS)
def test_every_field_of_a_comparison_is_described(made: Comparison) -> None:
    written = json.loads(json.dumps(to_json(made), allow_nan=False))
    jsonschema.Draft202012Validator(strict(schema("evalcore.comparison/1"))).validate(written)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("made", COMPARISONS)
def test_every_field_of_a_gate_is_described(made: Comparison, lenient: bool) -> None:
    written = json.loads(json.dumps(gate_json(gate(made, 0.05, lenient=lenient)), allow_nan=False))
    jsonschema.Draft202012Validator(strict(schema("evalcore.gate/1"))).validate(written)


def test_the_schemas_refuse_what_is_none() -> None:
    written: Any = to_json(COMPARISONS[3])
    for change in ({"schema": "evalcore.comparison/2"}, {"outcomes": [{}]}, {"cross_world": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**written, **change}, schema("evalcore.comparison/1"))
