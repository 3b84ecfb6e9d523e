"""A language model that comes from wheels alone and runs on this machine: for a demonstration, and no reference."""
