"""Ways to a model that are there: keys by name, servers of this machine that list models."""

from __future__ import annotations

import asyncio

import pytest

from evalcore.cli import keys
from evalcore.values.arm import Arm
from evalcore.values.descriptors import ModelInfo

MODELS = [ModelInfo("dear", "costs money", "a:b", keys=("DEAR_SECRET",))]


def test_keys_are_seen_by_name() -> None:
    environ = {"DEAR_SECRET": "x", "OTHER_API_KEY": "y", "EMPTY_API_KEY": "", "HOME": "/"}
    assert keys.seen(MODELS, environ) == ["DEAR_SECRET", "OTHER_API_KEY"]


@pytest.mark.parametrize(
    "answer, found",
    [
        (b'HTTP/1.0 200 OK\r\n\r\n{"object": "list", "data": []}', True),
        (b"HTTP/1.0 200 OK\r\n\r\n<html>some other server</html>", False),
        (b'HTTP/1.0 404 Not Found\r\n\r\n{"object": "error"}', False),
        (b"", False),
        (None, False),
    ],
)
def test_a_server_is_one_that_lists_models(answer: bytes | None, found: bool) -> None:
    async def ask() -> bool:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            if answer is None:  # a server that hangs
                await reader.read()
            writer.write(answer or b"")
            writer.close()
            ended.set()

        ended = asyncio.Event()
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            serves = await keys._serves_models(server.sockets[0].getsockname()[1])
            await ended.wait()
        await asyncio.sleep(0.01)
        return serves

    assert asyncio.run(ask()) is found


def test_nothing_listens() -> None:
    assert asyncio.run(keys._serves_models(1)) is False


def test_what_costs_money() -> None:
    from evalcore.cli.execution import costly
    from evalcore.plugins import load
    from evalcore.values.study import RoleChoice, Study

    registry = load(only=())
    arms = [
        Arm("a", {"harness": "react", "model": "scripted/x.toml"}),
        Arm("b", {"harness": "react", "model": "openai/gpt"}),
        Arm("c", {"harness": "react", "model": "openai-compatible/qwen", "base_url": "http://127.0.0.1:8000/v1"}),
        Arm("d", {"harness": "noop"}),
    ]
    study = Study("s", ("x",), {}, roles={"user": RoleChoice("google/gemini"), "judge": RoleChoice()})
    assert costly(arms, study, registry) == ["google/gemini", "openai-compatible/qwen", "openai/gpt"]
