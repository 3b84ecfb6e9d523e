"""A run's directory, read back and repaired without the engine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard

from evalcore.engine import store
from evalcore.engine.ledger import Ledger
from evalcore.engine.records import attempt_line
from evalcore.engine.store import (
    RunLock,
    TraceStore,
    create_run,
    gradings_of,
    read_attempts,
    read_gradings,
    read_stamp,
    repair,
    write_durably,
)
from evalcore.errors import ConfigError, InfraError, RefusedError
from evalcore.values.trial import Attempt, TraceRef
from tests.unit.report_samples import stamp
from tests.unit.test_ledger import commit, numbered, with_ledger


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three graded attempts."""
    create_run(tmp_path / "r", stamp())

    async def three(ledger: Ledger) -> None:
        for number in (1, 2, 3):
            await commit(ledger, number)

    with_ledger(tmp_path / "r", three)
    return tmp_path / "r"


# ── the directory ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stamp_is_read_back_equal(run: Path) -> None:
    assert read_stamp(run) == stamp()


def test_a_run_is_never_made_over_another(run: Path) -> None:
    before = (run / "run.toml").read_bytes()
    with pytest.raises(ConfigError, match="exists already") as taken:
        create_run(run, stamp())
    assert taken.value.hint is not None and "evalcore resume" in taken.value.hint
    assert (run / "run.toml").read_bytes() == before


def test_a_run_is_made_with_the_folders_above_it(tmp_path: Path) -> None:
    create_run(tmp_path / "a" / "b" / "r", stamp())
    assert read_stamp(tmp_path / "a" / "b" / "r") == stamp()


def test_a_place_where_no_run_can_be_is_infrastructure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfraError, match="cannot make"):
        create_run(tmp_path / "file" / "r", stamp())


def test_no_run_names_those_nearby(run: Path) -> None:
    with pytest.raises(ConfigError, match="no run at") as none:
        read_stamp(run.parent / "other")
    assert none.value.hint == "runs there: r"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    write_durably(file, b"old")

    def full(_: int) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        write_durably(file, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert file.read_bytes() == b"old"


def test_a_run_has_one_writer(run: Path) -> None:
    lock = RunLock(run)
    with pytest.raises(RefusedError, match="another process") as refused:
        RunLock(run)
    assert refused.value.exit_code == 3
    lock.release()
    RunLock(run).release()


# ── ledgers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_attempts_and_verdicts_are_read_in_order(run: Path) -> None:
    assert [a.key.repeat for a in read_attempts(run)] == [1, 2, 3]
    assert [g.attempt for g in read_gradings(run, "g")] == [a.id for a in read_attempts(run)]
    assert gradings_of(run) == ["g"]


def test_a_run_that_has_not_begun_has_none(tmp_path: Path) -> None:
    assert list(read_attempts(tmp_path)) == list(read_gradings(tmp_path, "g")) == gradings_of(tmp_path) == []


def test_a_torn_last_line_is_passed_over_and_left_alone(run: Path) -> None:
    ledger = run / "attempts.jsonl"
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[:-1])  # all but its newline: it may have been going to be longer

    assert [a.key.repeat for a in read_attempts(run)] == [1, 2]
    assert ledger.read_bytes() == whole[:-1]


@pytest.mark.parametrize(
    "broken", [b"null\n", b"[]\n", b"\n", b"{}\n", b'"x"\n', b"\xff\n", b"\0" * 50 + b"\n"], ids=repr
)
def test_a_broken_line_before_the_last_is_an_error_with_its_place(run: Path, broken: bytes) -> None:
    ledger = run / "attempts.jsonl"
    first, *rest = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + broken + b"".join(rest))

    with pytest.raises(ConfigError, match=r"attempts\.jsonl:2: not a line of this ledger"):
        list(read_attempts(run))


# ── repair ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_repair_leaves_a_sound_run_alone(run: Path) -> None:
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    assert repair(run) == []
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


def test_repair_cuts_what_is_torn_and_keeps_it_aside(run: Path) -> None:
    with (run / "attempts.jsonl").open("ab") as ledger:
        ledger.write(b'{"id": "b/')
    with (run / "gradings" / "g.jsonl").open("ab") as ledger:
        ledger.write(b"{")
    (run / "gradings" / "h.jsonl").write_bytes(b"torn from the start")

    assert repair(run) == [
        "attempts.jsonl: 10 bytes of a torn last line set aside",
        "g.jsonl: 1 bytes of a torn last line set aside",
        "h.jsonl: 19 bytes of a torn last line set aside",
    ]
    assert (run / "attempts.torn").read_bytes() == b'{"id": "b/'
    assert (run / "gradings" / "h.jsonl").read_bytes() == b""
    assert len(list(read_attempts(run))) == 3
    assert repair(run) == []
    assert gradings_of(run) == ["g", "h"]  # what was set aside is no grading


