"""The banking domain: a knowledge base, read in the ways that need no service. Wants upstream's own code and data."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalcore.contracts import ToolkitHandle
from evalcore.errors import ConfigError
from evalcore_tau2.plugin import BENCHMARKS
from plugins.tau2.tests.rig import CONTROLS, SLOW_S, carry_out, run, study, task_of, trials, with_toolkit

VARIANTS = BENCHMARKS["tau2-banking"].retrieval


@pytest.fixture
def bank(own_code: None) -> None:
    """Its 800 files, which are among no test material here."""
    if not (Path(os.environ["TAU2_DATA_DIR"]) / "tau2" / "domains" / "banking_knowledge").is_dir():
        pytest.skip("the data of the banking domain are not here; TAU2_DATA_DIR names a checkout's")


UNAVAILABLE = [
    ("tau2-banking", "needs an embedding service and a shell sandbox"),
    ("tau2-banking:alltools", "'alltools' here: it needs an embedding service and a shell sandbox"),
    ("tau2-banking:openai_embeddings_grep", "it needs an embedding service"),
    ("tau2-banking:qwen_embeddings_reranker", "it needs an embedding service and a model that ranks again"),
    ("tau2-banking:bm25_reranker_grep", "it needs a model that ranks again"),
    ("tau2-banking:terminal_use", "it needs a shell sandbox"),
    ("tau2-banking:bm52", "'bm52' here"),
]


@pytest.mark.parametrize("selector, why", UNAVAILABLE)
def test_what_would_need_a_service_is_refused_and_the_rest_named(selector: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        asyncio.run(carry_out(study((selector,), limit=1), tmp_path))
    assert "retrieval variant" in refused.value.message and why in refused.value.message
    assert ("needs" in refused.value.message) == (selector != "tau2-banking:bm52")
    assert refused.value.hint is not None and all(f"tau2-banking:{v}" in refused.value.hint for v in VARIANTS)


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("variant", VARIANTS)
def test_gold_passes_and_nothing_fails(variant: str, tmp_path: Path) -> None:
    found = trials(run(study((f"tau2-banking:{variant}",), CONTROLS, limit=2), tmp_path))
    assert {(arm, x.verdict.outcome) for (_, arm, _), x in found.items()} == {("oracle", "pass"), ("noop", "fail")}


SEARCHES = [
    ("grep_only", "grep", {"pattern": "cash back"}),
    ("bm25_grep", "grep", {"pattern": "cash back"}),
    ("bm25", "KB_search", {"query": "cash back"}),
    ("bm25_grep", "KB_search", {"query": "cash back"}),
]


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("variant, tool, arguments", SEARCHES)
def test_the_knowledge_base_can_be_searched(variant: str, tool: str, arguments: dict[str, str]) -> None:
    async def work(toolkit: ToolkitHandle) -> Any:
        served: Any = await toolkit.request("tasks", {"domain": "banking_knowledge", "split": "base"}, SLOW_S)
        task = served["tasks"][0]
        subject = {"domain": "banking_knowledge", "solo": False, "retrieval": variant, "task": task}
        surface: Any = await toolkit.request("surface", subject, SLOW_S)
        async with toolkit.session() as session:
            await session.request("open", {**subject, "seed": 1, "script": [{"text": "Hello."}]}, SLOW_S)
            message = {"content": None, "names": [tool]}
            call = {"name": tool, "arguments": arguments, "id": "1", "message": message}
            return (
                len(served["tasks"]),
                [t["name"] for t in surface["tools"]],
                await session.request("call", call, SLOW_S),
            )

    count, names, news = with_toolkit(work)
    searching = {name for name in names if name in {"grep", "KB_search"}}
    offered = {name for kind, name, _ in SEARCHES if kind == variant}
    assert (count, searching) == (97, offered)
    assert not news["result"]["error"] and "cash back" in news["result"]["content"].lower()


@pytest.mark.usefixtures("bank")
def test_a_search_by_words_ranks_as_bm25_does() -> None:
    async def work(toolkit: ToolkitHandle) -> Any:
        task = await task_of(toolkit, "banking_knowledge", "task_001")
        subject = {"domain": "banking_knowledge", "solo": False, "retrieval": "bm25", "task": task}
        async with toolkit.session() as session:
            await session.request("open", {**subject, "seed": 1, "script": [{"text": "Hello."}]}, SLOW_S)
            message = {"content": None, "names": ["KB_search"]}
            call = {"name": "KB_search", "arguments": {"query": QUERY}, "id": "1", "message": message}
            return await session.request("call", call, SLOW_S)

    shown = with_toolkit(work)["result"]["content"]
    found = list(
        zip(re.findall(r"^   ID: (.+)$", shown, re.M), re.findall(r"^   Score: (.+)$", shown, re.M), strict=True)
    )
    folder = Path(os.environ["TAU2_DATA_DIR"]) / "tau2" / "domains" / "banking_knowledge" / "documents"
    scores = okapi(QUERY, {d["id"]: d["content"] for d in map(read, folder.glob("*.json"))})
    best = sorted(scores.values(), reverse=True)[: len(found)]
    assert len(found) == 10
    assert [score for _, score in found] == [f"{score:.4f}" for score in best]
    assert all(score == f"{scores[name]:.4f}" for name, score in found)


@pytest.mark.usefixtures("bank")
def test_the_code_that_searches_is_in_the_stamp_before_anything_is_searched() -> None:
    async def stamp(toolkit: ToolkitHandle) -> Any:
        return await toolkit.stamp()

    told = with_toolkit(stamp)["upstream"]
    folder = Path(os.environ["EVALCORE_TOOLKIT_TAU2"]) / "src"
    for name in ("tau2/knowledge/retrievers/bm25_retriever.py", "tau2/domains/banking_knowledge/tools.py"):
        assert told["files"][name] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert not {"numpy", "rank_bm25"} & set(told["replaced"])


QUERY = "cash back on a gold credit card"


def read(path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def okapi(query: str, texts: dict[str, str]) -> dict[str, float]:
    """BM25 with k1 = 1.5, b = 0.75, and a quarter of the mean idf for words in more than half of the texts."""
    words = {name: Counter(text.lower().split()) for name, text in texts.items()}
    length = {name: sum(counts.values()) for name, counts in words.items()}
    mean = sum(length.values()) / len(length)
    holding = Counter(word for counts in words.values() for word in counts)
    idf = {word: math.log(len(texts) - n + 0.5) - math.log(n + 0.5) for word, n in holding.items()}
    least = 0.25 * sum(idf.values()) / len(idf)
    idf = {word: least if value < 0 else value for word, value in idf.items()}
    asked = query.lower().split()
    return {
        name: sum(
            idf.get(w, 0) * counts[w] * 2.5 / (counts[w] + 1.5 * (0.25 + 0.75 * length[name] / mean)) for w in asked
        )
        for name, counts in words.items()
    }
