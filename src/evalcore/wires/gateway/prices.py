"""What model calls cost: the price of a model, found once when a run is planned, and the cost of a call by arithmetic.

A price comes from the user's own table, else from the list that the package genai-prices carries (offline; read when a
model is first asked for, never at start-up). A price that is not known is None with a reason, and never 0. The user's
table is the TOML file that EVALCORE_PRICES names, in USD per million tokens:

    [prices."openai/gpt-5.2"]
    input = 1.75
    output = 14.0
    cache_read = 0.175    # left out: as input; cache_write likewise
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import orjson
from attrs import Attribute, Factory, field, frozen

from evalcore.errors import ConfigError
from evalcore.values.convert import from_toml
from evalcore.values.faults import ROOT, Faults, key_path
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.stamp import price_key
from evalcore.values.usage import Usage

if TYPE_CHECKING:
    from genai_prices.types import TieredPrices

VARIABLE: Final = "EVALCORE_PRICES"
FREE: Final = "scripted"  # the provider that nobody bills
_INPUT: Final = ("input_mtok", "cache_read_mtok", "cache_write_mtok")
_OUTPUT: Final = ("output_mtok", "output_reasoning_mtok")
_COUNTED: Final = (*_INPUT, *_OUTPUT, "requests_kcount")  # the rates, by genai-prices' names, of what usage counts
_MILLION: Final = Decimal(1_000_000)
_BYTES_A_TOKEN: Final = 2  # hardly any text has shorter tokens: English has about four bytes in one, Chinese three
_LONGEST: Final = 200_000  # tokens of one answer: no model gives more, whatever an agent asks for
_CHOICES: Final = 128  # answers to one request, likewise
_STANDARD: Final = (None, "auto", "default", "standard", "on_demand")  # tiers of service that the list's rates are for
_SLOTS: Final = [timedelta(minutes=30 * number) for number in range(48)]
_OWN_KEYS: Final = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
}

Steps: TypeAlias = tuple[tuple[int, Decimal], ...]  # rates in USD, each for more input tokens than its bound, ascending


@frozen
class ModelPrice:
    """One model's rates: USD per million tokens (per thousand requests), in steps where they grow with the input."""

    source: str
    rates: Mapping[str, Steps]  # by genai-prices' names
    matched: str = ""  # the model's name in the list
    _total: Callable[[Usage], Decimal] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_total", _calculation(self.rates))

    def cost(self, usage: Usage, tier: JSONValue = None) -> float | None:
        """What calls with this usage cost, in USD, each tier and cached token at its rate: genai-prices calculates.

        None where that cannot be told: nothing was reported, the counts contradict each other, or the provider served
        the call on a tier (priority, flex) that these rates are not for.
        """
        if usage.unreported or not usage.input or tier not in _STANDARD:
            return None
        try:
            total = float(self._total(usage))
        except (ValueError, ArithmeticError):  # more tokens cached than sent, for example
            return None
        return total if math.isfinite(total) else None

    def foreseen(self, body: JSONObject) -> tuple[float, bool]:
        """What a request will cost as far as can be told before it is sent; and whether that is all it can cost.

        It is all where the request bounds its output. Its input is judged by its length.
        """
        size = _size(body)
        if size is None:
            return 0.0, False
        sent = -(-size // _BYTES_A_TOKEN)
        known = self._dearest(_INPUT, sent) * sent / _MILLION
        known += self._dearest(("requests_kcount",), 0) / 1000
        bound = _output_bound(body)
        if bound is not None:
            known += self._dearest(_OUTPUT, sent) * bound / _MILLION
        return float(known), bound is not None

    def at_most(self, tokens: int) -> float:
        """What so many tokens cost if each is of the dearest kind. USD."""
        return float(self._dearest((*_INPUT, *_OUTPUT), None) * tokens / _MILLION)

    def as_json(self) -> JSONObject:
        """The row as it is stamped; `from_json` reads it back."""
        usd: JSONObject = {name: _steps_json(steps) for name, steps in self.rates.items()}
        return {"source": self.source, **({"matched": self.matched} if self.matched else {}), "usd": usd}

    @classmethod
    def from_json(cls, row: JSONObject) -> ModelPrice:
        """What `as_json` wrote. Raises ValueError."""
        usd = row.get("usd")
        if not isinstance(usd, dict):
            raise ValueError("a price has `usd`, a table")
        matched = row.get("matched", "")
        return cls(str(row.get("source", "")), {k: _steps_from(v) for k, v in usd.items()}, str(matched))

    def _dearest(self, names: tuple[str, ...], tokens: int | None) -> Decimal:
        """The highest of these rates for an input of at most so many tokens; None: of any size."""
        found = [
            rate for name in names for bound, rate in self.rates.get(name, ()) if tokens is None or bound <= tokens
        ]
        return max(found, default=Decimal(0))


# ── the list of prices ───────────────────────────────────────────────────────────────────────────────────────────────


def _finite(_: object, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"'{attribute.name}' must be a number >= 0: {value}")


@frozen
class OwnPrice:
    """One model in a user's table. USD per million tokens."""

    input: float = field(validator=_finite)
    output: float = field(validator=_finite)
    cache_read: float | None = field(default=None, validator=_finite)
    cache_write: float | None = field(default=None, validator=_finite)


@frozen
class OwnPrices:
    """A user's table of prices."""

    prices: Mapping[str, OwnPrice] = Factory(dict)


class PriceList:
    """Prices by model, each looked up once; `as_json` is what a run's stamp holds of them."""

    def __init__(self, own: Mapping[str, ModelPrice] | None = None, at: datetime | None = None) -> None:
        self._own = dict(own or {})
        self._at = at or datetime.now(UTC)
        self._found: dict[str, ModelPrice | str] = {}
        self._stamped = False

    @classmethod
    def of(cls, environ: Mapping[str, str], now: str | None = None) -> PriceList:
        """The user's table, if the environment names one, over the bundled list. Raises ConfigError."""
        name = environ.get(VARIABLE)
        return cls(read_own(Path(name).expanduser()) if name else None, datetime.fromisoformat(now) if now else None)

    @classmethod
    def stamped(cls, prices: JSONObject) -> PriceList:
        """The prices that a run was stamped with, and no others: a resumed run pays what it began with."""
        made = cls()
        made._stamped = True
        rows = prices.get("models")
        for key, row in rows.items() if isinstance(rows, dict) else ():
            try:
                assert isinstance(row, dict)
                made._found[key] = str(row["unknown"]) if "unknown" in row else ModelPrice.from_json(row)
            except (ValueError, AssertionError) as error:
                raise ConfigError(f"the stamp's price of {key} is none: {error}") from None
        return made

    def price(self, model: str, address: str | None = None) -> ModelPrice | None:
        """The price of `provider/name`, served at `address` if not at the provider's own; None: not known."""
        found = self._look_up(model, address)
        return found if isinstance(found, ModelPrice) else None

    def why(self, model: str, address: str | None = None) -> str | None:
        """Why a price is not known; None if it is."""
        found = self._look_up(model, address)
        return found if isinstance(found, str) else None

    def as_json(self) -> JSONObject:
        """Every row that was asked for, and why a row is missing; empty where no model has a price to be known."""
        rows: JSONObject = {
            key: found.as_json() if isinstance(found, ModelPrice) else {"unknown": found}
            for key, found in self._found.items()
        }
        return {"as_of": self._at.isoformat(timespec="seconds"), "models": rows} if rows else {}

    def _look_up(self, model: str, address: str | None) -> ModelPrice | str:
        if model.partition("/")[0] == FREE:
            return "a scripted model is billed by nobody"
        key = price_key(model, address)
        if key not in self._found:
            if self._stamped:
                return "the run's stamp has no price for it"
            self._found[key] = self._own.get(model) or _listed(model, address, self._at)
        return self._found[key]


def read_own(file: Path) -> dict[str, ModelPrice]:
    """A user's table of prices. Raises ConfigError with every fault and its path."""
    table = from_toml(file, OwnPrices).prices
    faults = Faults()
    for model in table:
        provider, _, name = model.partition("/")
        if not provider or not name:
            where = key_path(key_path(ROOT, "prices"), model)
            faults.add(where, "is no model", 'a model is provider/name, as in [prices."openai/gpt-5.2"]')
    faults.raise_if_any(str(file))
    return {model: _own_price(own, file) for model, own in table.items()}


def _own_price(own: OwnPrice, file: Path) -> ModelPrice:
    given = {key: getattr(own, name) for name, key in _OWN_KEYS.items()}
    return ModelPrice(f"{VARIABLE} ({file.name})", {k: _steps_from(v) for k, v in given.items() if v is not None})


def _listed(model: str, address: str | None, at: datetime) -> ModelPrice | str:
    """The model in genai-prices' bundled list, or why there is none.

    The provider is found by its exact name, else by the address that the arm gives: `openai-compatible/gpt-4o` at a
    server of one's own is not OpenAI's.
    """
    import genai_prices

    provider, _, name = model.partition("/")
    one = genai_prices.Usage(input_tokens=1, output_tokens=1)
    listed, named = f"genai-prices {genai_prices.__version__}", None
    try:
        found = genai_prices.calc_price(one, name, provider_id=provider, genai_request_timestamp=at)
        named = found.provider.id
    except (LookupError, ValueError):
        found = None
    if named != provider.lower():
        found = None
        if address is not None:
            with suppress(LookupError, ValueError):
                found = genai_prices.calc_price(one, name, provider_api_url=address, genai_request_timestamp=at)
    if found is None:
        return f"{listed} does not have it"
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if any(found.model.get_prices(day + slot) != found.model_price for slot in _SLOTS):
        return f"in {listed} it changes with the time of day"
    rates = {key: _steps_of(rate) for key in _COUNTED if (rate := getattr(found.model_price, key)) is not None}
    if not {"input_mtok", "output_mtok"} <= rates.keys():
        return f"{listed} has no price for its tokens"
    return ModelPrice(listed, rates, f"{found.provider.id}/{found.model.id}")


# ── rates in their three forms ───────────────────────────────────────────────────────────────────────────────────────


def _calculation(rates: Mapping[str, Steps]) -> Callable[[Usage], Decimal]:
    """genai-prices' own calculation with these rates. Raises ConfigError for one that it does not know any more."""
    from genai_prices import Usage as Counts
    from genai_prices.types import ModelPrice as Listed
    from genai_prices.types import Tier
    from genai_prices.types import TieredPrices as Tiered

    price = Listed(
        **{
            key: Tiered(steps[0][1], [Tier(bound, rate) for bound, rate in steps[1:]])
            if len(steps) > 1
            else steps[0][1]
            for key, steps in rates.items()
        }
    )

    def total(usage: Usage) -> Decimal:
        counts = Counts(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            output_reasoning_tokens=usage.reasoning,
        )
        return price.calc_price(counts)["total_price"]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            total(Usage(calls=1, input=1, output=1))
    except (UserWarning, ValueError) as error:
        raise ConfigError(f"a price cannot be calculated with: {error}") from None
    return total


def _steps_of(rate: Decimal | TieredPrices) -> Steps:
    if isinstance(rate, Decimal):
        return ((0, rate),)
    return ((0, rate.base), *((tier.start, tier.price) for tier in rate.tiers))


def _steps_json(steps: Steps) -> JSONValue:
    """A number; or the base, and what holds above so many input tokens."""
    base = float(steps[0][1])
    if len(steps) == 1:
        return base
    return {"base": base, "above": [{"input_tokens": bound, "usd": float(rate)} for bound, rate in steps[1:]]}


def _steps_from(value: JSONValue) -> Steps:
    if not isinstance(value, dict):
        return ((0, _decimal(value)),)
    above = value.get("above")
    steps = [(0, _decimal(value.get("base")))]
    for step in above if isinstance(above, list) else ():
        if not isinstance(step, dict) or type(step.get("input_tokens")) is not int:
            raise ValueError(f"no step of a price: {step!r}")
        steps.append((cast(int, step["input_tokens"]), _decimal(step.get("usd"))))
    return tuple(steps)


def _decimal(value: JSONValue) -> Decimal:
    """The number as it is written: 0.1 is a tenth."""
    if type(value) not in (int, float):
        raise ValueError(f"no number: {value!r}")
    return Decimal(str(value))


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _size(body: JSONObject) -> int | None:
    """Bytes of a request; None if it cannot be sent at all."""
    try:
        return len(orjson.dumps(body))
    except (TypeError, ValueError):
        pass
    try:
        return len(exact_text(body))
    except (TypeError, ValueError, RecursionError):
        return None


def _output_bound(body: JSONObject) -> int | None:
    """The most output tokens that a request allows, over all its choices; None: it does not say."""
    names = ("max_output_tokens", "max_completion_tokens", "max_tokens")  # the first is the arm's, sent in their place
    bound = next((value for name in names if type(value := body.get(name)) is int and value > 0), None)
    choices = body.get("n")
    if bound is None:
        return None
    return min(bound, _LONGEST) * (min(max(choices, 1), _CHOICES) if type(choices) is int else 1)
