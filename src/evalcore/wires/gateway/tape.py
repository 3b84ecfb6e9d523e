"""One recorded attempt as a tape: its model's answers, given again to the same requests.

An answer belongs to (role, digest of the request, occurrence): a request that was made twice was answered twice, in
that order. The engine chooses the attempt, by benchmark, task, arm and repeat. The digest covers the request as it was
made, in its own dialect, and so neither the arm's parameters nor what a translation changed; how the answer is
delivered (`stream`) does not count, and parts that vary by nature are replaced by marks. These are always the addresses
of the wires and the folders that evalcore makes for a trial; and what the harness declares:

    date        dates and times of day, as ISO 8601 or in English words
    uuid        UUIDs
"""

from __future__ import annotations

import difflib
import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

from evalcore.values.json import JSONObject, JSONValue, canonical, digest
from evalcore.values.trace import TraceReader

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_TIME: Final = r"(?<![\d.:])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?![\d:])(?: ?[AaPp][Mm])?"
_OURS: Final = (
    ("<wires>", re.compile(r"http://(?:127\.0\.0\.1|localhost):\d+/[em]/[0-9a-f]{32}")),
    ("<workdir>", re.compile(r"/[^\s\"'`:;,()<>\\]*evalcore-(?:agent-)?[a-z0-9_]{8}(?![A-Za-z0-9_])")),
)
NORMALISERS: Final[Mapping[str, re.Pattern[str]]] = {
    "date": re.compile(
        rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_TIME}(?: ?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?)?"
        rf"|(?:{_DAY},? )?{_MONTH}\.? +\d{{1,2}}(?:,? +{_TIME}(?: [A-Z]{{2,5}})?)?,? +\d{{4}}"
        rf"|(?:{_DAY},? )?\d{{1,2}} {_MONTH}\.? +\d{{4}}(?:,? {_TIME}(?: [A-Z]{{2,5}})?)?"
        rf"|{_TIME}"
    ),
    "uuid": re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"),
}
_DELIVERY: Final = ("stream", "stream_options")
_SHOWN: Final = 24  # lines of a difference
_WIDE: Final = 160  # characters of one of them


@frozen
class Answer:
    """What was answered then: a response, or the refusal of the request."""

    call: int  # of the recorded attempt
    body: JSONObject | None
    refusal: str | None = None
    usage: JSONValue = None  # the provider's own, where the response was translated


@frozen
class Divergence:
    """Where a request leaves the tape. `at` is the index of the first other message, None if it is something else."""

    what: str
    at: int | None
    difference: str


class Tape:
    """The answers of one attempt, each given once."""

    def __init__(
        self, source: str, reader: TraceReader | None, varies: Iterable[str] = (), *, record_missing: bool = False
    ) -> None:
        self.source = source  # the recorded attempt, or why there is none
        self.record_missing = record_missing  # whether the model may be asked what was not
        self._marks = [*_OURS, *((f"<{name}>", NORMALISERS[name]) for name in sorted(set(varies)))]
        self._answers: dict[tuple[str, str], deque[Answer]] = {}
        self._requests: dict[str, list[JSONObject]] = {}
        if reader is not None:
            self._read(reader)

    def answer(self, role: str, body: JSONObject) -> Answer | None:
        """What was answered to this request when it was made so often; None where it was not."""
        left = self._answers.get((role, self._digest(body)))
        return left.popleft() if left else None

    def divergence(self, role: str, number: int, body: JSONObject) -> Divergence:
        """How the role's request `number` (from 1) differs from the one that was recorded in its place."""
        requests = self._requests.get(role, [])
        if not requests:
            return Divergence(f"{self.source} holds no request of the role {role}", None, "")
        if number > len(requests):
            return Divergence(f"the recording ends after {len(requests)} requests", None, "")
        then, now = self._marked(requests[number - 1]), self._marked(body)
        old, new = _messages(then), _messages(now)
        for index, (was, is_) in enumerate(zip(old, new, strict=False)):
            if was != is_:
                return Divergence(f"message {index + 1} differs", index, _difference(was, is_))
        if len(old) != len(new):
            index = min(len(old), len(new))
            was, is_ = (side[index] if index < len(side) else None for side in (old, new))
            return Divergence(f"it has {len(new)} messages, recorded were {len(old)}", index, _difference(was, is_))
        names = sorted(k for k in {*then, *now} if then.get(k) != now.get(k))
        if not names:
            return Divergence("the same request was answered before, and is made once more now", None, "")
        was, is_ = ({k: side[k] for k in names if k in side} for side in (then, now))
        return Divergence(f"{', '.join(names)} differs", None, _difference(was, is_))

    def _read(self, reader: TraceReader) -> None:
        """Pair requests with their answers, by role and call."""
        answers: dict[tuple[str, int], Answer] = {}
        asked: dict[str, list[int]] = {}
        for event in reader.events():
            if event["e"] == "model.request":
                asked.setdefault(str(event["role"]), []).append(int(str(event["call"])))
            elif event["e"] in ("model.response", "model.error"):
                role, call = str(event["role"]), event["call"]
                assert isinstance(call, int)
                body = event.get("body")
                refusal = None if event["e"] == "model.response" else str(event.get("message"))
                upstream = event.get("upstream")
                usage = upstream.get("usage") if isinstance(upstream, dict) else None
                answers[role, call] = Answer(call, body if isinstance(body, dict) else None, refusal, usage)
        for role, calls in asked.items():
            self._requests[role] = reader.requests(role)
            for call, request in zip(calls, self._requests[role], strict=True):
                if (role, call) in answers:
                    self._answers.setdefault((role, self._digest(request)), deque()).append(answers[role, call])

    def _digest(self, body: JSONObject) -> str:
        return digest(self._marked(body))

    def _marked(self, body: JSONObject) -> JSONObject:
        """The request without what says nothing, and with marks in the place of what varies."""
        marked = self._mark({k: v for k, v in body.items() if k not in _DELIVERY})
        assert isinstance(marked, dict)
        return marked

    def _mark(self, value: JSONValue) -> JSONValue:
        if isinstance(value, str):
            for mark, pattern in self._marks:
                value = pattern.sub(mark, value)
            return value
        if isinstance(value, list):
            return [self._mark(item) for item in value]
        if isinstance(value, dict):
            return {key: self._mark(item) for key, item in value.items()}
        return value


def _messages(body: JSONObject) -> list[JSONValue]:
    """The conversation: `messages`, or `input` in the Responses dialect."""
    found = body.get("messages", body.get("input"))
    return found if isinstance(found, list) else [found]


def _difference(was: JSONValue, is_: JSONValue) -> str:
    """Unified, short: what was recorded against what is asked now."""
    lines = difflib.unified_diff(_lines(was), _lines(is_), "recorded", "now", lineterm="", n=1)
    shown = [line if len(line) <= _WIDE else f"{line[:_WIDE]}…" for line in lines]
    more = [f"… {len(shown) - _SHOWN} more lines"] if len(shown) > _SHOWN else []
    return "\n".join([*shown[:_SHOWN], *more])


def _lines(value: JSONValue) -> list[str]:
    """As people read it: one field or list item a line, and a text in its own lines."""
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines() or [""]
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        rest = {k: v for k, v in value.items() if k != "content"}
        return [*_lines(rest), *str(value["content"]).splitlines()]
    try:
        return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True).splitlines()
    except (TypeError, ValueError, RecursionError):
        return canonical(value).decode("ascii").splitlines()
