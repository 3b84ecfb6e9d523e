"""What model calls cost: whose price applies, what of a call it covers, and when it is not known."""

from __future__ import annotations

import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot

from evalcore.errors import BudgetExceeded, ConfigError
from evalcore.values.convert import from_toml, to_toml
from evalcore.values.json import JSONObject
from evalcore.values.stamp import price_key
from evalcore.values.usage import Usage
from evalcore.wires.gateway.prices import ModelPrice, PriceList, read_own
from evalcore.wires.meter import Meter, RunBudget

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def rates(**usd: object) -> ModelPrice:
    """A price of the test's own, as a stamp has it."""
    return ModelPrice.from_json({"source": "here", "usd": usd})  # type: ignore[dict-item]


PLAIN = rates(input_mtok=2.0, output_mtok=8.0)
CACHED = rates(input_mtok=2.0, output_mtok=8.0, cache_read_mtok=0.5, cache_write_mtok=2.5)
STEPS = rates(
    input_mtok={"base": 1.0, "above": [{"input_tokens": 1000, "usd": 2.0}]},
    output_mtok={"base": 10, "above": [{"input_tokens": 1000, "usd": 15}]},
)


# ── what a call costs ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "price, usage, usd",
    [
        (PLAIN, Usage(1, 1000, 100), 0.002 + 0.0008),
        (PLAIN, Usage(1, 1000, 0, cache_read=800, reasoning=0), 0.002),  # no rate for cached: as input
        (CACHED, Usage(1, 1000, 100, cache_read=600, cache_write=300), 0.0002 + 0.0003 + 0.00075 + 0.0008),
        (CACHED, Usage(1, 1000, 100, reasoning=90), 0.002 + 0.0008),  # reasoning is output already
        (STEPS, Usage(1, 1000, 100), 0.001 + 0.001),
        (STEPS, Usage(1, 1001, 100), 0.002002 + 0.0015),  # past the bound, all of it is dearer
        (rates(input_mtok=0, output_mtok=0), Usage(1, 1000, 100), 0.0),  # known to be free
        (rates(input_mtok=1, output_mtok=1, requests_kcount=5), Usage(1, 1000, 0), 0.001 + 0.005),
        (rates(input_mtok=1, output_mtok=1, output_reasoning_mtok=3), Usage(1, 1000, 100, reasoning=60), 0.00122),
    ],
)
def test_each_kind_of_token_has_its_rate(price: ModelPrice, usage: Usage, usd: float) -> None:
    assert price.cost(usage) == pytest.approx(usd, rel=1e-12)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(1, unreported=1),
        Usage(1, 0, 5),
        Usage(1, 10, 5, cache_read=20),
        Usage(1, 10, 5, cache_read=6, cache_write=6),
        Usage(1, 10**400, 5),
    ],
)
def test_a_cost_that_cannot_be_told_is_none_and_not_zero(usage: Usage) -> None:
    assert CACHED.cost(usage) is None


def test_a_call_on_another_tier_of_service_has_another_price() -> None:
    usage = Usage(1, 1000, 100)
    assert PLAIN.cost(usage, "default") == PLAIN.cost(usage, None) == PLAIN.cost(usage)
    assert PLAIN.cost(usage, "priority") is None
    assert PLAIN.cost(usage, ["flex"]) is None


def test_tokens_cost_at_most_what_the_dearest_kind_does() -> None:
    assert PLAIN.at_most(1_000_000) == 8.0
    assert STEPS.at_most(1_000_000) == 15.0
    assert rates(input_mtok=1, output_mtok=2, cache_write_mtok=3).at_most(1_000_000) == 3.0


# ── the bundled list ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", ["openai", "google", "openrouter", "anthropic"])
def test_costs_are_those_of_genai_prices_for_every_model_with_a_price(provider: str) -> None:
    """Also once the rows have been stamped and read back."""
    prices, checked = PriceList(at=NOW), 0
    models = next(p.models for p in get_snapshot().providers if p.id == provider)
    for name in [m.id for m in models]:
        prices.price(f"{provider}/{name}")
    again = PriceList.stamped(from_toml(to_toml({"p": prices.as_json()}), dict)["p"])
    for name in [m.id for m in models]:
        found, stored = prices.price(f"{provider}/{name}"), again.price(f"{provider}/{name}")
        assert found == stored
        assert (found is None) == (prices.why(f"{provider}/{name}") is not None)
        for tokens in (1000, 300_000):
            if found is not None:
                counts = genai_prices.Usage(
                    input_tokens=tokens, output_tokens=50, cache_read_tokens=700, cache_write_tokens=200
                )
                theirs = genai_prices.calc_price(
                    counts, name, provider_id=provider, genai_request_timestamp=NOW
                ).total_price
                ours = Usage(1, tokens, 50, cache_read=700, cache_write=200)
                assert found.cost(ours) == stored.cost(ours) == float(theirs), name  # type: ignore[union-attr]
                checked += 1
    assert checked > 20


