"""Provider `local`: one small model in one process of its own, asked one thing at a time.

Weights and llama.cpp are a toolkit (`evalcore setup local/smollm2-135m`); nothing is fetched when a run needs them.
At temperature 0 the same request has the same answer on the same kind of processor, whatever was asked before and
however busy the machine is; at any other, the trial's seed makes it so. The model has no tool calling of its own, so a
request with `tools` is refused: its template would drop them without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from evalcore.contracts import CallContext, Services
from evalcore.errors import ConfigError, InfraError
from evalcore.hookspecs import ModelInfo
from evalcore.values.faults import nearest
from evalcore.values.json import JSONObject, JSONValue
from evalcore.wires.gateway.refused import RefusedRequest
from evalcore_local.plugin import MODEL
from evalcore_local.requirements import FILES, FORM, WEIGHTS

LOAD_S: Final = 120.0
ANSWER_S: Final = 600.0  # of the model's own time; at 1 token a second, on a machine that is busy elsewhere
OUTPUT: Final = 1024  # tokens, where a request sets no bound: a model this small can repeat itself without end
_SERVED: Final = "SmolLM2-135M-Instruct Q4_0 (demonstration model)"
_BOUNDS: Final = ("max_output_tokens", "max_completion_tokens", "max_tokens")  # the first that is there holds


class LocalProvider:
    """Serves `local/smollm2-135m`."""

    dialect = "openai-chat"

    def __init__(self, services: Services, info: ModelInfo) -> None:
        self._services = services
        self._turn = asyncio.Lock()  # two answers at once would each take twice the time

    def content(self, model: str) -> Mapping[str, str]:
        """The weights' digest, and the form they are made over to: other weights would be another arm.

        Raises ConfigError for an unknown name.
        """
        _check_name(model)
        return {"weights": FILES[WEIGHTS], "form": FORM}

    async def prepare(self, model: str, settings: Mapping[str, JSONValue]) -> None:
        """Load the model before the first trial. Raises ConfigError, or ToolkitError where it cannot run here."""
        _check_name(model)
        async with self._turn:
            toolkit = await self._services.toolkit(MODEL)
            await toolkit.request("load", {}, LOAD_S)

    async def complete(self, model: str, body: JSONObject, context: CallContext) -> JSONObject:
        """One answer. Raises ToolkitError if the process failed, RefusedRequest for what the server refused."""
        _check_name(model)
        if body.get("tools"):
            raise ConfigError(
                f"local/{model} cannot call tools by itself",
                hint="with harness react: tool_protocol = constrained, or text",
            )
        toolkit = await self._services.toolkit(MODEL)
        async with self._turn:
            answer = await toolkit.request("complete", {"body": _request(body, context.seed)}, ANSWER_S)
        if not isinstance(answer, dict):
            raise InfraError(f"local/{model} answered {type(answer).__name__}, no object")
        if "error" in answer:
            raise _refusal(model, answer["error"])
        return _with_cost({**answer, "model": _SERVED})

    async def close(self) -> None:
        """The process belongs to the toolkit, which the services close."""


def _check_name(model: str) -> None:
    if model != MODEL:
        meant = "did you mean" if nearest(model, [MODEL]) else "there is one:"
        raise ConfigError(f"no model local/{model}", hint=f"{meant} local/{MODEL}")


def _request(body: JSONObject, seed: int) -> JSONObject:
    """The body as llama.cpp takes it: seeded, and bounded."""
    sent = {k: v for k, v in body.items() if k not in (*_BOUNDS, "model", "tools", "tool_choice")}
    bound = next((body[name] for name in _BOUNDS if body.get(name) is not None), OUTPUT)
    return {"seed": seed, **sent, "max_tokens": bound}


def _refusal(model: str, error: JSONValue) -> Exception:
    told = error if isinstance(error, dict) else {"message": str(error)}
    code, message = told.get("code"), f"local/{model}: {told.get('message')}"
    if isinstance(code, int) and 400 <= code < 500:
        kind = told.get("type")
        return RefusedRequest(message, status=400, code=kind if isinstance(kind, str) else None)
    return InfraError(message)


def _with_cost(answer: JSONObject) -> JSONObject:
    """Nobody bills what this machine computes: a cost of 0 is known here, and no guess."""
    usage = answer.get("usage")
    return {**answer, "usage": {**usage, "cost": 0}} if isinstance(usage, dict) else answer
