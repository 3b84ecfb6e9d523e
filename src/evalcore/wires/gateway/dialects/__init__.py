"""The dialects of the model wire: read, written, streamed, and translated from one to another."""

from __future__ import annotations

from evalcore.wires.gateway.dialects.fields import CHAT, DIALECTS, MESSAGES, RESPONSES

__all__ = ["CHAT", "DIALECTS", "MESSAGES", "RESPONSES"]
