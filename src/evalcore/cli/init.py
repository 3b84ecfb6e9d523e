"""`evalcore init`: a study, tasks, a scripted model, MCP servers and a CI job to begin with. They run as they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from evalcore.cli.output import say, say_json, table
from evalcore.cli.study_options import JSON, options
from evalcore.errors import ConfigError, Fault

WRITTEN: Final[Mapping[str, tuple[str, str]]] = {  # path below DIR -> the file here, and what it is
    "study.toml": ("study.toml", "what is measured: start here"),
    "tasks.jsonl": ("tasks.jsonl", "three tasks of your own"),
    "model.toml": ("model.toml", "a model that is a script: offline, without a key"),
    ".mcp.json": ("mcp.json", "MCP servers to measure: put yours in"),
    "server.py": ("server.py.txt", "the one that is in there, in 30 lines"),
    ".github/workflows/evalcore.yml": ("workflow.yml", "the same on every pull request"),
}


@click.command()
@click.argument("folder", metavar="[DIR]", default=".")
@options(JSON)
def init(folder: str, *, json: bool | None) -> int:
    """Write a study, three tasks, a scripted model, an .mcp.json and a CI job into DIR (here), to begin with.

    `evalcore run DIR/study.toml` then runs as it is: offline, and without a key. A file that is there already is never
    overwritten: then nothing is written at all.
    """
    root = Path(folder).expanduser()
    targets = {root / path: source for path, (source, _) in WRITTEN.items()}
    if root.exists() and not root.is_dir():
        raise ConfigError(f"{folder} is a file", hint="name a folder; it is made if it is not there")
    there = [path for path in targets if path.exists() or path.is_symlink()]
    if there:
        faults = [Fault(str(path), "is there already") for path in there]
        raise ConfigError("nothing was written", faults=faults, hint="name another folder, or move these away")
    place = _place(root)
    try:
        for path, source in targets.items():
            text = (files("evalcore.cli") / "init_files" / source).read_text(encoding="utf-8")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text.replace("@DIR@", place))
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
    if json:
        say_json({"written": [str(path) for path in targets]})
        return 0
    say(table([(str(root / path), what) for path, (_, what) in WRITTEN.items()]))
    say(f"\nnow: evalcore run {root / 'study.toml'}")
    if _repository(root) not in (None, root.resolve()):
        say("GitHub looks for workflows at the top of the repository only: move .github there.")
    return 0


def _place(root: Path) -> str:
    """The folder as the files name it: from the top of its repository, or from where we are; with a slash, or empty."""
    top = _repository(root) or Path.cwd()
    relative = os.path.relpath(root.resolve(), top)
    inside = relative != "." and not relative.startswith("..")
    return f"{Path(relative).as_posix()}/" if inside else ""


def _repository(root: Path) -> Path | None:
    """The top of the git repository that a folder is in."""
    whole = root.resolve()
    return next((folder for folder in (whole, *whole.parents) if (folder / ".git").exists()), None)
