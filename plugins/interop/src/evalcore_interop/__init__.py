"""Results in other tools' formats, and old ones read back."""
