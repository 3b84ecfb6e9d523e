"""Programs for developers of evalcore; the Makefile runs them."""
