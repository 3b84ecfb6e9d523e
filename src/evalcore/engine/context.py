"""Whether an arm's model can hold what a benchmark needs: asked before anything runs, where its context is known."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.engine.benchmarks import Benchmark
from evalcore.errors import ConfigError, Fault
from evalcore.values.arm import Arm


def check_context(benchmarks: Sequence[Benchmark], arms: Sequence[Arm]) -> None:
    """Raises ConfigError for every model whose context, as genai-prices lists it, is smaller than a benchmark needs."""
    needs = {b.selector: b.info.context_tokens for b in benchmarks if b.info.context_tokens is not None}
    models = dict.fromkeys(arm.model for arm in arms if arm.model is not None) if needs else {}
    faults = []
    for model in models:
        holds = context_of(model)
        for selector, need in needs.items():
            if holds is not None and need > holds:
                faults.append(Fault(f"{selector} with {model}", f"it needs {need:,} tokens, the model holds {holds:,}"))
    if faults:
        hint = "name a model with a larger context, or leave the benchmark out"
        raise ConfigError("the context of a model is too small", faults=faults, hint=hint)


def context_of(model: str) -> int | None:
    """Tokens that `provider/name` can hold; None where that is not known."""
    provider, _, name = model.partition("/")
    if provider == "scripted":
        return None
    import genai_prices  # most of a second, which a run without a real model does not pay

    try:
        found = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), name, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return found.model.context_window if found.provider.id == provider.lower() else None
