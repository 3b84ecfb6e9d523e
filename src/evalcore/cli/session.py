"""What verbs share: the loaded plugins, the environment's say about them, and where a run is to be found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from evalcore.plugins import Registry

P = ParamSpec("P")
T = TypeVar("T")

PLUGINS: Final = "EVALCORE_PLUGINS"  # the names of the plugins to load, separated by commas; empty: none
STRICT: Final = "EVALCORE_STRICT_PLUGINS"  # 1: a plugin that cannot be used is an error, whoever asks for it
OUT: Final = "EVALCORE_OUT"  # where runs are


class Session:
    """One call of the program. Plugins are loaded once, when the first verb asks for them."""

    def __init__(self, blocked: tuple[str, ...] = (), environ: Mapping[str, str] | None = None) -> None:
        self.blocked = blocked
        self.environ = os.environ if environ is None else environ
        self._registry: Registry | None = None

    def registry(self) -> Registry:
        """Everything installed and sound; a line on standard error for each plugin that is not. Raises PluginError."""
        if self._registry is None:
            from evalcore.cli.output import tell

            self._registry = self.quiet_registry()
            for failure in self._registry.failures:
                tell(f"warning: {failure}")
            self._be_strict(self._registry)
        return self._registry

    def quiet_registry(self) -> Registry:
        """The same, told to nobody."""
        from evalcore.plugins import load

        return load(blocked=self.blocked, only=self._only())

    def leaves_out(self, plugin: str) -> bool:
        """Whether a plugin is not to be loaded."""
        named = self._named()
        return plugin in self.blocked or (named is not None and plugin not in (*named, "builtin"))

    def _named(self) -> tuple[str, ...] | None:
        """The plugins that the environment names; None if it does not."""
        text = self.environ.get(PLUGINS)
        return None if text is None else tuple(name for part in text.split(",") if (name := part.strip()))

    def _only(self) -> tuple[str, ...] | None:
        """The same, each of them installed. Raises UnknownNameError."""
        names = self._named()
        if names is None:
            return None
        from evalcore.errors import UnknownNameError
        from evalcore.plugins import discover
        from evalcore.values.faults import nearest

        installed = {ref.name for ref in discover()} if names else set()
        for name in names:
            if name not in installed:
                hint = f"{PLUGINS} names the plugins to load; installed: {', '.join(sorted(installed)) or 'none'}"
                raise UnknownNameError("plugin", name, nearest=nearest(name, installed), hint=hint)
        return names

    def _be_strict(self, registry: Registry) -> None:
        if registry.failures and self.environ.get(STRICT, "") not in ("", "0"):
            from evalcore.errors import PluginError

            first = registry.failures[0]
            raise PluginError(str(first), plugin=first.ref.name, stage=first.stage, hint=f"{STRICT} is set")

    def run_path(self, text: str) -> Path:
        """The run that a user names: a folder, or the name of one where runs are."""
        path = Path(text).expanduser()
        if path.exists() or len(path.parts) != 1:
            return path
        return Path(self.environ.get(OUT) or "runs").expanduser() / path


def session_of(context: click.Context) -> Session:
    """The session of a call of the program, made when first asked for."""
    root = context.find_root()
    if not isinstance(root.obj, Session):
        root.obj = Session(tuple(root.params.get("blocked") or ()))
    return root.obj


def with_session(function: Callable[..., T]) -> Callable[..., T]:
    """Give a verb the session as its first argument, and logging as the environment has it."""

    @wraps(function)
    def verb(*args: Any, **kwargs: Any) -> T:
        from evalcore.cli.logs import set_up

        session = session_of(click.get_current_context())
        set_up(session.environ)
        return function(session, *args, **kwargs)

    return verb
