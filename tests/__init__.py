"""The core's tests. What several test modules share stands here by name: `from tests.oracles import oracle_path`."""
