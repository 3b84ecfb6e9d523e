"""Upstream's code, imported with less than it asks for; standard library only, run inside the toolkit's environment.

What upstream imports and never calls here is stood in for, by something that raises if it is called after all. Before
anything of upstream's runs, this process gives up what it needs not: see `confine`.
"""

import atexit
import collections
import contextlib
import functools
import importlib
import importlib.util
import locale
import os
import signal
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from evalcore_bfcl.confine import confine

JSONObject: TypeAlias = dict[str, Any]

REGISTRY = "bfcl_eval.constants.model_config"
FOR_APIS, FOR_TABLES = ("anthropic", "anthropic.types", "overrides", "tenacity"), ("dotenv", "numpy", "pandas", "tqdm")
FOR_TEXT = ("tree_sitter", "tree_sitter_java", "tree_sitter_javascript")
ABSENT = (*FOR_APIS, *FOR_TABLES, *FOR_TEXT)
"""Imported by upstream modules that we need, called only by parts of them that we do not."""

OPTIONAL = ("numpy",)
"""Of these, what the memory categories call after all: it is left alone where the environment holds it."""

CPU_SECONDS = 10.0
"""For one verdict or call, which takes a millisecond: some of upstream's code can be made to compute without end."""


# Importing upstream without what it does not need here


class StandIn(types.ModuleType):
    """An absent module, or any name in one: inert while upstream is being imported, an error once that is done."""

    sealed = False

    def __getattr__(self, name: str) -> "StandIn":
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *arguments: object, **named: object) -> object:
        if StandIn.sealed:
            raise RuntimeError(f"upstream called {self.__name__}, which this environment leaves out")
        decorates = len(arguments) == 1 and not named and callable(arguments[0])
        return arguments[0] if decorates else self

    def __or__(self, other: object) -> "StandIn":
        return self


def install_stand_ins() -> list[str]:
    """Puts stand-ins where upstream will look for absent modules, and a registry that knows any model: their names."""
    absent = [name for name in ABSENT if name not in OPTIONAL or not is_here(name)]
    sys.modules.update({name: StandIn(name) for name in absent})
    registry = types.ModuleType(REGISTRY)
    # As for every tool-calling model of upstream's whose API takes no dots: tools are named with `_` for `.`.
    model = types.SimpleNamespace(underscore_to_dot=True)
    registry.__dict__["MODEL_CONFIG_MAPPING"] = collections.defaultdict(lambda: model)
    sys.modules[REGISTRY] = registry
    return sorted([*absent, REGISTRY])


def is_here(name: str) -> bool:
    """Whether this environment holds a module, which nothing has imported or stood in for yet."""
    return importlib.util.find_spec(name) is not None


class Upstream:
    """The imported benchmark: its runner, its tool converter, a tool-calling handler, and a folder to write in."""

    def __init__(self, root: Path) -> None:
        # Importing upstream's settings makes folders under this root, by default inside site-packages.
        os.environ["BFCL_PROJECT_ROOT"] = str(root)
        self.confined = confine(learned=is_here("sentence_transformers"))
        self.replaced = install_stand_ins()
        self.runner: Any = importlib.import_module("bfcl_eval.eval_checker.eval_runner")
        self.conversion: Any = importlib.import_module("bfcl_eval.model_handler.utils")
        claude: Any = importlib.import_module("bfcl_eval.model_handler.api_inference.claude")
        StandIn.sealed = True
        # Not constructed, which would open a client. Decoding reads this one attribute.
        self.handler: Any = object.__new__(claude.ClaudeHandler)
        self.handler.is_fc_model = True
        self.root = root
        self.scores = root / "score"
        self.categories: list[str] = self.runner.SINGLE_TURN_CATEGORY

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Stand-ins are inert again while more of upstream is imported."""
        StandIn.sealed = False
        try:
            yield
        finally:
            StandIn.sealed = True

    def tools(self, functions: list[JSONObject]) -> list[JSONObject]:
        """Function documents as the tools that native tool calling would send."""
        style, types_ = self.conversion.ModelStyle.ANTHROPIC, self.conversion.GORILLA_TO_OPENAPI
        return list(self.conversion.convert_to_tool(functions, types_, style))

    def entries(self, category: str, hints: bool) -> list[JSONObject]:
        """A category's tasks; with hints as models are shown them, without as the runner grades them."""
        load = self.runner.load_dataset_entry
        return list(load(category, include_prereq=False, include_language_specific_hint=hints))

    def ground_truth(self, category: str) -> list[JSONObject]:
        """A category's accepted answers, in the order of its tasks; none where only calling or not is graded."""
        ungraded = self.runner.is_relevance_or_irrelevance(category)
        return [] if ungraded else list(self.runner.load_ground_truth_entry(category))


@functools.cache
def upstream() -> Upstream:
    """Upstream's code, imported at the first use."""
    # Upstream opens its UTF-8 files in the locale's encoding.
    if locale.getpreferredencoding(False).lower() not in {"utf-8", "utf8"}:
        raise RuntimeError("the worker must run in UTF-8 mode: set PYTHONUTF8=1")
    # In the folder that the host made to work in: it goes with the host even if this process is killed.
    folder = tempfile.TemporaryDirectory(prefix="bfcl-", dir=Path.cwd())
    atexit.register(folder.cleanup)
    return Upstream(Path(folder.name))


# Bounds


class Endless(Exception):
    """Upstream's code used up the processor time that one verdict or call gets."""


@contextlib.contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raises `Endless` in the body when it computes longer; only where signals can be had, in a main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise Endless(f"no result after {seconds:g} s of processor time")

    signal.signal(signal.SIGVTALRM, interrupt)  # regular expressions look for signals too
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)  # and again, should upstream catch it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
