"""Every error as it is told: its words, its exit code, and its JSON."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import click
import pytest

from evalcore import errors
from evalcore.cli.render_errors import rendered_error, report_error
from evalcore.errors import ConfigError, EvalcoreError, Fault, InfraError, RefusedError


def everyone() -> list[EvalcoreError]:
    """One of each class in the tree."""
    return [
        errors.ConfigError("wrong"),
        errors.UnknownNameError("benchmark", "x"),
        errors.PluginError("wrong", plugin="p", stage="import"),
        errors.RefusedError("refused"),
        errors.InfraError("failed"),
        errors.FatalInfraError("failed"),
        errors.ToolkitError("failed"),
        errors.GraderError("failed"),
        errors.BudgetExceeded("spent"),
        errors.LimitReached("tokens", 10),
        errors.MalformedCall("malformed"),
        errors.Interrupted("stopped"),
    ]


@pytest.mark.parametrize("error", everyone(), ids=lambda e: type(e).__name__)
def test_each_error_ends_with_its_own_code(error: EvalcoreError, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(error, as_json=False) == error.exit_code
    out, err = capsys.readouterr()
    assert err == f"error: {error.message}\n"
    assert out == ""


def test_the_codes_of_the_architecture() -> None:
    codes = {type(e).__name__: e.exit_code for e in everyone()}
    assert (codes["ConfigError"], codes["RefusedError"], codes["InfraError"]) == (2, 3, 4)
    assert (codes["BudgetExceeded"], codes["Interrupted"]) == (5, 130)


def test_faults_stand_below_each_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    faults = [Fault("$.arms.plain.model", "no such\nprovider", "did you mean 'openai'?"), Fault("$.seed", "negative")]
    report_error(ConfigError("study.toml: 2 faults", faults=faults, hint="mend them"), as_json=False)
    assert capsys.readouterr().err == (
        "error: study.toml: 2 faults\n"
        "  $.arms.plain.model: no such provider (did you mean 'openai'?)\n"
        "  $.seed: negative\n"
        "hint: mend them\n"
    )


def test_reasons_of_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(RefusedError("no", reasons=["one", "two"]), as_json=True) == 3
    out, err = capsys.readouterr()
    assert err == "error: no\n  one\n  two\n"
    assert json.loads(out)["error"]["reasons"] == ["one", "two"]


def test_json_has_every_part(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(ConfigError("wrong", faults=[Fault("$.a", "bad\x1b", "good")], hint="do"), as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "error": {
            "kind": "ConfigError",
            "message": "wrong",
            "faults": [{"where": "$.a", "message": "bad\x1b", "hint": "good"}],
            "hint": "do",
            "exit_code": 2,
        }
    }


def test_nothing_in_an_error_steers_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "\x1b[2J\x9b2J\x07\u202e\u2028\ud800\r"
    report_error(ConfigError(nasty, faults=[Fault(nasty, nasty, nasty)], hint=nasty), as_json=True)
    out, err = capsys.readouterr()
    assert out.isascii()
    assert all(c == "\n" or c.isprintable() for c in err)
    assert len(err.splitlines()) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_is_130(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(error, as_json=False) == 130
    assert capsys.readouterr().err == "interrupted: nothing more was done\n"


def test_usage_is_2_and_points_to_help() -> None:
    context = click.Context(click.Command("run"), info_name="evalcore run")
    rendered = rendered_error(click.UsageError("Missing argument 'RUN'.", context))
    assert (rendered.message, rendered.exit_code) == ("missing argument 'RUN'", 2)
    assert rendered.hint == "`evalcore run --help` shows what it takes"


def test_the_machine_is_4() -> None:
    rendered = rendered_error(OSError(errno.ENOSPC, "No space left on device", "/runs/x"))
    assert (rendered.message, rendered.exit_code) == ("No space left on device: /runs/x", 4)


def test_of_errors_side_by_side_the_deliberate_one_is_told() -> None:
    inner = ExceptionGroup("inner", [InfraError("the disk")])
    assert rendered_error(ExceptionGroup("outer", [ValueError("x"), inner])).message == "the disk"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("EVALCORE_CACHE", str(tmp_path))
    monkeypatch.delenv("EVALCORE_DEBUG", raising=False)
    return tmp_path


def fail(secret: str) -> None:
    """A bug, with something in its frame that nobody should see."""
    raise LookupError(f"lost {len(secret)}")


def test_a_bug_is_a_line_and_its_details_a_file_without_values(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LookupError) as bug:
        fail("sk-" + "live" * 4)
    assert report_error(bug.value, as_json=True) == 4
    out, err = capsys.readouterr()
    (file,) = (cache / "logs").iterdir()
    assert err == f"bug: LookupError: lost 19, please report\nhint: the details are in {file}\n"
    assert json.loads(out)["error"]["kind"] == "LookupError"
    assert "in fail" in file.read_text() and "sk-livelive" not in file.read_text()


def test_a_bug_where_no_file_can_be_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").touch()
    monkeypatch.setenv("EVALCORE_CACHE", str(cache / "file"))
    assert rendered_error(LookupError("x")).hint == "EVALCORE_DEBUG=1 shows the details"


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("value, shown", [("1", True), ("0", False), ("", False)])
def test_the_traceback_is_for_who_asks(
    value: str, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVALCORE_DEBUG", value)
    report_error(ConfigError("wrong"), as_json=False)
    assert ("evalcore.errors.ConfigError: wrong" in capsys.readouterr().err) == shown
