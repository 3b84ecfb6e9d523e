"""The Berkeley Function Calling Leaderboard, v4, for evalcore: its data, its schemas, its checkers, unchanged."""
