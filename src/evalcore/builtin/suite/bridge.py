"""Bridge `suite`: tools declared in a suite's line, and files in the sandbox that was demanded for it.

The configuration is that of `toolset`, and `folder`: {"sandbox", "files", "builtins"}; with `shared`, it is the folder
of the bridge that was opened before. Tools that touch no file are the toolset's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from evalcore.builtin.sandbox_none import FolderSandbox, FolderSandboxes, PathRefused
from evalcore.builtin.toolset import ToolsetBridge, ToolsetEpisode
from evalcore.contracts import Driver, OpenTrial, ToolResult, text_result
from evalcore.errors import ConfigError, InfraError
from evalcore.values.json import JSONObject, JSONValue, exact_text
from evalcore.values.task import BridgeSpec, SandboxSpec, ToolSpec

READ_CAP: Final = 1 << 20  # bytes of one file that a tool shows
WRITE_CAP: Final = 64 << 20  # bytes that the tools of one trial write


class SuiteBridge:
    """Opens episodes with a sandbox of their own."""

    def __init__(self, services: Any = None, info: Any = None) -> None:
        self._toolset = ToolsetBridge()
        self._sandboxes = FolderSandboxes()

    async def open(self, spec: BridgeSpec, trial: OpenTrial) -> SuiteEpisode:
        """An episode, its files in place. Raises ConfigError unless the sandbox was demanded by name."""
        folder = _table(spec.config.get("folder"))
        if folder.get("sandbox") != "none":
            raise ConfigError("the task needs a sandbox, and none was demanded", hint="--sandbox none")
        tools = {key: value for key, value in spec.config.items() if key != "folder"}
        toolset = await self._toolset.open(BridgeSpec("toolset", tools), trial)
        if folder.get("shared") is True:
            return SuiteEpisode(toolset, _opened(trial), _table(folder.get("builtins")), shared=True)
        sandbox = await self._sandboxes.open(SandboxSpec("none"))
        try:
            for path, content in _table(folder.get("files")).items():
                await sandbox.write(path, str(content).encode("utf-8", "surrogatepass"))
        except BaseException:
            await sandbox.close()
            raise
        return SuiteEpisode(toolset, sandbox, _table(folder.get("builtins")))


class SuiteEpisode:
    """The state of one trial: the toolset's, and a folder."""

    def __init__(
        self,
        toolset: ToolsetEpisode,
        sandbox: FolderSandbox,
        builtins: Mapping[str, JSONValue],
        *,
        shared: bool = False,
    ) -> None:
        self.sandbox = sandbox
        self._shared = shared
        self._toolset = toolset
        self._builtins = builtins
        self._written = 0

    def tools(self) -> Sequence[ToolSpec]:
        """The declared tools."""
        return self._toolset.tools()

    async def call(self, name: str, arguments: JSONValue) -> ToolResult:
        """What the tool answers; what is wrong with a path is the caller's error."""
        builtin = self._builtins.get(name)
        if builtin is None or not isinstance(arguments, dict):
            return await self._toolset.call(name, arguments)
        path, content = arguments.get("path"), arguments.get("content")
        if not isinstance(path, str):
            return text_result("argument 'path' must be text", error=True)
        try:
            if builtin == "read_file":
                return await self._read(path)
            if not isinstance(content, str):
                return text_result("argument 'content' must be text", error=True)
            return await self._write(path, content.encode("utf-8", "replace"))
        except (PathRefused, FileNotFoundError) as error:
            return text_result(str(error), error=True)

    async def _read(self, path: str) -> ToolResult:
        data = await self.sandbox.read(path, READ_CAP + 1)
        cut = f"\n[cut: the first {READ_CAP} bytes]" if len(data) > READ_CAP else ""
        return text_result(data[:READ_CAP].decode("utf-8", "replace") + cut)

    async def _write(self, path: str, data: bytes) -> ToolResult:
        if self._written + len(data) > WRITE_CAP:
            return text_result(f"no space: at most {WRITE_CAP >> 20} MiB can be written", error=True)
        await self.sandbox.write(path, data)
        self._written += len(data)
        return text_result(exact_text({"ok": True, "path": path, "bytes": len(data)}))

    def driver(self) -> Driver | None:
        """No dialogue."""
        return None

    async def state(self) -> JSONValue:
        """The toolset's."""
        return await self._toolset.state()

    async def close(self) -> None:
        """Remove the folder, and end what runs in it. From now on, calls are refused."""
        self._builtins = {}
        await self._toolset.close()
        if not self._shared:
            await self.sandbox.close()


def _opened(trial: OpenTrial) -> FolderSandbox:
    """The folder that another bridge of the trial works in. Raises InfraError."""
    for episode in trial.episodes:
        sandbox = getattr(episode, "sandbox", None)
        if isinstance(sandbox, FolderSandbox):
            return sandbox
    raise InfraError("bridge suite: no bridge before it has a folder to share")


def _table(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}
