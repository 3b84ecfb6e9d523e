"""What a line says about calls: each must be well formed, and name a tool that the agent can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evalcore.builtin.suite.format import Expect, Forbidden, GoldLine, Grade, ServerCheck
from evalcore.values.faults import Faults, described, did_you_mean, item_path, key_path, literal
from evalcore.values.json import JSONValue

GROUPS: Final = ("all", "any", "none", "order")  # of calls
_ADD: Final = "name servers that have it: --set mcp_servers=FILE"


class CallChecks:
    """Checks one line's calls. What no declared tool has goes to `unserved`: a server of the arm's may have it."""

    def __init__(self, names: Sequence[str], faults: Faults, unserved: Faults) -> None:
        self._names = names
        self._faults = faults
        self._unserved = unserved

    def line(self, grade: Grade | None, expect: Expect | None, gold: GoldLine | None, where: str) -> None:
        """All that a line says about calls."""
        if grade is not None:
            self._grade(grade, f"{where}.grade")
        if expect is not None and expect.tool_call is not None:
            self._name(expect.tool_call, f"{where}.expect.tool_call")
        for index, call in enumerate(gold.calls if gold else ()):
            self._name(call.name, f"{item_path(f'{where}.gold.calls', index)}.name")

    def _grade(self, grade: Grade, where: str) -> None:
        if grade.tool_calls is not None:
            self._calls(grade.tool_calls, f"{where}.tool_calls")
        for index, forbidden in enumerate(grade.forbidden_calls or ()):
            self._forbidden(forbidden, item_path(f"{where}.forbidden_calls", index))
        for index, check in enumerate(grade.mcp_state or ()):
            self._server_check(check, item_path(f"{where}.mcp_state", index))

    def _calls(self, raw: JSONValue, where: str) -> None:
        """A matcher, an array of which one must match, or an object of groups."""
        if isinstance(raw, dict) and "name" not in raw and any(key in GROUPS for key in raw):
            for key, group in raw.items():
                if key not in GROUPS:
                    self._faults.add(key_path(where, key), "unknown key", did_you_mean(key, GROUPS))
                else:
                    self._matchers(group, key_path(where, key))
        elif isinstance(raw, list):
            self._matchers(raw, where)
        else:
            self._matcher(raw, where)

    def _matchers(self, raw: JSONValue, where: str) -> None:
        if not isinstance(raw, list) or not raw:
            what = described(raw) if raw != [] else "an empty one"
            self._faults.add(where, f"expected an array of calls, got {what}")
            return
        for index, one in enumerate(raw):
            self._matcher(one, item_path(where, index))

    def _matcher(self, raw: JSONValue, where: str) -> None:
        faults = self._faults
        if not isinstance(raw, dict):
            example = 'for example {"name": "get_weather", "args": {…}}'
            faults.add(where, f"expected a call, got {described(raw)}", example)
            return
        for key in raw:
            if key not in ("name", "args"):
                faults.add(key_path(where, key), "unknown key", did_you_mean(key, ("name", "args", *GROUPS)))
        if not isinstance(raw.get("args", {}), dict):
            faults.add(f"{where}.args", f"expected a table, got {described(raw['args'])}")
        name = raw.get("name")
        if isinstance(name, str):
            self._name(name, f"{where}.name")
        else:
            missing = f"expected text, got {described(name)}" if "name" in raw else "missing: expected text"
            faults.add(f"{where}.name", missing)

    def _forbidden(self, forbidden: Forbidden, where: str) -> None:
        if "*" not in forbidden.name:
            self._name(forbidden.name, f"{where}.name")

    def _server_check(self, check: ServerCheck, where: str) -> None:
        """It is a server's tool that is asked, never one that the line declares."""
        if check.tool in self._names and check.server is None:
            self._faults.add(f"{where}.tool", "is a tool of tool_server", "its state is graded by `state`")
        else:
            self._unserved.add(where, "the task has no MCP server", _ADD)

    def _name(self, name: str, where: str) -> None:
        """A tool that the task does not offer can be called by nobody."""
        if name not in self._names:
            offered = f"its tools: {', '.join(self._names)}" if self._names else "it has no tools"
            self._unserved.add(
                where, f"the task has no tool {literal(name)}", did_you_mean(name, self._names) or offered
            )
