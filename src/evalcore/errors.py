"""Every error that evalcore raises on purpose, and the exit code each one means.

EvalcoreError
├── ConfigError            a file, flag or value that a user wrote is wrong                         exit 2
│   └── UnknownNameError   a name nobody registered; carries the nearest names                      exit 2
├── PluginError            a plugin that cannot be used                                             exit 2
├── RefusedError           two things that may not be compared, or a run that is no longer itself   exit 3
├── InfraError             the machine, the network, the provider: never the agent's fault          exit 4
│   ├── FatalInfraError    the same, and no retry can help: bad key, no credit, disk full           exit 4
│   │   └── OutageError    a provider was down for longer than a run waits                          exit 4
│   ├── ReplayError        a replay left what was recorded                                          exit 4
│   ├── TransientError     a provider failed in a way that another try may mend; the gateway tries  exit 4
│   └── ToolkitError       a benchmark's upstream code cannot be installed, verified or run         exit 4
├── GraderError            the grader raised, hung or returned nonsense                             exit 4
├── BudgetExceeded         the run's budget is spent                                                exit 5
├── AgentError             the harness under test broke its contract: a result, never a void
│   ├── LimitReached       a limit of the trial was reached; `limit` says which
│   └── MalformedCall      arguments that are no JSON object, an unknown tool, a broken message
└── Interrupted            Ctrl-C                                                                   exit 130

Libraries raise; only the CLI renders. Each error says in one line what is wrong with what, and in `hint` what to do.
"""

from __future__ import annotations

from collections.abc import Sequence


class EvalcoreError(Exception):
    """Base of every deliberate error. `message` is one line; `hint`, if any, says what to do."""

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class Fault:
    """One thing wrong with something a user wrote: `where` is a path such as `$.arms.plain.model`."""

    __slots__ = ("hint", "message", "where")

    def __init__(self, where: str, message: str, hint: str | None = None) -> None:
        self.where = where
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text

    def __repr__(self) -> str:
        return f"Fault({self.where!r}, {self.message!r}, {self.hint!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fault) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class ConfigError(EvalcoreError):
    """Something a user wrote is wrong. `faults` lists all of it, not just the first."""

    exit_code = 2

    def __init__(self, message: str, *, faults: Sequence[Fault] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.faults = tuple(faults)


class UnknownNameError(ConfigError):
    """A name that nobody registered; `nearest` holds what was probably meant."""

    def __init__(self, kind: str, name: str, *, nearest: Sequence[str] = (), hint: str | None = None) -> None:
        suggestion = f"; did you mean {' or '.join(repr(n) for n in nearest)}?" if nearest else ""
        super().__init__(f"unknown {kind} {name!r}{suggestion}", hint=hint)
        self.kind = kind
        self.name = name
        self.nearest = tuple(nearest)


class PluginError(EvalcoreError):
    """A plugin that cannot be used; `stage` is conflict, version, import or validate."""

    exit_code = 2

    def __init__(self, message: str, *, plugin: str, stage: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin
        self.stage = stage


class RefusedError(EvalcoreError):
    """Not comparable, or no longer the same run; `reasons` lists each boundary that differs."""

    exit_code = 3

    def __init__(self, message: str, *, reasons: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reasons = tuple(reasons)


class InfraError(EvalcoreError):
    """The machine, the network, the provider or evalcore itself failed; the attempt is void."""

    exit_code = 4


class FatalInfraError(InfraError):
    """An infrastructure failure that no retry can mend; the run stops, everything is kept."""


class OutageError(FatalInfraError):
    """A provider was down for longer than a run waits; the run stops, and can be resumed."""


class TransientError(InfraError):
    """One try of a provider failed, and another may not.

    `wait_s` is how many seconds the server asks to be left alone for, `status` its HTTP status, where there are any.
    """

    def __init__(
        self, message: str, *, wait_s: float | None = None, status: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.wait_s = wait_s
        self.status = status


class ReplayError(InfraError):
    """A replay asked its tape for what is not on it; no retry can help, and no other trial is concerned."""


class ToolkitError(InfraError):
    """A benchmark's upstream code cannot be installed, verified or run."""


class GraderError(EvalcoreError):
    """The grader raised, hung or returned nonsense; not counted, and re-gradable."""

    exit_code = 4


class BudgetExceeded(EvalcoreError):
    """The run's budget does not cover the next call; what finished is kept."""

    exit_code = 5


class AgentError(EvalcoreError):
    """The harness under test broke its contract: a result, never a void."""

    exit_code = 1


class LimitReached(AgentError):
    """A limit of the trial, or of one role, was reached.

    `limit` is tokens, cost_usd, model_calls, tool_calls, turns or wall_s.
    """

    def __init__(self, limit: str, allowed: float, role: str | None = None) -> None:
        whose = "the trial's limit" if role is None else f"the limit of the role {role}"
        super().__init__(f"{whose} on {limit} was reached ({allowed:g})")
        self.limit = limit
        self.allowed = allowed
        self.role = role


class MalformedCall(AgentError):
    """A call that the wire cannot pass on: no JSON object, an unknown tool, a broken message."""


class Interrupted(EvalcoreError):
    """The user stopped the run; it can be resumed."""

    exit_code = 130
