"""What could serve a model here: keys in the environment, by name, and servers on this machine. Never used unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from evalcore.values.descriptors import ModelInfo

if TYPE_CHECKING:
    from evalcore.plugins import Registry

PORTS: Final = (11434, 8000, 8080)  # Ollama; vLLM and SGLang; llama.cpp
ANY_SERVER: Final = "openai-compatible"  # the provider that takes any address
ANSWER_S: Final = 0.2
_REQUEST: Final = b"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n"


def seen(models: Iterable[ModelInfo], environ: Mapping[str, str]) -> list[str]:
    """The names of variables that hold a provider's key. Values stay where they are."""
    declared = {name for info in models for name in info.keys}
    return sorted(n for n, value in environ.items() if value and (n in declared or n.endswith("_API_KEY")))


def offers(registry: Registry, environ: Mapping[str, str]) -> list[str]:
    """One line for each way to a model that is there, and was not asked for."""
    return [*_key_offers(registry, environ), *asyncio.run(_server_offers(registry))]


def _key_offers(registry: Registry, environ: Mapping[str, str]) -> Iterator[str]:
    models = list(registry.all(ModelInfo).values())
    unused = []
    for name in seen(models, environ):
        provider = next((m.name for m in models if name in m.keys), None)
        if provider is None:
            unused.append(name)
        else:
            yield f"{name} is set: `--model {provider}/NAME` would use it"
    if unused:
        yield f"{', '.join(unused)} {'is' if len(unused) == 1 else 'are'} set, and no installed plugin uses it"


async def _server_offers(registry: Registry) -> list[str]:
    answers = await asyncio.gather(*(_serves_models(port) for port in PORTS))
    urls = [f"http://127.0.0.1:{port}/v1" for port, answers_so in zip(PORTS, answers, strict=True) if answers_so]
    if ANY_SERVER not in registry.all(ModelInfo):
        return [f"a model server answers at {url}, and no installed plugin can use it" for url in urls]
    return [f"a model server answers: `--model {ANY_SERVER}/NAME --base-url {url}` would use it" for url in urls]


async def _serves_models(port: int) -> bool:
    """Whether something on this machine lists models as the usual servers do."""
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_REQUEST)
                head = await reader.read(4096)
            finally:
                writer.close()
                await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
    status, _, rest = head.partition(b"\r\n")
    return b" 200" in status and b'"object"' in rest
