"""The conformance suites, one module each. Tests in them are written for who reads their failures: an author of a part.

pytest rewrites the assertions of test files alone, unless told of others: so it is told here, before any suite is
imported. A `pytest11` entry point would do the same, and be loaded into every pytest run of whoever installs evalcore.
"""

from __future__ import annotations

try:
    import pytest
except ImportError as missing:
    raise ImportError("the conformance suites need pytest: pip install pytest") from missing

for _suite in ("adapter", "base", "bridge", "checks", "grader", "harness", "metric"):
    pytest.register_assert_rewrite(f"{__name__}.{_suite}")
