"""Frozen values that travel down the line of a trial. No I/O here."""
