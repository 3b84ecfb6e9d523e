"""Your own suite: a JSON-lines file of tasks as a benchmark, `evalcore run ./tasks.jsonl` (docs/suites.md)."""
