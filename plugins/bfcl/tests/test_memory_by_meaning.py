"""Memory by meaning where its model can be had: here a checkout with stand-ins of our own for model and index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from evalcore.engine.store import TraceStore, read_attempts, read_stamp
from evalcore.toolkits.environment import Environment, site_packages
from plugins.bfcl.tests.rig import REACT, run, study, write_playbook

MODEL: Final = """
import numpy


class SentenceTransformer:
    def __init__(self, name, device):
        assert name == "all-MiniLM-L6-v2"

    def get_sentence_embedding_dimension(self):
        return 26

    def encode(self, texts, **_):
        counts = [[float(text.lower().count(chr(97 + i))) for i in range(26)] for text in texts]
        return numpy.array([numpy.array(c) / (numpy.linalg.norm(c) or 1.0) for c in counts])
"""

INDEX: Final = """
import numpy


class IndexFlatIP:
    def __init__(self, dimension):
        self.dimension = dimension


class IndexIDMap:
    def __init__(self, flat):
        self.held = {}

    def add_with_ids(self, vectors, ids):
        self.held.update(zip(ids.tolist(), vectors))

    def remove_ids(self, ids):
        for identifier in ids.tolist():
            self.held.pop(identifier, None)

    def reset(self):
        self.held.clear()

    def search(self, vectors, k):
        scores = sorted(((float(v @ vectors[0]), i) for i, v in self.held.items()), reverse=True)[:k]
        scores += [(0.0, -1)] * (k - len(scores))
        return numpy.array([[s for s, _ in scores]]), numpy.array([[i for _, i in scores]])
"""


@pytest.fixture
def checkout(agentic: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout beside which there is all that memory by meaning computes with."""
    if agentic.folder is None or agentic.source != "pinned":
        pytest.skip("another checkout stands in for the pinned one")
    folder = tmp_path / "gorilla"
    shutil.copytree(site_packages(agentic.folder) / "bfcl_eval", folder / "bfcl_eval")
    (folder / "sentence_transformers.py").write_text(MODEL, encoding="utf-8")
    (folder / "faiss.py").write_text(INDEX, encoding="utf-8")
    monkeypatch.setenv("EVALCORE_TOOLKIT_BFCL_AGENTIC", str(folder))
    return folder


def test_what_a_session_remembered_is_found_by_meaning_in_a_later_one(checkout: Path, tmp_path: Path) -> None:
    task = "memory_vector_130-notetaker-0"

    def call(name: str, **arguments: object) -> list[dict[str, Any]]:
        return [{"name": name, "arguments": arguments}]

    first = {"task": "memory_vector_prereq_32-notetaker-0"}
    write_playbook(
        tmp_path,
        [
            {"match": first | {"call": 1}, "tool_calls": call("archival_memory_add", text="milk and eggs")},
            {"match": first | {"call": 2}, "tool_calls": call("archival_memory_add", text="zzz")},
            {
                "match": {"task": task, "call": 1},
                "tool_calls": call("archival_memory_retrieve", query="egg milk", top_k=1),
            },
            {"text": "Done."},
        ],
    )
    path = run(study(("bfcl-memory-vector",), REACT, tasks={"bfcl-memory-vector": (task,)}), tmp_path)
    attempts = {a.key.task: a for a in read_attempts(path)}
    (result,) = TraceStore(path).read(attempts[task].trace).events("tool.result")
    (part,) = result["content"]  # type: ignore[misc, union-attr]
    (found,) = json.loads(part["text"])["result"]  # type: ignore[index, call-overload, arg-type]
    assert found["text"] == "milk and eggs"
    (benchmark,) = read_stamp(path).benchmarks
    assert (benchmark.dataset.version, benchmark.grader_stamp["source"]) == ("checkout", "checkout")
