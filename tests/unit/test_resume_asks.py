"""Whom a resumed run may call, beside its agents' models: what is asked before it spends."""

from __future__ import annotations

import pytest
from attrs import evolve

from evalcore.cli.resume import _others
from evalcore.plugins import load
from evalcore.values.arm import Arm
from evalcore.values.stamp import ArmStamp
from tests.unit.report_samples import BFCL, NOOP, stamp

TALKS = evolve(BFCL, roles={"user": "openai/upstreams-user", "judge": "openai/upstreams-judge"})


def arm(**axes: str) -> ArmStamp:
    return ArmStamp(Arm("a", {"harness": "react", "model": "scripted/m.toml", **axes}), "0.1.0")


@pytest.mark.parametrize(
    "arms, key, asked",
    [
        ([arm(user_model="scripted/u.toml")], "", {"scripted/u.toml"}),  # upstream's judge has no key: it is not called
        ([arm(user_model="scripted/u.toml")], "k", {"scripted/u.toml", "openai/upstreams-judge"}),
        ([arm(judge_model="dear/j")], "", {"dear/j"}),
        ([arm()], "k", {"openai/upstreams-user", "openai/upstreams-judge"}),
        ([NOOP], "k", {"openai/upstreams-judge"}),  # a control's user is scripted
    ],
    ids=["its own user", "and a judge", "its own judge", "upstream's", "a control"],
)
def test_those_that_the_arms_use_and_no_others(
    arms: list[ArmStamp], key: str, asked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if key:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    assert _others(stamp(arms, [TALKS]), load(only=())) == asked