def test_a_second_tear_is_kept_beside_the_first(run: Path) -> None:
    for torn in (b"one", b"two"):
        with (run / "attempts.jsonl").open("ab") as ledger:
            ledger.write(torn)
        repair(run)
    assert (run / "attempts.torn").read_bytes() == b"onetwo"


@pytest.mark.parametrize("length", [65_535, 65_536, 65_537, 200_000])
def test_a_long_torn_line_is_cut_at_its_beginning(run: Path, length: int) -> None:
    before = (run / "attempts.jsonl").read_bytes()
    with (run / "attempts.jsonl").open("ab") as ledger:
        ledger.write(b"x" * length)
    repair(run)
    assert (run / "attempts.jsonl").read_bytes() == before


# ── traces ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_trace(run: Path, ref: TraceRef) -> list[Any]:
    traces = TraceStore(run)
    try:
        return list(traces.read(ref).events())
    finally:
        traces.close()


def last(run: Path) -> Attempt:
    return list(read_attempts(run))[-1]


def test_each_attempt_has_its_own_frame(run: Path) -> None:
    for attempt in read_attempts(run):
        assert read_trace(run, attempt.trace)[-1] == {"t": 1.0, "e": "exit", "n": attempt.key.repeat}


def test_an_empty_trace_is_no_broken_one(run: Path) -> None:
    attempt = with_ledger(run, lambda ledger: ledger.executed(numbered(9), []))
    assert read_trace(run, attempt.trace) == []


@pytest.mark.parametrize("cut", [1, 20, 10_000])
def test_a_torn_frame_is_infrastructure(run: Path, cut: int) -> None:
    attempt = last(run)
    segment = run / "traces" / attempt.trace.segment
    os.truncate(segment, max(0, segment.stat().st_size - cut))
    with pytest.raises(InfraError, match=r"cannot read the trace at 000001\.zst"):
        read_trace(run, attempt.trace)


def test_a_segment_that_is_gone_is_infrastructure(run: Path) -> None:
    attempt = last(run)
    (run / "traces" / attempt.trace.segment).unlink()
    with pytest.raises(InfraError, match="cannot read the trace"):
        read_trace(run, attempt.trace)


def test_a_frame_that_is_none_is_infrastructure(run: Path) -> None:
    ref = last(run).trace
    for wrong in (TraceRef(ref.segment, ref.offset + 1, ref.length), TraceRef(ref.segment, 0, 0)):
        with pytest.raises(InfraError):
            read_trace(run, wrong)


def test_a_line_cannot_send_a_reader_out_of_the_run(run: Path) -> None:
    (run.parent / "secret.zst").write_bytes(zstandard.ZstdCompressor().compress(b'{"e":"secret"}'))
    size = (run.parent / "secret.zst").stat().st_size
    with pytest.raises(InfraError):
        read_trace(run, TraceRef("../../secret.zst", 0, size))


def test_a_frame_that_unpacks_without_end_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_FRAME_MAX", 1000)
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()  # says nothing of its size
    bomb = packer.compress(b"0" * 1_000_000) + packer.flush()
    (run / "traces" / "000009.zst").write_bytes(bomb)
    with pytest.raises(InfraError):
        read_trace(run, TraceRef("000009.zst", 0, len(bomb)))


def test_lines_of_a_ledger_are_what_records_say(run: Path) -> None:
    lines = (run / "attempts.jsonl").read_bytes().splitlines(keepends=True)
    assert lines == [attempt_line(a) for a in read_attempts(run)]


def test_single_attempts_and_verdicts_are_found_by_id(run: Path) -> None:
    everyone = list(store.read_attempts(run))
    wanted = {everyone[1].id, 'no "such" id'}
    assert list(store.read_attempts(run, wanted)) == [everyone[1]]
    assert list(store.read_attempts(run, ())) == []
    (grading,) = store.gradings_of(run)
    verdicts = list(store.read_gradings(run, grading))
    assert list(store.read_gradings(run, grading, {v.attempt for v in verdicts})) == verdicts
    assert list(store.read_gradings(run, grading, {verdicts[0].attempt})) == verdicts[:1]


def test_a_line_in_another_order_is_found_all_the_same(run: Path) -> None:
    everyone = list(store.read_attempts(run))
    ledger = run / "attempts.jsonl"
    value = json.loads(ledger.read_bytes().splitlines()[1])
    value["id"] = 'a "quoted", id'
    ledger.write_bytes(json.dumps(dict(reversed(value.items()))).encode() + b"\n" + ledger.read_bytes())
    assert [a.id for a in store.read_attempts(run, {'a "quoted", id'})] == ['a "quoted", id']
    assert [a.id for a in store.read_attempts(run, {everyone[0].id})] == [everyone[0].id]
