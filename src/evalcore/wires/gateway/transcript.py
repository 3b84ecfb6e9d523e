"""A role's requests as they are recorded: each holds what it adds to the one before.

A conversation of n turns is stored once, not n times. What the fast encoder would garble is kept whole and exact.
"""

from __future__ import annotations

from operator import is_

import orjson

from evalcore.errors import AgentError
from evalcore.values.json import JSONObject, JSONValue, has_odd_float
from evalcore.values.task import Role
from evalcore.wires.gateway.dialects import CHAT
from evalcore.wires.gateway.dialects.translate import SPOKEN
from evalcore.wires.recorder import AttemptRecorder


class Transcript:
    """Writes `model.request` events for one role of one attempt."""

    def __init__(self, role: Role, recorder: AttemptRecorder) -> None:
        self._role = role
        self._recorder = recorder
        self._dialect = CHAT  # of the request before
        self._base = 0  # its call
        self._said: list[JSONValue] = []  # its messages
        self._messages = b""  # the same, encoded
        self._rest = b""  # and the rest of it

    def record(self, call: int, body: JSONObject, dialect: str, beside: JSONObject) -> None:
        """One request; `beside` is what else the event says. Raises AgentError for a body without a conversation."""
        conversation = SPOKEN[dialect].conversation
        messages = body.get(conversation)
        if dialect != self._dialect:
            self._dialect, self._said, self._messages, self._rest = dialect, [], b"", b""
        more = beside if dialect == CHAT else {"dialect": dialect, **beside}
        if not isinstance(messages, list):
            if conversation == "messages":
                raise AgentError("a request needs `messages`, a list")
            self._recorder.record("model.request", role=self._role, call=call, rest=body, **more)
            return
        rest = {k: v for k, v in body.items() if k != conversation}
        try:
            self._record_addition(call, messages, orjson.dumps(messages), orjson.dumps(rest), rest, more)
        except (TypeError, ValueError):  # a value beyond the fast encoder: keep it whole and exact
            self._record_whole(call, messages, rest, more)

    def _record_addition(
        self,
        call: int,
        messages: list[JSONValue],
        encoded: bytes,
        rest: bytes,
        rest_value: JSONObject,
        more: JSONObject,
    ) -> None:
        before, grows = self._messages, False
        if before and encoded.startswith(before[:-1]):
            following = encoded[len(before) - 1 : len(before)]
            grows = following in (b",", b"]")
        added = b"[" + encoded[len(before) :] if grows else encoded
        if grows and encoded[len(before) - 1 : len(before)] == b"]":
            added = b"[]"
        known = len(self._said)
        if grows and all(map(is_, messages, self._said)):
            odd = _is_odd(added, messages[known:])
        else:  # new objects, even if they are encoded alike: a null may be a NaN now
            odd = _is_odd(encoded, messages)
        if odd or _is_odd(rest, rest_value):
            self._record_whole(call, messages, rest_value, more)
            return
        head = b'"e":"model.request","role":"%s","call":%d' % (self._role.encode(), call)
        base = b',"base":%d' % self._base if grows else b""
        tail = b"" if rest == self._rest and grows else b',"rest":' + rest
        if more:
            tail += b"," + orjson.dumps(more)[1:-1]
        self._recorder.record_encoded(head + base + b',"add":' + added + tail + b"}")
        self._base, self._said, self._messages, self._rest = call, list(messages), encoded, rest

    def _record_whole(self, call: int, messages: list[JSONValue], rest: JSONObject, more: JSONObject) -> None:
        self._recorder.record("model.request", role=self._role, call=call, add=messages, rest=rest, **more)
        self._said, self._messages, self._rest = [], b"", b""


def _is_odd(encoded: bytes, value: object) -> bool:
    """Whether the fast encoder lost something: it writes NaN as null."""
    return b"null" in encoded and has_odd_float(value)
