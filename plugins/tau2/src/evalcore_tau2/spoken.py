"""What the agent's model said last: upstream takes the calls of one message together, and keeps the text beside them.

Both stand on the model wire only. A harness that makes calls which its model did not ask for in so many words (a text
protocol, calls made by code) hides them: each call then counts as a message of its own.
"""

from __future__ import annotations

from attrs import define, frozen

from evalcore.values.json import JSONObject, JSONValue
from evalcore.values.task import Call
from evalcore.values.trace import TraceReader, calls_of_response, text_of_response


@frozen
class Spoken:
    """One response of the agent's model: its number, its text, its calls."""

    number: JSONValue
    text: str | None
    calls: tuple[Call, ...]


def last_spoken(trace: TraceReader) -> Spoken | None:
    """The agent's last model response; None where there is none, or where somebody else's model spoke since."""
    event = trace.last("model.response")
    if event is None or event["role"] != "agent":
        return None
    return Spoken(event["call"], text_of_response(event) or None, tuple(calls_of_response(event)))


@define
class Listener:
    """Follows an agent's calls through its model's responses. `hidden` counts the calls that no response asked for."""

    hidden: int = 0
    _number: JSONValue = None
    _open: list[Call] | None = None

    def opens(self, trace: TraceReader, name: str, arguments: JSONValue) -> JSONObject | None:
        """The message that a call opens, as its text and the names of its calls; None where it goes on with one."""
        spoken = last_spoken(trace)
        if spoken is not None and spoken.number != self._number:
            self._number, self._open = spoken.number, list(spoken.calls)
            if self._take(name, arguments):
                return {"content": spoken.text, "names": [_bare(call.name, name) for call in spoken.calls]}
        elif spoken is not None and self._take(name, arguments):
            return None
        self.hidden += 1
        return {"content": None, "names": [name]}

    def _take(self, name: str, arguments: JSONValue) -> bool:
        """Whether the response asks for this call, and did not have it yet."""
        for call in self._open or ():
            if _same_tool(call.name, name) and call.raw is None and call.arguments == arguments:
                assert self._open is not None
                self._open.remove(call)
                return True
        return False


def _same_tool(asked: str, called: str) -> bool:
    """Agents put the server's name before a tool's, in ways of their own."""
    return asked == called or asked.endswith((f"__{called}", f".{called}", f"/{called}", f":{called}"))


def _bare(asked: str, called: str) -> str:
    return called if _same_tool(asked, called) else asked
