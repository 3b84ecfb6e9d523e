"""The program before any verb: what it imports, what it lists, and how plugins take part."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from attrs import evolve

from evalcore import __version__, _guard
from evalcore.cli.execution import size_of
from evalcore.cli.main import VERBS
from evalcore.errors import ConfigError
from tests.integration.conftest import Called, Site
from tests.oracles import ROOT
from tests.unit.report_samples import BFCL

Cli: TypeAlias = Callable[..., Called]

HEAVY: Final = ("mcp", "scipy", "rich", "numpy", "structlog", "cattrs")
IMPORTED: Final = """
import json, sys
sys.argv = ["evalcore", *json.loads(sys.argv[1])]
from evalcore.cli import plugin_verbs
from evalcore.cli.main import main
found = plugin_verbs._entry_modules  # the workspace has a plugin with a verb; as it is for who has not installed it:
plugin_verbs._entry_modules = lambda path: (module for module in found(path) if module != "evalcore_report.plugin")
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(arguments: list[str], site: Site) -> set[str]:
    """The modules that a call of the program imports."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, json.dumps(arguments)],
        env={"PYTHONPATH": f"{site.folder}:{ROOT / 'src'}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=["--help", "--version", "nothing"])
def test_start_up_imports_nothing_heavy_and_no_verb(arguments: list[str], toy_site: Site) -> None:
    modules = imported_by(arguments, toy_site)
    assert not {name.partition(".")[0] for name in modules} & set(HEAVY)
    assert {name for name in modules if name.startswith("evalcore.cli.")} <= {
        "evalcore.cli.main",
        "evalcore.cli.plugin_verbs",
    }
    assert "toy_echo" not in modules and "evalcore.plugins" not in modules


@pytest.mark.parametrize("verb", ["plugins", "list"])
def test_listing_loads_no_part_of_a_plugin(verb: str, toy_site: Site) -> None:
    modules = imported_by([verb], toy_site)
    assert "toy_echo_parts" not in modules
    assert ("toy_echo" in modules) == (verb == "list")
    assert not {name.partition(".")[0] for name in modules} & {"mcp", "scipy", "numpy", "structlog"}


def test_help_lists_every_verb(cli: Cli) -> None:
    called = cli("--help")
    assert called.exit_code == 0
    assert len(called.stdout.splitlines()) <= 40
    longest = max(map(len, VERBS))
    for verb, (_, text) in VERBS.items():
        assert f"  {verb:<{longest}}  {text}" in called.stdout


def test_nothing_asked_is_help(cli: Cli) -> None:
    assert (cli().exit_code, cli().stdout) == (0, cli("--help").stdout)


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"evalcore {__version__}\n"


def test_a_mistyped_verb(cli: Cli) -> None:
    called = cli("runn", "toy-echo")
    assert called.exit_code == 2
    assert (
        called.stderr
        == "error: unknown verb 'runn'; did you mean 'run' or 'runs'?\nhint: `evalcore --help` lists all verbs\n"
    )


def test_a_benchmark_in_place_of_a_verb(cli: Cli) -> None:
    called = cli("toy-echo@loud")
    assert "hint: toy-echo@loud is a benchmark: `evalcore run toy-echo@loud`" in called.stderr


def test_a_mistyped_option(cli: Cli) -> None:
    called = cli("run", "toy-echo", "--modle", "x")
    assert called.stderr == (
        "error: no such option --modle; did you mean --model or --user-model or --name?\n"
        "hint: `evalcore run --help` shows what it takes\n"
    )
    assert called.exit_code == 2


# ── the guard ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's `evalcore` is installed."""

    def refuse(*_: object) -> None:
        raise ConfigError("another project's package is installed", hint="pip uninstall evalcore")

    monkeypatch.setattr(_guard, "check_owner", refuse)


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("arguments", [("list",), ("run", "toy-echo"), ("--help",), ("nonsense",)])
def test_the_guard_comes_first(cli: Cli, arguments: tuple[str, ...]) -> None:
    called = cli(*arguments)
    assert called.exit_code == 2
    assert called.stderr == "error: another project's package is installed\nhint: pip uninstall evalcore\n"


@pytest.mark.usefixtures("foreign")
def test_doctor_tells_of_it_among_the_rest(cli: Cli) -> None:
    called = cli("doctor")
    assert called.exit_code == 1
    assert "wrong  installation  another project's package is installed (pip uninstall evalcore)" in called.stdout
    assert "1 thing wrong" in called.stdout


# ── plugins ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plugin_adds_verbs(program: Cli, verbs_site: Site) -> None:
    assert "  greet      Say hello (toy).\n" in program("--help", sites=(verbs_site,)).stdout
    assert program("greet", "Bern", sites=(verbs_site,)).stdout == "hello Bern\n"


def test_a_verb_that_cannot_be_loaded_says_so_when_it_is_called(program: Cli, verbs_site: Site) -> None:
    called = program("limp", sites=(verbs_site,))
    assert called.exit_code == 2
    assert called.stderr.startswith("error: limp: cannot load toy_verbs_parts:nothing: AttributeError: ")


