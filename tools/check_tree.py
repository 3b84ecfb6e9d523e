"""The rules of the house that no ready linter checks. `python tools/check_tree.py [ROOT]` names each breach; exit 1.

The order of imports within the core is import-linter's (`[tool.importlinter]` in pyproject.toml); here is what it
cannot say. `tests/architecture` plants one breach of each rule.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PURE = ("values", "stats")  # packages of the core that do no I/O
# fmt: off
IMPURE_MODULES = (
    "anyio", "asyncio", "click", "concurrent", "ctypes", "ftplib", "glob", "http", "httpcore2",
    "httpx2", "importlib", "io", "logging", "mcp", "mmap", "multiprocessing", "os", "pathlib",
    "pty", "rich", "select", "selectors", "shelve", "shutil", "signal", "smtplib", "socket",
    "socketserver", "sqlite3", "ssl", "starlette", "structlog", "subprocess", "tempfile",
    "threading", "urllib", "uvicorn",
)
# fmt: on
PURE_ALL_THE_SAME = ("pathlib.PurePath", "pathlib.PurePosixPath")
IMPURE_CALLS = frozenset({"open", "input", "print", "exec", "eval", "__import__"})

CORE_PARTS_CLOSED_TO_PLUGINS = ("evalcore.cli", "evalcore.builtin", "evalcore.testing")
THIN_PLUGIN_MODULE = "plugin.py"

MAX_LINES = 600
MAX_BYTES = 1_000_000

# Written so that neither pattern, nor a plain search for a host, finds this file.
HOSTS = re.compile(r"p[y]pi\.org|python[h]osted\.org|npm[j]s\.org|deb[i]an\.org")
MACHINE_PATHS = re.compile(r"(?:^|[^A-Za-z0-9_.])/(?:work|farm|root)/[A-Za-z.]")


class Breach(NamedTuple):
    """One breach: where, which rule, and what is wrong."""

    path: Path
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


class Import(NamedTuple):
    """An absolute import: the module it names, in full, and its line."""

    name: str
    line: int


def imports_of(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import in a module of `package`, at any depth, resolved; `from a import b` counts as `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*parents, *([module] if module else [])])
            yield from (Import(f"{module}.{alias.name}", node.lineno) for alias in node.names)


def is_under(name: str, modules: tuple[str, ...]) -> bool:
    """Whether `name` is one of `modules` or lies within one."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


class Module(NamedTuple):
    """A parsed source file: `package` is the dotted package that holds it."""

    path: Path
    package: str
    tree: ast.Module


def modules_under(source: Path) -> Iterator[Module]:
    """Every module under a source folder (`src`)."""
    for path in sorted(source.rglob("*.py")):
        package = ".".join(path.relative_to(source).parent.parts)
        yield Module(path, package, ast.parse(path.read_bytes(), filename=str(path)))


def check_core(root: Path) -> Iterator[Breach]:
    """The core knows no plugin, and its pure packages do no I/O."""
    pure = tuple(f"evalcore.{name}" for name in PURE)
    for path, package, tree in modules_under(root / "src"):
        for name, line in imports_of(tree, package):
            if name.startswith("evalcore_"):
                yield Breach(path, line, "core-knows-no-plugin", f"the core imports {name}")
            elif is_under(package, pure) and is_under(name, IMPURE_MODULES) and name not in PURE_ALL_THE_SAME:
                yield Breach(path, line, "pure", f"{package} does no I/O, and imports {name}")
        if is_under(package, pure):
            yield from check_calls(path, package, tree)


def check_calls(path: Path, package: str, tree: ast.Module) -> Iterator[Breach]:
    """The built-in functions that read, write or run something are not called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield Breach(path, node.lineno, "pure", f"{package} does no I/O, and calls {node.func.id}()")


def check_plugins(root: Path) -> Iterator[Breach]:
    """A plugin's entry module is thin (architecture §5), and no plugin reaches what is only to be had through hooks."""
    for source in sorted(root.glob("plugins/*/src")):
        modules = {f"{module.package}.{module.path.stem}": module for module in modules_under(source)}
        for path, package, tree in modules.values():
            for name, line in imports_of(tree, package):
                if is_under(name, CORE_PARTS_CLOSED_TO_PLUGINS):
                    yield Breach(path, line, "plugin-uses-hooks", f"a plugin imports {name}")
        for name, module in modules.items():
            if module.path.name == THIN_PLUGIN_MODULE:
                yield from check_thin(name, modules)


def check_thin(entry: str, modules: dict[str, Module]) -> Iterator[Breach]:
    """An entry module, and what it imports of its own plugin, import the standard library and the hooks alone."""
    waiting, seen = [entry], {entry}
    while waiting:
        path, package, tree = modules[waiting.pop()]
        for name, line in imports_of(tree, package):
            own = next((module for module in (name, name.rpartition(".")[0]) if module in modules), None)
            if own is not None and own not in seen:
                seen.add(own)
                waiting.append(own)
            elif own is None and not is_free(name):
                yield Breach(path, line, "thin-plugin", f"an entry module imports {name}")


def is_free(name: str) -> bool:
    """Whether an entry module may import `name`: the standard library, and the hooks."""
    return name.partition(".")[0] in sys.stdlib_module_names or is_under(name, ("evalcore.hookspecs",))


def committed_files(root: Path) -> list[Path]:
    """What git tracks, or would once added."""
    listing = ["git", "-C", str(root), "-c", "safe.directory=*", "ls-files", "-z"]
    done = subprocess.run([*listing, "--cached", "--others", "--exclude-standard"], capture_output=True, check=True)
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return sorted(root / name for name in set(names) if name and (root / name).is_file())


def check_files(root: Path) -> Iterator[Breach]:
    """Files are small, modules are short, and nothing names a package host or a path of one machine."""
    for path in committed_files(root):
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            yield Breach(path, 1, "large-file", f"{len(data):,} bytes; at most {MAX_BYTES:,} belong in git")
        if b"\0" in data[:8192]:
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        if path.suffix == ".py" and len(lines) > MAX_LINES:
            yield Breach(
                path,
                MAX_LINES + 1,
                "long-module",
                f"{len(lines)} lines; a module stops at {MAX_LINES}",
            )
        for number, text in enumerate(lines, start=1):
            if HOSTS.search(text):
                yield Breach(path, number, "package-host", "names a package host")
            if path.suffix != ".lock" and MACHINE_PATHS.search(text):
                yield Breach(path, number, "machine-path", "names a path that exists on one machine only")


def check(root: Path) -> list[Breach]:
    """Every breach in the checkout at `root`."""
    return [*check_core(root), *check_plugins(root), *check_files(root)]


def main(arguments: list[str]) -> int:
    """Print each breach on a line of its own."""
    root = Path(arguments[0] if arguments else Path(__file__).parent.parent).resolve()
    breaches = check(root)
    for breach in breaches:
        print(breach._replace(path=breach.path.relative_to(root)))
    print(f"house rules: {len(breaches)} broken" if breaches else "house rules: kept")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