@pytest.mark.parametrize(
    "model, why",
    [
        ("openai/gpt-9000", "does not have it"),
        ("openai-compatible/gpt-4o-mini", "does not have it"),  # a server of one's own is not OpenAI
        ("local/smollm2-135m", "does not have it"),
        ("openai/tts-1", "no price for its tokens"),
        ("deepseek/deepseek-chat", "changes with the time of day"),
        ("scripted/play.toml", "billed by nobody"),
    ],
)
def test_an_unknown_price_says_why(model: str, why: str) -> None:
    prices = PriceList(at=NOW)
    assert prices.price(model) is None
    assert why in str(prices.why(model))
    rows = prices.as_json().get("models", {})
    assert rows == ({} if model.startswith("scripted") else {model: {"unknown": prices.why(model)}})


def test_a_server_of_a_known_service_has_its_prices() -> None:
    prices = PriceList(at=NOW)
    there, here = "https://api.openai.com/v1", "http://127.0.0.1:8000/v1"
    assert prices.price("openai-compatible/gpt-4o-mini", there) == prices.price("openai/gpt-4o-mini")
    assert prices.price("openai-compatible/gpt-4o-mini", here) is None
    assert prices.price("openai/gpt-4o-mini", here) is not None  # by its name: a proxy passes the bill on
    rows = prices.as_json()["models"]
    assert isinstance(rows, dict) and f"openai-compatible/gpt-4o-mini at {here}" in rows
    assert price_key("m", None) == "m"


def test_the_stamp_names_the_list_and_the_rates() -> None:
    prices = PriceList(at=NOW)
    prices.price("openai/gpt-4o-mini")
    prices.price("google/gemini-2.5-pro")
    stamped = prices.as_json()
    assert stamped["as_of"] == "2026-12-01T12:00:00+00:00"
    mini, pro = stamped["models"].values()  # type: ignore[union-attr]
    assert mini == {
        "source": f"genai-prices {genai_prices.__version__}",
        "matched": "openai/gpt-4o-mini",
        "usd": {"input_mtok": 0.15, "cache_read_mtok": 0.075, "output_mtok": 0.6},
    }
    assert pro["usd"]["input_mtok"] == {"base": 1.25, "above": [{"input_tokens": 200000, "usd": 2.5}]}  # type: ignore[call-overload, index]


def test_a_resumed_run_has_the_prices_of_its_stamp_and_no_others() -> None:
    row: JSONObject = {"source": "then", "usd": {"input_mtok": 7.0, "output_mtok": 7.0}}
    prices = PriceList.stamped({"models": {"openai/gpt-4o-mini": row, "openai/gpt-9": {"unknown": "not yet"}}})
    then = prices.price("openai/gpt-4o-mini")
    assert then is not None and then.cost(Usage(1, 1_000_000, 0)) == 7.0
    assert prices.why("openai/gpt-9") == "not yet"
    assert prices.why("openai/gpt-4o") == "the run's stamp has no price for it"
    with pytest.raises(ConfigError, match="price of m/x is none"):
        PriceList.stamped({"models": {"m/x": {"usd": {"input_mtok": "free"}}}})
    with pytest.raises(ConfigError, match="futures_mtok"):
        PriceList.stamped({"models": {"m/x": {"usd": {"input_mtok": 1, "futures_mtok": 1}}}})


def test_no_price_needs_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    prices = PriceList()
    assert prices.price("openrouter/openai/gpt-4o-mini") is not None
    assert prices.price("openai/gpt-9000") is None


# ── a table of one's own ─────────────────────────────────────────────────────────────────────────────────────────────


def table(folder: Path, text: str) -> Path:
    file = folder / "prices.toml"
    file.write_text(text)
    return file


def test_a_users_own_price_is_preferred(tmp_path: Path) -> None:
    file = table(
        tmp_path,
        '[prices."openai/gpt-4o-mini"]\ninput = 1.25\noutput = 10.0\ncache_read = 0.1\n'
        '[prices."openai-compatible/org/mine"]\ninput = 0\noutput = 0\n',
    )
    prices = PriceList.of({"EVALCORE_PRICES": str(file)}, "2026-12-01T12:00:00.000Z")
    own = prices.price("openai/gpt-4o-mini")
    assert own is not None and own.source == "EVALCORE_PRICES (prices.toml)"
    assert own.cost(Usage(1, 1000, 100, cache_read=500)) == pytest.approx(0.000625 + 0.00005 + 0.001)
    free = prices.price("openai-compatible/org/mine", "http://127.0.0.1:1/v1")
    assert free is not None and free.cost(Usage(1, 10, 10)) == 0.0
    assert str(prices.price("openai/gpt-4o")).startswith("ModelPrice(source='genai-prices")
    assert PriceList.stamped(prices.as_json()).price("openai/gpt-4o-mini") == own


