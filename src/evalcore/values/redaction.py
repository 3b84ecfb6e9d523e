"""What a published copy of a run must not show, and the one way to take it out.

A dataset's terms, or a user's own rules, name *parts*: `questions` (what the agent is told), `answers` (what it leaves,
and what graders say of it) and `responses` (what tools and services answered). A part is withheld with everything that
could quote it: a model that reads a question may repeat it, so of a withheld question no later text is kept either.
What stays is the shape: kinds, names of tools, times, sizes, errors as such, exits, outcomes.

Reports, traces and exports all ask the same `Redaction`. It takes out what rules name and nothing else: it is no search
for secrets (provider keys never reach a file, see `wires.recorder`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

from attrs import Factory, evolve, field, frozen

from evalcore.errors import ConfigError, Fault
from evalcore.values.json import JSONObject, JSONValue, dumps
from evalcore.values.task import Dataset
from evalcore.values.trace import TraceReader
from evalcore.values.trial import Grading

Part: TypeAlias = Literal["questions", "answers", "responses"]
PARTS: Final[tuple[Part, ...]] = ("questions", "answers", "responses")
MARK: Final = "[withheld]"

# Fields that say how and not what; every other field of an event is content.
_SHAPE: Final = frozenset({
    "t", "e", "id", "task", "arm", "repeat", "attempt", "seed", "role", "call", "base", "kind", "tool", "bridge",
    "error", "wall_s", "queue_s", "wait_s", "limit", "limits", "code", "claim", "exit_code", "dialect", "revision",
    "streaming", "status", "source", "requestor", "what", "where", "size",
})  # fmt: skip
_NAMES: Final = frozenset({"id", "task", "arm"})  # the run's own; all other shapes a stranger may have chosen
_SHAPELY: Final = re.compile(r"[\w.:/@+-]{1,100}")
_BEFORE: Final = frozenset({"trial.start"})  # written before anything was answered: it can quote a question alone


@frozen
class RedactionRules:
    """A user's own rules, as a file has them: parts to withhold, of all or of one benchmark; texts to take out."""

    withhold: tuple[Part, ...] = ()
    texts: tuple[str, ...] = ()  # wherever they occur, whatever their case
    patterns: tuple[str, ...] = ()  # the same, as regular expressions
    benchmarks: Mapping[str, tuple[Part, ...]] = Factory(dict)  # selector -> parts


@frozen
class Redaction:
    """Takes out of values what may not be shown. `NOTHING` shows all."""

    withheld: frozenset[Part] = frozenset()
    _found: re.Pattern[str] | None = field(default=None, eq=False, repr=False, alias="found")

    @property
    def is_nothing(self) -> bool:
        """Whether all may be shown."""
        return not self.withheld and self._found is None

    def text(self, text: str) -> str:
        """A text that is no part of a trial (a name, a note), without what the rules name."""
        return text if self._found is None else self._found.sub(MARK, text)

    def content(self, value: JSONValue, part: Part | None = None) -> JSONValue:
        """What was said or left in a trial. It is all withheld if anything is that it could quote.

        `part` is what it is if it can quote nothing else; None is the usual case.
        """
        if self.withheld and (part is None or part in self.withheld):
            return MARK
        return value if self._found is None else self._clean(value)

    def event(self, event: JSONObject) -> JSONObject:
        """An event of a trace: its shape, and of its content what may be shown."""
        if self.is_nothing:
            return event
        part: Part | None = "questions" if event.get("e") in _BEFORE else None
        return {k: self._shape(k, v) if k in _SHAPE else self.content(v, part) for k, v in event.items()}

    def trace(self, reader: TraceReader) -> TraceReader:
        """A trace of which every event is what may be shown of it."""
        return reader if self.is_nothing else TraceReader([dumps(self.event(event)) for event in reader.events()])

    def grading(self, grading: Grading) -> Grading:
        """A verdict as it may be shown: the outcome, and of the grader's own words what may be."""
        details = self.content(grading.verdict.details)
        verdict = evolve(grading.verdict, details=details if isinstance(details, dict) else {})
        error = None if grading.error is None else str(self.content(grading.error))
        return evolve(grading, verdict=verdict, error=error)

    def _shape(self, name: str, value: JSONValue) -> JSONValue:
        """A name that an agent made up can hold a sentence: then it is content."""
        if self.withheld and isinstance(value, str) and name not in _NAMES and not _SHAPELY.fullmatch(value):
            return MARK
        return self._clean(value)

    def _clean(self, value: JSONValue) -> JSONValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        if isinstance(value, dict):
            return {self.text(k): self._clean(v) for k, v in value.items()}
        return value


NOTHING: Final = Redaction()


def redaction(dataset: Dataset, selector: str, rules: RedactionRules | None = None) -> Redaction:
    """What of a benchmark's trials must not be shown: by its dataset's terms, and by a user's rules.

    Raises ConfigError for a pattern that is none.
    """
    rules = rules or RedactionRules()
    parts: frozenset[Part] = frozenset((*dataset.withhold, *rules.withhold, *rules.benchmarks.get(selector, ())))
    return Redaction(parts, _one_pattern(rules))


def redaction_of_texts(rules: RedactionRules | None) -> Redaction:
    """The same for what belongs to no benchmark. Raises ConfigError for a pattern that is none."""
    return Redaction(frozenset(), _one_pattern(rules or RedactionRules()))


def _one_pattern(rules: RedactionRules) -> re.Pattern[str] | None:
    found = [f"(?i:{re.escape(text)})" for text in sorted(rules.texts, key=len, reverse=True)]
    found += [f"(?:{pattern})" for pattern in _sound(rules.patterns)]
    return re.compile("|".join(found)) if found else None


def _sound(patterns: Iterable[str]) -> list[str]:
    """The patterns, each tried alone; every one that is broken, or would match everywhere, is told at once."""
    faults, sound = [], []
    for number, pattern in enumerate(patterns):
        try:
            matches_nothing = re.compile(pattern).search("") is not None
        except re.error as error:
            faults.append(Fault(f"patterns[{number}]", f"{pattern!r} is no regular expression: {error}"))
            continue
        if matches_nothing:
            faults.append(Fault(f"patterns[{number}]", f"{pattern!r} matches the empty text, and so everywhere"))
        sound.append(pattern)
    if faults:
        raise ConfigError("the redaction rules are broken", faults=faults)
    return sound
