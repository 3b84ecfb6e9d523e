"""Upstream's evaluation of result files, in the toolkit's environment: read_back.py WORKER FOLDER whole|partial.

Its `eval_runner.main` reads FOLDER/result and writes FOLDER/score, as `bfcl evaluate` would for every model there.
Of what the toolkit leaves out, one thing is called and so made here: tqdm's progress bar. The models' registry, which
would import every vendor's SDK, is made here too, with upstream's tool-calling handler for each exported model.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from pathlib import Path


def main(worker_file: str, folder: str, whole: str) -> None:
    spec = importlib.util.spec_from_file_location("worker", worker_file)
    assert spec is not None and spec.loader is not None
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    os.environ["BFCL_PROJECT_ROOT"] = folder
    native = sys.modules["evalcore_bfcl.native"]
    native.install_stand_ins()
    sys.modules["tqdm"].tqdm = lambda items, **_: items  # type: ignore[attr-defined]
    claude = importlib.import_module("bfcl_eval.model_handler.api_inference.claude")
    registry = sys.modules[native.REGISTRY].MODEL_CONFIG_MAPPING

    def handler(**_: object) -> object:
        made = object.__new__(claude.ClaudeHandler)  # its own __init__ opens a client
        made.is_fc_model = True
        return made

    models = sorted(path.name for path in (Path(folder) / "result").iterdir())
    for model in models:
        registry[model] = types.SimpleNamespace(
            model_name=model,
            display_name=model,
            url="",
            org="",
            license="",
            model_handler=handler,
            input_price=None,
            output_price=None,
            is_fc_model=True,
            underscore_to_dot=True,
        )
    runner = importlib.import_module("bfcl_eval.eval_checker.eval_runner")
    native.StandIn.sealed = True
    runner.main(models, ["all_scoring"], None, None, partial_eval=whole != "whole")


if __name__ == "__main__":
    main(*sys.argv[1:])
