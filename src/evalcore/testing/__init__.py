"""For authors of parts, and for evalcore's own tests: a toy benchmark that needs nothing, and ways to run it."""

from __future__ import annotations