@pytest.mark.parametrize(
    "text, faults",
    [
        ('[prices."a/b"]\ninput = 1', ['$.prices."a/b".output']),
        ('[prices."a/b"]\ninput = "1"\noutput = -1\nouptut = 2', ["ouptut", "input", "output"]),
        ('[prices."a/b"]\ninput = nan\noutput = inf', ["input", "output"]),
        ('[prices."gpt-4o"]\ninput = 1\noutput = 1', ['$.prices."gpt-4o"', "is no model"]),
        ("[price]\n", ["$.price"]),
        ("prices = 3", ["$.prices"]),
        ("[prices", ["end of file"]),
    ],
)
def test_a_table_is_read_strictly(tmp_path: Path, text: str, faults: list[str]) -> None:
    with pytest.raises(ConfigError) as wrong:
        read_own(table(tmp_path, text))
    told = "\n".join(map(str, wrong.value.faults))
    assert all(fault in told for fault in faults), told


def test_a_table_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        PriceList.of({"EVALCORE_PRICES": str(tmp_path / "none.toml")})


# ── before a call is sent ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bound_on_output_says_all_that_a_call_can_cost() -> None:
    body: JSONObject = {"messages": [{"role": "user", "content": "x" * 2000}]}
    sent, whole = PLAIN.foreseen(body)
    assert 0.002 <= sent <= 0.0022 and not whole
    for bound in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
        most, whole = PLAIN.foreseen({**body, bound: 1000})
        assert most == pytest.approx(sent + 0.008, abs=1e-4) and whole
    assert PLAIN.foreseen({**body, "max_tokens": 9, "max_output_tokens": 1000, "n": 3})[0] > 0.024
    assert PLAIN.foreseen({**body, "max_tokens": "many"})[1] is False


def test_an_agent_that_asks_for_the_impossible_does_not_stop_the_run() -> None:
    """A bound that no model reaches is the provider's to refuse; it must not look as if the budget were spent."""
    most, whole = PLAIN.foreseen({"messages": [], "max_tokens": 10**400, "n": 1})
    assert whole and most < 2
    assert PLAIN.foreseen({"messages": [], "max_tokens": 1, "n": 10**400})[0] < 0.01


@pytest.mark.parametrize("odd", [float("nan"), 2**70, "\ud800"])
def test_an_odd_request_has_a_length_too(odd: object) -> None:
    assert PLAIN.foreseen({"messages": [odd]})[0] > 0  # type: ignore[list-item]


def test_a_call_reserves_what_it_may_cost() -> None:
    budget = RunBudget(1.0)
    assert budget.reserve(0.4, whole=True) == 0.4
    assert budget.reserve(0.5) == 0.5
    with pytest.raises(BudgetExceeded, match=r"spent \(\$0.0000 used\), and a call that may cost \$0.2000 is too much"):
        budget.reserve(0.2, whole=True)
    budget.settle(0.4, 0.3)
    budget.settle(0.5, 0.1)
    assert budget.reserve(0.05, whole=True) == 0.05  # bounded: less than the dearest so far will do
    assert budget.reserve(0.05) == 0.3


def test_a_call_that_reports_no_usage_is_booked_at_what_was_set_aside() -> None:
    """Else a server that reports nothing would never use up a budget. The report says that it is not known."""
    budget = RunBudget(1.0)
    meter = Meter(budget)
    meter.end_model_call("agent", meter.begin_model_call("agent", 0.5, True), Usage(1, unreported=1))
    assert (budget.spent, meter.usage()["agent"].cost_usd) == (0.5, None)
    meter.end_model_call("agent", meter.begin_model_call("agent", 0.4, True), None)  # failed
    assert budget.spent == 0.5


# ── start-up ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_prices_are_loaded_only_when_a_model_is_asked_for() -> None:
    code = (
        "import sys, evalcore.engine.plan, evalcore.engine.run\n"
        "from evalcore.wires.gateway.prices import PriceList\n"
        "assert PriceList.of({}).price('scripted/x') is None\n"
        "assert PriceList.stamped({}).price('openai/x') is None\n"
        "assert 'genai_prices' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
