"""A benchmark to copy: feed the animals of a small zoo."""
