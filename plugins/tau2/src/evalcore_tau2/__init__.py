"""τ²-bench for evalcore: its environments, its orchestrator, its user simulator, its evaluator, unchanged."""