def test_a_bug_in_a_verb_is_a_line_and_a_file(program: Cli, verbs_site: Site, tmp_path: Path) -> None:
    called = program("stumble", sites=(verbs_site,))
    (file,) = (tmp_path / "cache" / "logs").iterdir()
    assert called.exit_code == 4
    assert called.stderr.splitlines() == [
        "bug: LookupError: tripped over \N{REPLACEMENT CHARACTER}[31m, please report",
        f"hint: the details are in {file}",
    ]
    assert 'raise LookupError("tripped' in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_debugging_shows_the_traceback(program: Cli, verbs_site: Site) -> None:
    called = program("stumble", sites=(verbs_site,), EVALCORE_DEBUG="1")
    assert "Traceback (most recent call last)" in called.stderr
    assert program("report", "nope", EVALCORE_DEBUG="1").stderr.count("Traceback") == 1


def test_a_broken_plugin_is_one_line_and_no_more(program: Cli, toy_site: Site, broken_site: Site) -> None:
    called = program("list", "groups", sites=(toy_site, broken_site), EVALCORE_PLUGINS="toy-echo,toy-broken")
    assert called.exit_code == 0
    assert "toy-all" in called.stdout
    assert called.stderr == (
        "warning: plugin toy-broken (toy-broken 1.0) failed at import: "
        "ImportError: the toy is \N{REPLACEMENT CHARACTER}[31mbroken\n"
    )


def test_a_broken_plugin_can_be_left_out(program: Cli, toy_site: Site, broken_site: Site) -> None:
    called = program("-p", "no:toy-broken", "list", "groups", sites=(toy_site, broken_site))
    assert (called.exit_code, called.stderr) == (0, "")


def test_strict_plugins(program: Cli, toy_site: Site, broken_site: Site) -> None:
    called = program("list", sites=(toy_site, broken_site), EVALCORE_STRICT_PLUGINS="1")
    assert called.exit_code == 2
    assert "error: plugin toy-broken (toy-broken 1.0) failed at import" in called.stderr


def test_plugins_tells_of_the_broken_one(program: Cli, toy_site: Site, broken_site: Site) -> None:
    called = program("plugins", "--load", "--json", sites=(toy_site, broken_site))
    rows = {row["name"]: row for row in json.loads(called.stdout)["plugins"]}
    assert rows["toy-broken"]["status"] == "failed at import"
    assert rows["toy-broken"]["error"] == "ImportError: the toy is \x1b[31mbroken"
    assert rows["toy-echo"]["provides"]["benchmarks"] == ["toy-echo"]
    assert rows["builtin"]["status"] == "loaded"


def test_doctor_tells_of_the_broken_one(program: Cli, toy_site: Site, broken_site: Site) -> None:
    called = program("doctor", sites=(toy_site, broken_site))
    assert called.exit_code == 1
    assert "wrong  plugins" in called.stdout


def test_the_environment_names_the_plugins(cli: Cli) -> None:
    assert "toy-all" in cli("list", "groups").stdout
    assert cli("list", "groups", EVALCORE_PLUGINS="").stdout == "no groups are installed\n"
    rows = json.loads(cli("plugins", "--json", EVALCORE_PLUGINS="").stdout)["plugins"]
    assert {row["status"] for row in rows if row["name"] != "builtin"} == {"blocked"}


def test_the_environment_names_a_plugin_that_is_not_there(cli: Cli) -> None:
    called = cli("list", EVALCORE_PLUGINS="toy-ecko")
    assert called.exit_code == 2
    assert called.stderr.startswith("error: unknown plugin 'toy-ecko'; did you mean 'toy-echo'?\n")


def test_p_takes_no_colon_a_name(cli: Cli) -> None:
    assert cli("-p", "toy-echo", "list").exit_code == 2
    assert cli("-p", "no:toy-echo", "list", "groups").stdout == "no groups are installed\n"


def test_a_reader_that_leaves_is_no_error(start: Callable[..., subprocess.Popen[str]]) -> None:
    with start("list") as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == ""


@pytest.mark.parametrize("given", ["", ",", "a,,b"])
def test_an_empty_models_name_is_no_run_of_the_controls(cli: Cli, given: str) -> None:
    done = cli("run", "toy-echo", "--model", given)
    assert done.exit_code == 2
    assert "a name is empty" in done.stderr


def test_a_plan_says_what_runs_where(cli: Cli, tmp_path: Path) -> None:
    line = {"id": "one", "instruction": "Say x.", "grade": {"contains": "x"}, "gold": {"answer": "x"}}
    other = {key: value for key, value in line.items() if key != "gold"} | {"id": "two"}
    (tmp_path / "mine.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(other)}\n")
    called = cli("plan", "mine.jsonl")
    assert called.exit_code == 0, called.stderr
    alone = " ".join(called.stdout.split())
    assert "2: mine.jsonl (2 tasks) × 1 of 2 configurations" in alone
    both = " ".join(cli("plan", "mine.jsonl", "toy-echo").stdout.split())
    assert "14: mine.jsonl (2 tasks) × 1 of 2 configurations + toy-echo (6 tasks) × 2 of 2 configurations" in both
    assert size_of(evolve(BFCL, tasks=3, unscored=("a", "b"))) == "3 tasks and 2 that they require"
